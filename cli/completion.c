/* completion.c - `iii completion SHELL`: a script that asks `iii __complete` (complete.c) for
 * each candidate, so that the script never has to change. */
#include <string.h>

#include "command.h"
#include "completion.h"
#include "sandbox_call.h"

/* bash breaks words at ':' and '=': what is before the last of them stands there already. */
static const char bash_script[] =
    "_iii() {\n"
    "    local line=\"${COMP_LINE:0:COMP_POINT}\" words cur prefix\n"
    "    read -ra words <<< \"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
    "    cur=\"${words[${#words[@]}-1]}\"\n"
    "    prefix=\"${cur%\"${cur##*[:=]}\"}\"\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(\"${words[0]}\" __complete \"${words[@]:1}\" 2>/dev/null))\n"
    "    COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
    "}\n"
    "complete -o default -F _iii iii\n";

static const char zsh_script[] =
    "#compdef iii\n"
    "_iii() {\n"
    "    local -a found open\n"
    "    found=(\"${(@f)$(\"${words[1]}\" __complete "
    "\"${(@)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
    "    open=(\"${(@M)found:#*=}\")\n"
    "    found=(\"${(@)found:#*=}\")\n"
    "    compadd -S '' -- \"${(@)open:#}\"\n"
    "    compadd -- \"${(@)found:#}\"\n"
    "    (( compstate[nmatches] )) || _files\n"
    "}\n"
    "if [[ $funcstack[1] == _iii ]]; then _iii \"$@\"; else compdef _iii iii; fi\n";

static const char fish_script[] =
    "function __iii_complete\n"
    "    set -l words (commandline -opc)\n"
    "    $words[1] __complete $words[2..-1] (commandline -ct) 2>/dev/null\n"
    "end\n"
    "complete -c iii -a '(__iii_complete)'\n";

static const struct {
    const char *shell;
    const char *script;
} scripts[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };

const char *completion_shell(size_t i)
{
    return i < ARRAY_SIZE(scripts) ? scripts[i].shell : NULL;
}

static int run_completion(const struct command_line *line)
{
    const char *shell = line->rest.words[0];

    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        const char *script = scripts[i].script;

        if (strcmp(shell, scripts[i].shell) == 0)
            return sandbox_print(script, strlen(script));
    }
    return command_misused(line->command, "no script for %s: bash, zsh or fish", shell);
}

const struct command command_completion = {
    .name = "completion",
    .path = "iii completion",
    .text = "Print a completion script for a shell.",
    .details = "  source <(iii completion bash)\n"
               "  source <(iii completion zsh)\n"
               "  iii completion fish | source\n",
    .flags = COMMAND_LOCAL,
    .words = { { .name = "SHELL", .kind = WORD_SHELL } },
    COMMAND_HELP_OPTION,
    .run = run_completion,
};
