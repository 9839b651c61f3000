/* error_json.c - the error as the envelope of contract 3.1: compact JSON, keys in the order of
 * the contract, always valid UTF-8 whatever a message holds. */
#include <errno.h>
#include <string.h>

#include "error.h"
#include "utf8.h"

/* What JSON wants escaped: the letter behind the backslash, 'u' for the long form, 0: nothing.
 */
static const char escapes[256] = {
    [0 ... 0x07] = 'u', ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  [0x0b] = 'u',
    ['\f'] = 'f',       ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\', [0x0e ... 0x1f] = 'u',
};

static size_t escaped_size(const uint8_t *text, size_t size)
{
    size_t more = 0;

    for (size_t i = 0; i < size; i++) {
        const char letter = escapes[text[i]];

        more += (letter != 0) + (letter == 'u') * strlen("00xx");
    }
    return size + more;
}

static uint8_t *write_escape(uint8_t *to, uint8_t byte, char letter)
{
    static const char digits[] = "0123456789abcdef";

    *to++ = '\\';
    *to++ = (uint8_t)letter;
    if (letter == 'u') {
        *to++ = '0';
        *to++ = '0';
        *to++ = (uint8_t)digits[byte >> 4];
        *to++ = (uint8_t)digits[byte & 15];
    }
    return to;
}

/* TEXT is UTF-8; all of it may have to be escaped, as the output of a program that is no text,
 * so room is made once. */
static int append_escaped(struct buf *to, const uint8_t *text, size_t size)
{
    const size_t room = escaped_size(text, size);
    int result = buf_ensure(to, room);
    uint8_t *place;

    if (result < 0)
        return result;
    place = to->data + to->size;
    for (size_t i = 0; i < size; i++) {
        const char letter = escapes[text[i]];

        if (letter)
            place = write_escape(place, text[i], letter);
        else
            *place++ = text[i];
    }
    to->size += room;
    return 0;
}

int json_append_string(struct buf *to, const char *text, size_t size)
{
    struct buf repaired = { 0 };
    const uint8_t *bytes = (const uint8_t *)text;
    int result = 0;

    if (!utf8_valid(text, size)) {
        result = utf8_repair(&repaired, text, size);
        bytes = repaired.data;
        size = repaired.size;
    }
    if (result == 0)
        result = buf_append_byte(to, '"');
    if (result == 0)
        result = append_escaped(to, bytes, size);
    if (result == 0)
        result = buf_append_byte(to, '"');
    buf_done(&repaired);
    return result;
}

/* One step of writing: a key as it stands in the text, then a value. The first failure sticks.
 */
struct writer {
    struct buf *to;
    int result;
};

static void put(struct writer *writer, const char *text)
{
    if (writer->result == 0)
        writer->result = buf_append_text(writer->to, text);
}

static void put_string(struct writer *writer, const char *text, size_t size)
{
    if (writer->result == 0)
        writer->result = json_append_string(writer->to, text, size);
}

static void put_bool(struct writer *writer, bool value)
{
    put(writer, value ? "true" : "false");
}

static void put_docs_url(struct writer *writer, const char *docs_base, const char *code)
{
    struct buf url = { 0 };

    if (writer->result == 0)
        writer->result = buf_printf(&url, "%s%s", docs_base, code);
    put_string(writer, (const char *)url.data, url.size);
    buf_done(&url);
}

static void put_fix(struct writer *writer, const struct sandbox_error *err)
{
    if (err->fix_count == 0) {
        put(writer, "null");
        return;
    }
    for (unsigned i = 0; i < err->fix_count; i++) {
        const struct error_fix *fix = &err->fix[i];

        put(writer, i == 0 ? "{" : ",");
        put_string(writer, fix->key, strlen(fix->key));
        put(writer, ":");
        if (fix->is_bool)
            put_bool(writer, fix->flag);
        else
            put_string(writer, fix->text, strlen(fix->text));
    }
    put(writer, "}");
}

/* Contract 3.4: only of these two codes. */
static void put_outcome(struct writer *writer, const struct sandbox_error *err)
{
    if (err->outcome == OUTCOME_NONE || (err->code != S300 && err->code != S301))
        return;
    put(writer, err->outcome == OUTCOME_NEVER_RAN ? ",\"outcome\":\"never_ran\""
                                                  : ",\"outcome\":\"may_have_run\"");
}

/* Contract 3.5: only of these two codes. */
static void put_partial(struct writer *writer, const struct sandbox_error *err)
{
    const struct error_partial *partial = err->partial;

    if (!partial || (err->code != S200 && err->code != S506))
        return;
    put(writer, ",\"partial\":{\"stdout\":");
    put_string(writer, (const char *)partial->stdout_text.data, partial->stdout_text.size);
    put(writer, ",\"stderr\":");
    put_string(writer, (const char *)partial->stderr_text.data, partial->stderr_text.size);
    put(writer, ",\"stdout_truncated\":");
    put_bool(writer, partial->stdout_truncated);
    put(writer, ",\"stderr_truncated\":");
    put_bool(writer, partial->stderr_truncated);
    put(writer, "}");
}

int sandbox_error_encode(const struct sandbox_error *err, const char *docs_base, struct buf *to)
{
    const struct error_info *info = error_info_get(err->code);
    struct writer writer = { .to = to };

    put(&writer, "{\"type\":\"");
    put(&writer, info->type);
    put(&writer, "\",\"code\":\"");
    put(&writer, info->code);
    put(&writer, "\",\"message\":");
    put_string(&writer, err->message, strlen(err->message));
    put(&writer, ",\"docs_url\":");
    put_docs_url(&writer, docs_base, info->code);
    put(&writer, ",\"retryable\":");
    put_bool(&writer, info->retryable);
    put(&writer, ",\"fix\":");
    put_fix(&writer, err);
    put(&writer, ",\"fix_note\":");
    if (err->fix_note[0])
        put_string(&writer, err->fix_note, strlen(err->fix_note));
    else
        put(&writer, "null");
    put_outcome(&writer, err);
    put_partial(&writer, err);
    put(&writer, "}");
    return writer.result;
}
