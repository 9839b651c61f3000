/* router_limits.h - everything a peer of the router can make grow has its maximum here.
 *
 * The limits of the web front's wire (heads, frames, registrations) are in front_web's own
 * header. */
#pragma once

/* Native connections, adapters and callers together; further ones are closed at accept. */
#define NATIVE_CONNECTIONS_MAX 1024u
/* Of these, before their HELLO; it must come within NATIVE_HELLO_TIMEOUT_MS. */
#define NATIVE_GREETING_MAX 256u
#define NATIVE_HELLO_TIMEOUT_MS 10000u
/* Of these, those of other hosts, which have not even shown a certificate yet: for one more the
 * oldest goes, so that they keep out neither this machine's own nor, for long, each other. */
#define NATIVE_REMOTE_GREETING_MAX 128u
/* Waiting for a connection that sends PINGs: beyond it they are not answered, as whoever takes
 * nothing of what is there need not be told that we live. */
#define NATIVE_PONG_QUEUE_BYTES (64u * 1024)
/* Of these, adapters, parked ones included. */
#define ADAPTERS_MAX 16u

#define ADAPTER_NAME_MAX_BYTES 128u
#define FUNCTION_NAME_MAX_BYTES 256u
#define TRACEPARENT_MAX_BYTES 8192u

/* Calls in flight of one native caller, and of all callers together (tombstones count): S400.
 */
#define CALLER_CALLS_MAX 1024u
#define CALLS_MAX 65536u

/* Of these, cancelled ones whose answer an adapter still owes: with more it answers no cancel
 * at all, and its connection is broken before it holds the places of everybody. */
#define ADAPTER_OWED_MAX (CALLS_MAX / 4)

/* Streams attached by one native connection. */
#define CONNECTION_STREAMS_MAX 2048u

/* Waiting to be sent to one connection: beyond it the router reads nothing more from it, and
 * drops it after BACKLOG_STALL_MS in which nothing moved. */
#define BACKLOG_CONNECTION_BYTES (8u * 1024 * 1024)
#define BACKLOG_STALL_MS 30000u
/* Waiting in all: beyond it the connection with the most is dropped. */
#define BACKLOG_TOTAL_BYTES (256u * 1024 * 1024)

/* Twice what one adapter keeps for readers that have not come (contract 9.3), so that those
 * never stand in the way of others. */
#define CHANNELS_MAX 2048u
#define CHANNEL_BUFFER_DEFAULT 64u
#define CHANNEL_BUFFER_MAX 1024u
#define CHANNEL_HELD_BYTES (256u * 1024)
/* What a writer may still send after it was told to pause (what was read already). */
#define CHANNEL_OVERRUN_BYTES (1280u * 1024)
#define CHANNEL_UNTAKEN_MS (5u * 60 * 1000)
#define CHANNEL_STALL_MS (5u * 60 * 1000)

/* A message is a body and what names the call. */
#define MESSAGE_OVERHEAD_BYTES 16384u

/* Silence after which a PING goes out, and how many may stay unanswered. */
#define PING_INTERVAL_MS 5000u
#define PING_MISSES_MAX 3u

#define INFO_TIMEOUT_MS 2000u
#define SHUTDOWN_GRACE_MS 10000u
#define SHUTDOWN_LINGER_MS 1000u

/* How long a connected adapter may take to show that it lives when another comes by its name.
 */
#define RIVAL_TIMEOUT_MS 2000u

/* Restarts of a managed adapter: doubling between these, by chance a quarter more or less; one
 * that ran for SUPERVISE_STEADY_MS begins anew. */
#define SUPERVISE_BACKOFF_MIN_MS 200u
#define SUPERVISE_BACKOFF_MAX_MS 30000u
#define SUPERVISE_STEADY_MS 60000u
/* From SIGTERM to SIGKILL. */
#define SUPERVISE_STOP_MS 10000u

/* What a managed adapter says goes into our log: bytes of a line, lines in a second. */
#define OUTPUT_LINE_MAX_BYTES 8192u
#define OUTPUT_LINES_PER_SECOND 200u
/* Outputs still open, those of earlier processes included (their children may hold them). */
#define OUTPUTS_MAX 16u

/* Without a call for so long: free memory goes back to the kernel. */
#define MEMORY_QUIET_MS 2000u
