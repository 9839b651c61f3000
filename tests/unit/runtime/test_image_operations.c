/* test_image_operations.c - image::ls, pull, rm, prune and verify (docs/images.md), called as
 * the router calls them, with a shell script as installer. */
#include "fixture.h"
#include "image_cache.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* `big` takes 3 MiB on disk, the others little. */
#define SETTINGS                                                                               \
    "    image_allowlist: [one]\n"                                                             \
    "    custom_images: {one: 'rootfs:/srv/one', two: 'rootfs:/srv/two', big: "                \
    "'rootfs:/srv/big'}\n"
#define INSTALLER                                                                              \
    "while [ $# -gt 0 ]; do case $1 in --dir) dir=$2;; --source) source=$2;; esac; shift; "    \
    "done\n"                                                                                   \
    "echo 'progress pulling 10 100'\n"                                                         \
    "echo 'progress unpacking 7'\n"                                                            \
    "echo $source >$dir/x\n"                                                                   \
    "[ $source != rootfs:/srv/big ] || head -c 3000000 /dev/urandom >$dir/y\n"                 \
    "echo done"

static uint64_t calls;

static struct message *answer_to(const char *operation, const char *body)
{
    fixture_call(++calls, operation, body);
    return fixture_answer(calls);
}

static bool holds(const struct message *message, const char *text)
{
    const struct span *body = &message->envelope.body;

    return memmem(body->data, body->size, text, strlen(text)) != NULL;
}

/* The answer is of KIND and holds TEXT. */
static void expect(const char *operation, const char *body, enum envelope_kind kind,
                   const char *text)
{
    struct message *message = answer_to(operation, body);

    ck_assert_msg(message->envelope.kind == kind && holds(message, text), "%s %s: %.*s",
                  operation, body, (int)message->envelope.body.size,
                  message->envelope.body.data);
    free(message);
}

static void expect_reply(const char *operation, const char *body, const char *text)
{
    expect(operation, body, ENVELOPE_REPLY, text);
}

static void expect_error(const char *operation, const char *body, const char *text)
{
    expect(operation, body, ENVELOPE_ERROR, text);
}

static void digest_of(const char *image, char ret_digest[HASH_SHA256_HEX_BYTES])
{
    image_cache_digest(adapter_images(fixture.adapter), adapter_settings(fixture.adapter),
                       image, ret_digest);
}

/* The image is there afterwards; INSTALLED: it was not before. */
static void pull(const char *image, bool installed)
{
    char body[64];

    (void)snprintf(body, sizeof(body), "{\"image\":\"%s\"}", image);
    expect_reply("image::pull", body, installed ? "\"installed\":true" : "\"installed\":false");
}

static void begin(void)
{
    fixture_open(SETTINGS);
    fixture_script("installer", INSTALLER);
}

/* The settings are LINES and MORE from now on. */
static void change_settings(const char *lines, const char *more)
{
    char settings[1024];

    (void)snprintf(settings, sizeof(settings), "%s%s", lines, more);
    fixture_write_settings(settings);
    adapter_reload(fixture.adapter);
}

/* Runs a command in the cache's folder of images. */
static void in_cache(const char *command)
{
    char text[512];

    (void)snprintf(text, sizeof(text), "cd %s/cache/images && %s", fixture.directory, command);
    ck_assert_int_eq(system(text), 0);
}

