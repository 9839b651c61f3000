/* fuzz_source.c - source texts: what is taken can be written out and is the same again. */
#include "source.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const struct text_list none;

/* Nothing that another program could take for an option or for two arguments. */
static void check_text(const char *text)
{
    assert(text[0] != '-');
    for (; *text; text++)
        assert(*text > ' ' && *text < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    char why[SOURCE_WHY_MAX] = "";
    struct source source, again;
    struct buf full = { 0 }, twice = { 0 };
    int ret = source_parse(text, &none, &source, why);

    assert(ret == 0 || (ret == -EINVAL && *why));
    if (ret == 0) {
        assert(source_format(&source, &full) == 0 && buf_text(&full));
        assert(source_parse(buf_text(&full), &none, &again, why) == 0);
        assert(again.kind == source.kind && again.insecure == source.insecure);
        assert(source_format(&again, &twice) == 0);
        assert(strcmp(buf_text(&full), buf_text(&twice)) == 0);
        if (source.kind == SOURCE_REGISTRY || source.kind == SOURCE_DEBIAN)
            check_text(buf_text(&full));
        source_done(&source);
        source_done(&again);
    }
    buf_done(&full);
    buf_done(&twice);
    free(text);
    return 0;
}
