/* channel.h - the adapter's end of a data channel (contract 9), over the router's link. */
#pragma once

#include "error.h"
#include "request.h"

struct channel;
struct channels;

struct channel_events {
    /* Reader: bytes came (1 byte to 64 KiB). The window is given back by channel_grant(). */
    void (*data)(void *ctx, const uint8_t *data, size_t size);
    /* Writer: the window is open again after channel_write() took less than it was given, or
     * the reader attached for the first time. */
    void (*writable)(void *ctx);
    /* Once, last. CLEAN: the writer's clean end (reader only). REASON: why not, for S218. */
    void (*closed)(void *ctx, bool clean, const char *reason);
};

/* Attaches as reader to the channel of REF (fs::write). Failure comes as `closed`. */
int channel_open_reader(struct adapter *adapter, const struct channel_ref *ref,
                        const struct channel_events *events, void *ctx,
                        struct channel **ret_channel, struct sandbox_error *err);

/* Makes a new channel at the router and attaches as writer; READY once: the reader's ref
 * (borrowed for the call) or an error. Nothing may be written before the reader has attached:
 * until then the window is 0, so that unattached reads produce nothing. */
typedef void (*channel_ready_fn)(void *ctx, const struct channel_ref *reader,
                                 struct sandbox_error *err);
int channel_create_writer(struct adapter *adapter, const struct channel_events *events,
                          void *ctx, channel_ready_fn ready, struct channel **ret_channel,
                          struct sandbox_error *err);

void channel_grant(struct channel *channel, size_t size);
size_t channel_window(const struct channel *channel); /* bytes that may be written now */
/* Sends at most the window; returns how many bytes were taken. */
size_t channel_write(struct channel *channel, const uint8_t *data, size_t size);
/* Writer: clean end. Both: abort with a reason. No callback follows either one; nothing happens
 * when it is over already. */
void channel_end(struct channel *channel);
void channel_abort(struct channel *channel, enum sandbox_code code, const char *reason);
/* Detaches (an abort if it is not over) and frees; no callback follows. */
void channel_free(struct channel *channel);
DEFINE_CLEANUP(struct channel *, channel_free)

/* All channels of the process; for adapter.c and serve.c. */
#define CHANNELS_UNATTACHED_MAX 1024u /* writers whose reader did not come yet */
int channels_new(struct adapter *adapter, struct channels **ret_channels);
void channels_free(struct channels *channels);
DEFINE_CLEANUP(struct channels *, channels_free)
/* DATA, CREDIT or CLOSE of the router. -EPROTO: beyond the window, or an id never opened. */
int channels_message(struct channels *channels, const struct envelope *message);
/* The connection is gone: all end. */
void channels_link_lost(struct channels *channels);
