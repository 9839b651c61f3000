/* http.c - see http.h. Collecting a head, then its lines, then queries and answers. */
#include "http.h"

#include <errno.h>

/* Collecting. */

static enum http_head_state head_step(struct http_head *head, uint8_t byte)
{
    static const uint8_t line_end[4] = { '\r', '\n', '\r', '\n' };

    if (byte == line_end[head->line_end]) {
        head->line_end++;
        return head->line_end == sizeof(line_end) ? HTTP_HEAD_COMPLETE : HTTP_HEAD_OPEN;
    }
    if (byte == '\0' || byte == '\n' || head->line_end % 2 == 1)
        return HTTP_HEAD_MALFORMED;
    head->line_end = byte == '\r' ? 1 : 0;
    return HTTP_HEAD_OPEN;
}

int http_head_feed(struct http_head *head, const uint8_t *data, size_t size, size_t *ret_used)
{
    size_t used = 0;
    int result;

    while (used < size && head->state == HTTP_HEAD_OPEN) {
        if (head->bytes.size + used == HTTP_HEAD_MAX_BYTES)
            head->state = HTTP_HEAD_TOO_LONG;
        else
            head->state = head_step(head, data[used++]);
    }
    result = buf_append(&head->bytes, data, used);
    if (result == 0)
        *ret_used = used;
    return result;
}

void http_head_done(struct http_head *head)
{
    buf_done(&head->bytes);
    *head = (struct http_head){ 0 };
}

/* Lines. */

static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is_token_char(text.data[i]))
            return false;
    }
    return text.size > 0;
}

static bool is_visible(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    }
    return text.size > 0;
}

/* Text of a field: visible characters, spaces, tabs, and bytes from 0x80 on. */
static bool is_field_text(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if ((c < ' ' && c != '\t') || c == 0x7F)
            return false;
    }
    return true;
}

static struct span span_trim(struct span text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 &&
           (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

/* Takes what is before SEPARATOR, and the separator, off REST; false: there is none. */
static bool span_cut(struct span *rest, char separator, struct span *ret_part)
{
    const char *found = rest->size > 0 ? memchr(rest->data, separator, rest->size) : NULL;
    size_t size;

    if (!found)
        return false;
    size = (size_t)(found - rest->data);
    *ret_part = (struct span){ .data = rest->data, .size = size };
    rest->data = found + 1;
    rest->size -= size + 1;
    return true;
}

/* The next line without its CR LF; false at the empty line or the end. */
static bool line_next(struct span *rest, struct span *ret_line)
{
    if (!span_cut(rest, '\n', ret_line) || ret_line->size < 2)
        return false;
    ret_line->size--;
    return true;
}

static bool header_next(struct span *rest, struct span *ret_name, struct span *ret_value)
{
    struct span line;

    if (!line_next(rest, &line))
        return false;
    if (!span_cut(&line, ':', ret_name))
        *ret_name = (struct span){ .data = "", .size = 0 };
    *ret_value = span_trim(line);
    return true;
}

/* A name that starts or ends with a space (a folded line, a space before the colon) is none. */
static bool headers_valid(struct span headers)
{
    struct span name, value;

    while (header_next(&headers, &name, &value)) {
        if (!is_token(name) || !is_field_text(value))
            return false;
    }
    return true;
}

unsigned http_header_get(struct span headers, const char *name, struct span *ret_value)
{
    struct span found, value;
    unsigned count = 0;

    while (header_next(&headers, &found, &value)) {
        if (!span_equals_nocase(found, name))
            continue;
        count++;
        if (ret_value)
            *ret_value = value;
    }
    return count;
}

bool http_header_has_token(struct span headers, const char *name, const char *token)
{
    struct span found, value, part;

    while (header_next(&headers, &found, &value)) {
        if (!span_equals_nocase(found, name))
            continue;
        while (span_cut(&value, ',', &part)) {
            if (span_equals_nocase(span_trim(part), token))
                return true;
        }
        if (span_equals_nocase(span_trim(value), token))
            return true;
    }
    return false;
}

/* Heads. */

static bool request_has_no_body(struct span headers)
{
    struct span length;
    unsigned count = http_header_get(headers, "Content-Length", &length);

    if (count > 1 || (count == 1 && !span_equals(length, "0")))
        return false;
    return http_header_get(headers, "Transfer-Encoding", NULL) == 0;
}

static int request_line_parse(struct span line, struct http_request *ret_request)
{
    struct span target;

    if (!span_cut(&line, ' ', &ret_request->method) || !span_cut(&line, ' ', &target))
        return -EBADMSG;
    if (!is_token(ret_request->method) || !span_equals(line, "HTTP/1.1"))
        return -EBADMSG;
    if (!is_visible(target) || target.data[0] != '/')
        return -EBADMSG;
    if (span_cut(&target, '?', &ret_request->path))
        ret_request->query = target;
    else
        ret_request->path = target;
    return 0;
}

int http_request_parse(struct span head, struct http_request *ret_request)
{
    struct http_request request = { 0 };
    struct span line;

    if (!line_next(&head, &line) || request_line_parse(line, &request) < 0)
        return -EBADMSG;
    request.headers = head;
    if (!headers_valid(head) || http_header_get(head, "Host", NULL) != 1)
        return -EBADMSG;
    if (!request_has_no_body(head) || http_header_get(head, "Sec-WebSocket-Key", NULL) > 1)
        return -EBADMSG;
    *ret_request = request;
    return 0;
}

static int status_parse(struct span text, unsigned *ret_status)
{
    unsigned status = 0;

    if (text.size != 3)
        return -EBADMSG;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EBADMSG;
        status = status * 10 + (unsigned)(text.data[i] - '0');
    }
    *ret_status = status;
    return status >= 100 ? 0 : -EBADMSG;
}

int http_response_parse(struct span head, struct http_response *ret_response)
{
    struct http_response response = { 0 };
    struct span line, version, status;

    if (!line_next(&head, &line) || !span_cut(&line, ' ', &version))
        return -EBADMSG;
    if (!span_equals(version, "HTTP/1.1") && !span_equals(version, "HTTP/1.0"))
        return -EBADMSG;
    response.reason = line;
    if (span_cut(&line, ' ', &status))
        response.reason = line;
    else
        status = line;
    if (status_parse(status, &response.status) < 0 || !is_field_text(response.reason))
        return -EBADMSG;
    if (!headers_valid(head))
        return -EBADMSG;
    response.headers = head;
    *ret_response = response;
    return 0;
}

/* Queries. */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* The byte that the escape at TEXT (behind its '%') means; -1: it is none. */
static int escape_value(const char *text, size_t size)
{
    int high = size >= 2 ? hex_digit(text[0]) : -1;
    int low = size >= 2 ? hex_digit(text[1]) : -1;

    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

static bool escapes_valid(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '%' && escape_value(text.data + i + 1, text.size - i - 1) < 0)
            return false;
    }
    return true;
}

