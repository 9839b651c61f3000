/* on_terminal - runs a program on a terminal of its own and plays the one who sits there.
 *
 *   on_terminal [COLUMNS] [TEXT ACTION]... -- PROGRAM [ARGUMENT]...
 *
 * Whenever TEXT of the next pair has been seen, its ACTION follows: bytes that are typed
 * (`^C` is Ctrl-C), or `HANGUP`: the terminal is closed. What the program writes goes to
 * stdout. The result is its exit code, 128 + signal, or 99 when a TEXT never came. */
#include <errno.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COLUMNS_STANDARD 100
#define SEEN_MAX_BYTES (1024 * 1024)
#define EXIT_CODE_UNSEEN 99
#define EXIT_CODE_OURS 98

struct terminal {
    int fd; /* -1: closed */
    pid_t child;
    char **pairs;              /* TEXT, ACTION, ...; ends with "--" */
    char seen[SEEN_MAX_BYTES]; /* since the last action */
    size_t seen_size;
};

static void die(const char *what)
{
    perror(what);
    exit(EXIT_CODE_OURS);
}

static void act(struct terminal *terminal, const char *action)
{
    if (strcmp(action, "HANGUP") == 0) {
        (void)close(terminal->fd);
        terminal->fd = -1;
        return;
    }
    if (strcmp(action, "^C") == 0)
        action = "\003";
    if (write(terminal->fd, action, strlen(action)) < 0)
        die("typing");
}

static void take(struct terminal *terminal, const char *data, size_t size)
{
    if (terminal->seen_size + size > SEEN_MAX_BYTES)
        terminal->seen_size = 0;
    memcpy(terminal->seen + terminal->seen_size, data, size);
    terminal->seen_size += size;
    while (terminal->fd >= 0 && strcmp(terminal->pairs[0], "--") != 0 &&
           memmem(terminal->seen, terminal->seen_size, terminal->pairs[0],
                  strlen(terminal->pairs[0]))) {
        act(terminal, terminal->pairs[1]);
        terminal->pairs += 2;
        terminal->seen_size = 0;
    }
}

/* Until the program's end closes the terminal, which reads as EIO. */
static void converse(struct terminal *terminal)
{
    while (terminal->fd >= 0) {
        char data[65536];
        ssize_t size = read(terminal->fd, data, sizeof(data));

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return;
        if (fwrite(data, 1, (size_t)size, stdout) != (size_t)size || fflush(stdout) != 0)
            die("stdout");
        take(terminal, data, (size_t)size);
    }
}

static char **find_program(char **at)
{
    while (*at && strcmp(*at, "--") != 0)
        at += at[1] ? 2 : 1;
    return *at ? at + 1 : NULL;
}

static int result_of(struct terminal *terminal)
{
    int status;

    if (waitpid(terminal->child, &status, 0) < 0)
        die("waitpid");
    if (strcmp(terminal->pairs[0], "--") != 0) {
        (void)fprintf(stderr, "on_terminal: \"%s\" was never seen\n", terminal->pairs[0]);
        return EXIT_CODE_UNSEEN;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct winsize size = { .ws_row = 24, .ws_col = COLUMNS_STANDARD };
    static struct terminal terminal;
    char **program;

    terminal.pairs = argv + 1;

    if (argc > 1 && argv[1][0] >= '1' && argv[1][0] <= '9') {
        size.ws_col = (unsigned short)strtoul(argv[1], NULL, 10);
        terminal.pairs++;
    }
    program = find_program(terminal.pairs);
    if (!program || !*program) {
        (void)fputs("usage: on_terminal [COLUMNS] [TEXT ACTION]... -- PROGRAM ...\n", stderr);
        return EXIT_CODE_OURS;
    }
    terminal.child = forkpty(&terminal.fd, NULL, NULL, &size);
    if (terminal.child < 0)
        die("forkpty");
    if (terminal.child == 0) {
        execvp(*program, program);
        die(*program);
    }
    converse(&terminal);
    return result_of(&terminal);
}
