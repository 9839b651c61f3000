/* fixture.h - a whole adapter process inside the test: its loop, a back end that makes no
 * machines, and the router's end of its link, which the test plays itself. */
#pragma once

#include "adapter.h"
#include "envelope.h"
#include "fault.h"
#include "folder.h"
#include "list.h"
#include "request.h"
#include "sp.h"
#include "turn.h"

/* One message of the adapter. */
struct message {
    struct list node;
    struct envelope envelope; /* its spans lie in `bytes` */
    size_t size;
    uint8_t bytes[];
};

struct fixture {
    struct loop *loop;
    char directory[FOLDER_PATH_BYTES];
    char settings_path[96];
    char router_url[96];
    struct adapter *adapter;

    struct stream_listener *listener;
    struct sp *link; /* NULL: not connected */
    unsigned links;  /* so many have been made */
    struct list messages;

    /* What the back end does with operations that are in no table; NULL: nothing. */
    bool (*own_operation)(struct fixture *fixture, const char *operation,
                          struct request *request);
    const char *features[4];
    const struct backend_ops *machines; /* its machine_* are used; NULL: no machine starts */
    const char *scratch_directory;      /* of the writable layers; NULL: they take no room */
    uint64_t disk_bytes;                /* what each of them takes */
    struct fault fault;
    bool has_fault;
    unsigned reloads;
    struct request *requests[16]; /* that fixture_keep() took */
    unsigned request_count;
};

/* The one of this test's process; the back end finds its way back through it. */
extern struct fixture fixture;
extern const struct backend_ops fixture_ops;

/* Makes folder, settings and router. EXTRA: further lines of sandbox.settings, or "". */
void fixture_prepare(const char *extra);
void fixture_write_settings(const char *extra);
void fixture_start_adapter(void);
/* Turns until the adapter has connected and said HELLO, then welcomes it. */
void fixture_welcome(void);
/* All of it. */
void fixture_open(const char *extra);
void fixture_close(void);

void fixture_send(const struct envelope *message);
void fixture_call(uint64_t id, const char *operation, const char *body);
/* The next message of KIND, or the next one of ID too; turns until it comes. The caller frees.
 */
struct message *fixture_next(enum envelope_kind kind);
struct message *fixture_answer(uint64_t id);
/* The answer's body is this text, and it is a REPLY. */
void fixture_expect_reply(uint64_t id, const char *body);
/* The answer is an ERROR of CODE whose body holds TEXT. */
void fixture_expect_error(uint64_t id, const char *code, const char *text);
/* No message of KIND has come by now. */
void fixture_expect_none(enum envelope_kind kind);
void fixture_drop_link(void);

/* An own_operation: keeps the request for the test; `test::key` asks idempotency first. */
bool fixture_keep(struct fixture *self, const char *operation, struct request *request);
void fixture_reply(unsigned index, const char *json);
void fixture_fail(unsigned index, enum sandbox_code code, const char *message);

/* Writes an executable script NAME into the folder; the installer is `installer`. */
void fixture_script(const char *name, const char *text);