START_TEST(test_pull_and_ls)
{
    static const char *const events[] = {
        "{\"event\":\"pulling_image\",\"image_ref\":\"rootfs:"
        "/srv/two\",\"progress_bytes\":10,\"total_bytes\":100,"
        "\"bytes_per_second\":0}",
        "\"stage\":\"unpacking\",\"progress_bytes\":7,", "\"stage\":\"sealing\""
    };
    char text[256], digest[HASH_SHA256_HEX_BYTES];
    struct message *event;

    expect_reply("image::ls", "{}", "\"name\":\"python\",\"kind\":\"preset\"");
    expect_reply("image::ls", "{}",
                 "{\"name\":\"two\",\"kind\":\"custom\",\"source\":\"rootfs:/srv/two\","
                 "\"allowed\":false,\"state\":\"missing\",\"digest\":\"");
    pull("two", true);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        event = fixture_next(ENVELOPE_EVENT);
        ck_assert_msg(holds(event, events[i]), "%.*s", (int)event->envelope.body.size,
                      event->envelope.body.data);
        free(event);
    }
    pull("two", false);
    fixture_expect_none(ENVELOPE_EVENT);
    expect_reply("image::pull", "{\"image\":\"two\",\"anew\":true}", "\"installed\":true");
    digest_of("two", digest);
    (void)snprintf(text, sizeof(text),
                   "\"state\":\"ready\",\"digest\":\"%s\",\"size_bytes\":", digest);
    expect_reply("image::ls", "{}", text);
    expect_error("image::pull", "{\"image\":\"three\"}", "S100");
    expect_error("image::pull", "{}", "S001");
    expect_error("image::pull", "{\"image\":7}", "S001");
    expect_error("image::ls", "[]", "S001");
}
END_TEST

START_TEST(test_pull_says_why_not)
{
    change_settings(SETTINGS, "    auto_install: false\n");
    pull("two", true);
    fixture_script("installer", "echo 'no such thing' >&2; exit 1");
    expect_error("image::pull", "{\"image\":\"two\",\"anew\":true}", "no such thing");
    /* The old one is still there. */
    pull("two", false);
}
END_TEST

START_TEST(test_pull_is_cancelled)
{
    fixture_script("installer", "touch ${0%/*}/begun; sleep 600");
    fixture_call(++calls, "image::pull", "{\"image\":\"one\"}");
    turn_for(fixture.loop, 50);
    fixture_send(&(struct envelope){ .kind = ENVELOPE_CANCEL, .id = calls });
    fixture_expect_error(calls, "S102", "caller is gone");
    fixture_script("installer", INSTALLER);
    pull("one", true);
    fixture_script("installer", "sleep 600");
    fixture_call(++calls, "image::pull", "{\"image\":\"two\"}");
    turn_for(fixture.loop, 50);
    /* It ends, under the leak checker, with a pull that runs. */
}
END_TEST

START_TEST(test_rm)
{
    char body[128], wanted[128], digest[HASH_SHA256_HEX_BYTES];

    digest_of("one", digest);
    (void)snprintf(wanted, sizeof(wanted), "{\"removed\":[\"%s\"],\"freed_bytes\":", digest);
    expect_error("image::rm", "{\"image\":\"one\"}", "one is not on disk");
    expect_error("image::rm", "{\"image\":\"three\"}", "S100");
    expect_error("image::rm", "{\"image\":\"../../etc\"}", "S100");
    pull("one", true);
    expect_reply("image::rm", "{\"image\":\"one\"}", wanted);
    in_cache("[ -z \"$(ls | grep -v lock)\" ]");
    pull("one", true);
    (void)snprintf(body, sizeof(body), "{\"image\":\"%s\"}", digest);
    expect_reply("image::rm", body, wanted);
    expect_reply("image::ls", "{}", "\"total_bytes\":0");
}
END_TEST

static void on_held(void *ctx, const struct image *own_image, bool installed,
                    struct sandbox_error *err)
{
    ck_assert_ptr_nonnull(own_image);
    *(const struct image **)ctx = own_image;
}

