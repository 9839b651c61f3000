/* http.h - heads of HTTP/1.1 requests (as a server reads them) and responses (as a client
 * does).
 *
 * Small and strict: what is not plainly right is refused. No socket, no bodies; the bytes
 * behind a head are whoever's protocol the connection becomes. */
#pragma once

#include <stdint.h>

#include "buf.h"
#include "span.h"

#define HTTP_HEAD_MAX_BYTES (8u * 1024)

enum http_head_state {
    HTTP_HEAD_OPEN,      /* needs more bytes */
    HTTP_HEAD_COMPLETE,  /* bytes holds the head, empty line included; feed no more */
    HTTP_HEAD_MALFORMED, /* a bare LF, a bare CR or a NUL */
    HTTP_HEAD_TOO_LONG   /* over HTTP_HEAD_MAX_BYTES */
};

/* Collects a head that comes in pieces. Zero-initialised is ready. */
struct http_head {
    struct buf bytes;
    enum http_head_state state;
    unsigned line_end; /* how much of CR LF CR LF is there */
};

/* Takes what belongs to the head; *ret_used bytes are taken. -ENOMEM, or 0 and head->state. */
int http_head_feed(struct http_head *head, const uint8_t *data, size_t size, size_t *ret_used);
void http_head_done(struct http_head *head);

/* All spans point into the head they were read from. */
struct http_request {
    struct span method;
    struct span path;    /* as it came, never decoded */
    struct span query;   /* behind the first '?'; absent without one */
    struct span headers; /* the lines; for the functions below */
};

struct http_response {
    unsigned status;
    struct span reason;
    struct span headers;
};

/* HEAD is complete. 0, or -EBADMSG for everything but: METHOD SP target SP HTTP/1.1, a target
 * in origin form, header lines `name:value`, exactly one Host, no body (Content-Length other
 * than 0, Transfer-Encoding), at most one Sec-WebSocket-Key. */
int http_request_parse(struct span head, struct http_request *ret_request);
/* 0, or -EBADMSG. */
int http_response_parse(struct span head, struct http_response *ret_response);

/* How often the header is there; *ret_value (may be NULL) is the last of them, trimmed. */
unsigned http_header_get(struct span headers, const char *name, struct span *ret_value);
/* Whether one of the comma-separated tokens of the header, in any case, is TOKEN. */
bool http_header_has_token(struct span headers, const char *name, const char *token);

/* The percent-decoded value of NAME=VALUE in a query, and how often NAME is there. -EBADMSG: a
 * bad escape in any value; -ENOMEM, -ENOBUFS. */
int http_query_get(struct span query, const char *name, struct buf *to, unsigned *ret_count);
/* Appends TEXT with everything but unreserved characters percent-encoded. */
int http_percent_encode(const char *text, struct buf *to);

const char *http_status_reason(unsigned status);
/* Appends a whole response that ends the connection: Content-Length, Connection: close, EXTRA
 * (header lines with CR LF, or ""), the body. 0, -ENOMEM, -ENOBUFS. */
int http_response_append(struct buf *to, unsigned status, const char *extra,
                         const char *content_type, struct span body);
