/* client_output.c - see client_output.h. */
#include "client_output.h"

#include <errno.h>

#include "sink.h"

struct waiting {
    bool over;
    int error; /* -errno */
};

static void on_drained(void *ctx, int error)
{
    struct waiting *waiting = ctx;

    *waiting = (struct waiting){ .over = true, .error = error };
}

static bool is_over(const void *ctx)
{
    const struct waiting *waiting = ctx;

    return waiting->over;
}

static int wait_for_reader(struct client *client, struct waiting *waiting)
{
    enum client_outcome outcome;

    do {
        outcome = client_wait_for(client, is_over, waiting, CLIENT_NO_DEADLINE, false);
        if (outcome == CLIENT_LOST)
            client_reset(client);
    } while (outcome == CLIENT_LOST);
    return outcome == CLIENT_INTERRUPTED ? -EINTR : waiting->error;
}

int client_output(struct client *client, int fd, const void *data, size_t size)
{
    struct waiting waiting = { 0 };
    struct sink sink = {
        .loop = client->loop, .fd = fd, .drained = on_drained, .ctx = &waiting
    };
    int result = sink_write(&sink, data, size);

    if (result == 0 && sink_is_full(&sink))
        result = wait_for_reader(client, &waiting);
    sink_done(&sink);
    return result;
}