/* TEXT has valid escapes only. */
static int percent_decode(struct span text, struct buf *to)
{
    int result = 0;

    for (size_t i = 0; i < text.size && result == 0; i++) {
        int c = text.data[i];

        if (c == '%') {
            c = escape_value(text.data + i + 1, text.size - i - 1);
            i += 2;
        }
        result = buf_append_byte(to, (uint8_t)c);
    }
    return result;
}

int http_query_get(struct span query, const char *name, struct buf *to, unsigned *ret_count)
{
    bool more = query.size > 0;
    unsigned count = 0;

    while (more) {
        struct span pair, key;
        int result;

        more = span_cut(&query, '&', &pair);
        if (!more)
            pair = query;
        if (!span_cut(&pair, '=', &key))
            continue;
        if (!escapes_valid(pair))
            return -EBADMSG;
        if (!span_equals(key, name))
            continue;
        count++;
        buf_clear(to);
        result = percent_decode(pair, to);
        if (result < 0)
            return result;
    }
    *ret_count = count;
    return 0;
}

int http_percent_encode(const char *text, struct buf *to)
{
    int result = 0;

    for (; *text && result == 0; text++) {
        bool plain = (*text >= '0' && *text <= '9') || (*text >= 'A' && *text <= 'Z') ||
                     (*text >= 'a' && *text <= 'z') || strchr("-._~", *text);

        if (plain)
            result = buf_append_byte(to, (uint8_t)*text);
        else
            result = buf_printf(to, "%%%02X", (unsigned)(unsigned char)*text);
    }
    return result;
}

/* Answers. */

const char *http_status_reason(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        { 101, "Switching Protocols" },
        { 200, "OK" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 426, "Upgrade Required" },
        { 431, "Request Header Fields Too Large" },
        { 503, "Service Unavailable" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Unknown";
}

int http_response_append(struct buf *to, unsigned status, const char *extra,
                         const char *content_type, struct span body)
{
    int result = buf_printf(to,
                            "HTTP/1.1 %u %s\r\n"
                            "Content-Type: %s\r\n"
                            "Content-Length: %zu\r\n"
                            "%s"
                            "Connection: close\r\n\r\n",
                            status, http_status_reason(status), content_type, body.size, extra);

    return result == 0 ? buf_append(to, body.data, body.size) : result;
}
