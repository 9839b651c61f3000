/* Any text as a command line. Its words, quoted one by one, are the same words again. */
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool condition)
{
    if (!condition)
        abort();
}

/* 'a'\''b' */
static void quote(const char *word, struct buf *to)
{
    need(buf_append_byte(to, '\'') == 0);
    for (; *word; word++) {
        if (*word == '\'')
            need(buf_append_text(to, "'\\''") == 0);
        else
            need(buf_append_byte(to, (uint8_t)*word) == 0);
    }
    need(buf_append_text(to, "' ") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = strndup((const char *)data, size);
    struct text_list words = { 0 }, again = { 0 };
    struct sandbox_error err = { 0 };
    struct buf quoted = { 0 };

    if (command_split(line, &words, &err) == 0) {
        for (size_t i = 0; i < words.count; i++)
            quote(words.items[i], &quoted);
        need(command_split(buf_text(&quoted), &again, &err) == 0);
        need(again.count == words.count);
        for (size_t i = 0; i < words.count; i++)
            need(strcmp(again.items[i], words.items[i]) == 0);
    } else {
        need(err.code == S001);
    }
    text_list_done(&words);
    text_list_done(&again);
    buf_done(&quoted);
    free(line);
    return 0;
}