/* What is in use or being worked on stays. */
START_TEST(test_rm_of_what_is_needed)
{
    static const struct image_wait_events events = { .done = on_held };
    struct image_wait *wait;
    const struct image *held = NULL;

    pull("one", true);
    ck_assert_int_eq(image_cache_get(adapter_images(fixture.adapter),
                                     adapter_settings(fixture.adapter), "one", 0, &events,
                                     &held, &wait),
                     0);
    TURN_UNTIL(fixture.loop, held);
    image_wait_free(wait);
    expect_reply("image::ls", "{}", "\"in_use\":true");
    expect_error("image::rm", "{\"image\":\"one\"}", "one is in use");
    expect_reply("image::prune", "{\"max_mb\":0}", "{\"removed\":[],\"freed_bytes\":0}");
    image_unref(held);
    in_cache("for lock in *.lock; do flock $lock sh -c 'touch ../locked; "
             "while [ -e ../locked ]; do sleep 0.05; done' & done; "
             "while ! [ -e ../locked ]; do sleep 0.05; done");
    expect_error("image::rm", "{\"image\":\"one\"}", "being installed or checked");
    in_cache("rm ../locked");
}
END_TEST

START_TEST(test_verify)
{
    expect_reply("image::verify", "{}", "{\"images\":[],\"damaged\":false}");
    pull("one", true);
    pull("two", true);
    expect_reply("image::verify", "{}", "\"damaged\":false");
    expect_reply("image::verify", "{\"image\":\"two\"}", "\"state\":\"ready\"");
    expect_error("image::verify", "{\"image\":\"three\"}", "S100");
    expect_error("image::verify", "{\"image\":\"big\"}", "not on disk");
    /* A byte that changed without a trace: all times are as before. */
    in_cache(
        "for x in */x; do touch -r $x ../times; "
        "printf X | dd of=$x bs=1 seek=2 conv=notrunc status=none; touch -r ../times $x; done");
    expect_reply("image::verify", "{\"image\":\"one\"}", "./x: FAILED");
    expect_reply("image::verify", "{}", "\"damaged\":true");
    pull("one", true);
    expect_reply("image::verify", "{\"image\":\"one\"}", "\"damaged\":false");
    in_cache("rm */image.json");
    expect_reply("image::ls", "{}", "\"state\":\"damaged\"");
    expect_reply("image::verify", "{}", "\"damaged\":true");
}
END_TEST

/* `two` is in no setting any more, `one` and `big` are; big takes nearly 3 MiB. */
static void three_images(const char *more)
{
    pull("two", true);
    pull("one", true);
    change_settings("    image_allowlist: [one]\n"
                    "    custom_images: {one: 'rootfs:/srv/one', big: 'rootfs:/srv/big'}\n",
                    more);
    expect_reply("image::ls", "{}", "\"name\":\"two\",\"kind\":\"none\"");
}

START_TEST(test_room)
{
    three_images("    max_cache_mb: 2\n");
    expect_reply("image::prune", "{}", "{\"removed\":[],\"freed_bytes\":0}");
    /* Over the limit: all others go, the new one stays. */
    pull("big", true);
    expect_reply("image::ls", "{}",
                 "\"name\":\"one\",\"kind\":\"custom\",\"source\":\"rootfs:/srv/one\","
                 "\"allowed\":true,\"state\":\"missing\"");
    expect_reply("image::ls", "{}", "\"limit_bytes\":2097152");
    pull("big", false);
    expect_reply("image::prune", "{\"max_mb\":2}", "{\"removed\":[\"");
    expect_reply("image::ls", "{}", "\"total_bytes\":0");
}
END_TEST

START_TEST(test_room_without_auto_install)
{
    three_images("    auto_install: false\n");
    pull("big", true);
    /* Only what no setting names: the rest could not come back by itself. */
    expect_reply("image::prune", "{\"max_mb\":0}", "{\"removed\":[\"");
    pull("one", false);
    pull("big", false);
    expect_reply("image::prune", "{\"max_mb\":0}", "{\"removed\":[],\"freed_bytes\":0}");
}
END_TEST

UNIT_MAIN_IN(begin, fixture_close, "image_operations", test_pull_and_ls, test_pull_says_why_not,
             test_pull_is_cancelled, test_rm, test_rm_of_what_is_needed, test_verify, test_room,
             test_room_without_auto_install)
