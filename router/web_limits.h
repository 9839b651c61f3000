/* web_limits.h - everything a client of the web front can make grow has its maximum here.
 *
 * What all fronts share (queues, channels, calls in all) is in router_limits.h; the request
 * head's 8 KiB in http.h, the JSON depth in json_scan.h. */
#pragma once

/* Further connections, and further ones whose request is not answered yet, get 503. */
#define WEB_CONNECTIONS_MAX 1024u
#define WEB_GREETING_MAX 256u
/* Refused ones that still get to read their 503; beyond it they are closed without a word. */
#define WEB_REFUSED_MAX 64u
#define WEB_HEAD_TIMEOUT_MS 10000u

#define WEB_LISTENERS_MAX 16u

#define WEB_MAIN_MESSAGE_MAX_BYTES (16u * 1024 * 1024)
#define WEB_CHANNEL_MESSAGE_MAX_BYTES (1024u * 1024)
/* Messages that are not whole yet, of all connections: beyond it the one under way is refused.
 */
#define WEB_PARTIAL_TOTAL_BYTES (256u * 1024 * 1024)

#define WEB_ID_MAX_BYTES 256u            /* invocation_id, function_id, id of a registration */
#define WEB_CONTEXT_MAX_BYTES 8192u      /* traceparent, baggage: longer ones are not echoed */
#define WEB_REGISTRATIONS_MAX 256u       /* of one connection: more are not remembered */
#define WEB_IDENTITY_MAX_BYTES 256u      /* name, runtime, version, os: cut */
#define WEB_LOGGED_RESULT_BYTES 1048576u /* a Python client takes no more */

/* Silence after which `/` and `/otel` get a ping, and how many may stay unanswered. */
#define WEB_PING_INTERVAL_MS 30000u
#define WEB_PING_MISSES_MAX 3u

/* From our close frame to the end of TCP, if the echo does not come. */
#define WEB_CLOSE_WAIT_MS 1000u
/* How long last bytes (an answer, an echoed close frame) may take to leave. */
#define WEB_LINGER_MS 1000u

/* From front_web_stop() to the end of the last connection. */
#define WEB_STOP_MAX_MS 10000u

/* What a channel's reader may have waiting in its socket. */
#define WEB_READER_WINDOW_BYTES (256u * 1024)
