/* web_request.c - see web_request.h. */
#include "web_request.h"

#include <errno.h>

#include "websocket.h"

#define CHANNEL_PATH "/ws/channels/"

/* Origins: a browser lets any page open a connection to loopback, so pages of loopback alone
 * are let in. Host proves nothing and is not looked at. */

/* One part of an IPv4 address, in decimal. */
static bool octet_take(struct span *text)
{
    unsigned value = 0;
    size_t digits = 0;

    while (digits < text->size && text->data[digits] >= '0' && text->data[digits] <= '9' &&
           digits < 3)
        value = value * 10 + (unsigned)(text->data[digits++] - '0');
    if (digits == 0 || value > 255 || (digits > 1 && text->data[0] == '0'))
        return false;
    text->data += digits;
    text->size -= digits;
    return true;
}

static bool text_take(struct span *text, const char *wanted)
{
    if (!span_starts_with(*text, wanted))
        return false;
    text->data += strlen(wanted);
    text->size -= strlen(wanted);
    return true;
}

static bool loopback_v4_take(struct span *text)
{
    if (!text_take(text, "127"))
        return false;
    for (int i = 0; i < 3; i++) {
        if (!text_take(text, ".") || !octet_take(text))
            return false;
    }
    return true;
}

static bool is_port(struct span text)
{
    unsigned value = 0;

    if (text.size == 0 || text.size > 5)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text.data[i] - '0');
    }
    return value <= 65535;
}

static bool is_loopback_origin(struct span origin)
{
    if (!text_take(&origin, "http://") && !text_take(&origin, "https://"))
        return false;
    if (!text_take(&origin, "localhost") && !text_take(&origin, "[::1]") &&
        !loopback_v4_take(&origin))
        return false;
    return origin.size == 0 || (text_take(&origin, ":") && is_port(origin));
}

bool web_origin_allowed(struct span origin, const struct text_list *allowed_origins)
{
    if (is_loopback_origin(origin))
        return true;
    for (size_t i = 0; i < allowed_origins->count; i++) {
        if (span_equals(origin, allowed_origins->items[i]))
            return true;
    }
    return false;
}

static bool origin_passes(struct span headers, const struct web_policy *policy)
{
    struct span origin;
    unsigned count = http_header_get(headers, "Origin", &origin);

    return count == 0 || (count == 1 && web_origin_allowed(origin, policy->allowed_origins));
}

/* The token. */

static bool token_passes(enum web_target target, struct span headers, const char *token)
{
    struct span value;

    if (!token || (target != WEB_TARGET_MAIN && target != WEB_TARGET_METRICS))
        return true;
    if (http_header_get(headers, "Authorization", &value) != 1 || value.size < 7)
        return false;
    if (strncasecmp(value.data, "Bearer ", 7) != 0)
        return false;
    value.data += 7;
    value.size -= 7;
    return span_equals_constant_time(value, token);
}

/* Targets. */

static enum web_target target_of(struct span path, struct span *ret_channel_id)
{
    if (span_equals(path, "/"))
        return WEB_TARGET_MAIN;
    if (span_equals(path, "/otel"))
        return WEB_TARGET_OTEL;
    if (span_equals(path, "/metrics"))
        return WEB_TARGET_METRICS;
    if (span_equals(path, "/healthz"))
        return WEB_TARGET_HEALTH;
    if (!text_take(&path, CHANNEL_PATH) || path.size == 0 || memchr(path.data, '/', path.size))
        return WEB_TARGET_NONE;
    *ret_channel_id = path;
    return WEB_TARGET_CHANNEL;
}

static bool wants_websocket(struct span headers)
{
    struct span version;

    return http_header_has_token(headers, "Upgrade", "websocket") &&
           http_header_has_token(headers, "Connection", "upgrade") &&
           http_header_get(headers, "Sec-WebSocket-Version", &version) == 1 &&
           span_equals(version, "13");
}

static void refuse(struct web_request *request, unsigned status, const char *extra,
                   const char *why)
{
    request->status = status;
    request->extra = extra;
    request->why = why;
}

/* `key` and `dir`. 0, or -ENOMEM. */
static int judge_channel_query(struct span query, struct web_request *request)
{
    _cleanup_(buf_done)
    struct buf direction = { 0 };
    unsigned keys, directions;
    int result = http_query_get(query, "key", &request->access_key, &keys);

    if (result == 0)
        result = http_query_get(query, "dir", &direction, &directions);
    if (result < 0 && result != -EBADMSG)
        return result;
    if (result == -EBADMSG) {
        refuse(request, 400, "", "bad percent escape in the query\n");
        return 0;
    }
    if (keys != 1 || directions != 1) {
        refuse(request, 400, "", "key and dir are needed, once each\n");
        return 0;
    }
    request->writes = direction.size == 5 && memcmp(direction.data, "write", 5) == 0;
    if (!request->writes && (direction.size != 4 || memcmp(direction.data, "read", 4) != 0))
        refuse(request, 400, "", "dir must be read or write\n");
    return 0;
}

static int judge_websocket(const struct http_request *http, struct web_request *request)
{
    if (!wants_websocket(http->headers)) {
        refuse(request, 426, "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
               "this path speaks WebSocket, version 13\n");
        return 0;
    }
    (void)http_header_get(http->headers, "Sec-WebSocket-Key",
                          &request->key); /* checked below */
    if (!websocket_key_valid(request->key)) {
        refuse(request, 400, "", "bad Sec-WebSocket-Key\n");
        return 0;
    }
    if (request->target == WEB_TARGET_CHANNEL)
        return judge_channel_query(http->query, request);
    return 0;
}

static int judge(const struct http_request *http, const struct web_policy *policy,
                 struct web_request *request)
{
    if (!span_equals(http->method, "GET")) {
        refuse(request, 405, "Allow: GET\r\n", "only GET is known here\n");
        return 0;
    }
    request->target = target_of(http->path, &request->channel_id);
    if (request->target == WEB_TARGET_NONE)
        refuse(request, 404, "", "no such path\n");
    else if (!origin_passes(http->headers, policy))
        refuse(request, 403, "", "this Origin is not allowed\n");
    else if (!token_passes(request->target, http->headers, policy->token))
        refuse(request, 401, "WWW-Authenticate: Bearer\r\n", "a bearer token is needed\n");
    else if (request->target <= WEB_TARGET_CHANNEL)
        return judge_websocket(http, request);
    return 0;
}

int web_request_judge(const struct http_head *head, const struct web_policy *policy,
                      struct web_request *ret_request)
{
    struct span text = { .data = (const char *)head->bytes.data, .size = head->bytes.size };
    struct http_request http;
    int result = 0;

    *ret_request = (struct web_request){ .extra = "", .why = "" };
    if (head->state == HTTP_HEAD_TOO_LONG)
        refuse(ret_request, 431, "", "the request head is over 8 KiB\n");
    else if (head->state != HTTP_HEAD_COMPLETE || http_request_parse(text, &http) < 0)
        refuse(ret_request, 400, "", "malformed request\n");
    else
        result = judge(&http, policy, ret_request);
    if (result < 0)
        web_request_done(ret_request);
    return result;
}

void web_request_done(struct web_request *request)
{
    buf_done(&request->access_key);
}
