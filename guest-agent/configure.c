/* configure.c - see configure.h. */
#include "configure.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base64.h"
#include "buf.h"
#include "log.h"
#include "network.h"
#include "temporary.h"

#define SEED_BYTES_MAX 192u /* of at most 256 characters of base64 */
#define NS_A_SECOND 1000000000

static void warn(const char *step, int error)
{
    log_event(LOG_WARN, "configure", log_text("step", step),
              log_text("error", strerror(-error)));
}

static void set_clock(int64_t realtime_ns)
{
    const struct timespec now = {
        .tv_sec = (time_t)(realtime_ns / NS_A_SECOND),
        .tv_nsec = (long)(realtime_ns % NS_A_SECOND),
    };

    if (realtime_ns > 0 && clock_settime(CLOCK_REALTIME, &now) < 0)
        warn("clock", -errno);
}

/* Mixes the host's bytes in and makes the generator take them up at once: clones of a template
 * share everything else. */
static void set_seed(const char *text)
{
    _cleanup_(buf_done)
    struct buf bytes = { .limit = SEED_BYTES_MAX };
    _cleanup_close_ int fd = -1;
    union {
        struct rand_pool_info info;
        uint8_t bytes[sizeof(struct rand_pool_info) + SEED_BYTES_MAX];
    } seed;

    if (!text || !*text)
        return;
    if (base64_decode(&bytes, text, strlen(text)) < 0) {
        warn("seed", -EINVAL);
        return;
    }
    seed.info.entropy_count = (int)bytes.size * 8;
    seed.info.buf_size = (int)bytes.size;
    memcpy(seed.bytes + sizeof(seed.info), bytes.data, bytes.size);
    fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, RNDADDENTROPY, &seed) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
        warn("seed", -errno);
    explicit_bzero(&seed, sizeof(seed));
}

/* A regular file is written in its place, which is several times cheaper than a new one; no
 * program runs yet that could see it half done. False: it is another one's, or no such file. */
static bool overwrite(int folder_fd, const char *name, const char *text)
{
    const size_t size = strlen(text);
    _cleanup_close_ int fd = openat(folder_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
        status.st_uid != 0 || (status.st_mode & 07777) != 0644)
        return false;
    if (pwrite(fd, text, size, 0) != (ssize_t)size)
        return false;
    return status.st_size == (off_t)size || ftruncate(fd, (off_t)size) == 0;
}

/* Replaces NAME in /etc whole, also where an image has a link. */
static void write_etc(const char *name, const char *text)
{
    _cleanup_close_ int folder_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(temporary_done)
    struct temporary file = TEMPORARY_NONE;
    int result = folder_fd < 0 ? -errno : 0;

    if (result == 0 && overwrite(folder_fd, name, text))
        return;
    if (result == 0)
        result = temporary_open(&file, folder_fd);
    if (result == 0)
        result = temporary_write(&file, text, strlen(text));
    if (result == 0)
        result = temporary_set_owner(&file, 0, 0, 0644);
    if (result == 0)
        result = temporary_commit(&file, name, true);
    if (result < 0)
        warn(name, result);
}

static void set_hostname(const char *hostname)
{
    char text[512] = "";

    if (!hostname || !*hostname)
        return;
    (void)gethostname(text, sizeof(text) - 1);
    if (strcmp(text, hostname) != 0 && sethostname(hostname, strlen(hostname)) < 0)
        warn("hostname", -errno); /* a container may have been given its name already */
    (void)snprintf(text, sizeof(text), "%s\n", hostname);
    write_etc("hostname", text);
    (void)snprintf(text, sizeof(text),
                   "127.0.0.1\tlocalhost\n"
                   "::1\tlocalhost ip6-localhost ip6-loopback\n"
                   "127.0.1.1\t%s\n",
                   hostname);
    write_etc("hosts", text);
}

static void set_machine_id(const char *machine_id)
{
    char text[64];

    if (!machine_id || !*machine_id)
        return;
    (void)snprintf(text, sizeof(text), "%s\n", machine_id);
    write_etc("machine-id", text);
}

static void set_resolver(const struct guest_configure *configure)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    if (configure->dns)
        (void)buf_printf(&text, "nameserver %s\n", configure->dns);
    if (configure->dns6)
        (void)buf_printf(&text, "nameserver %s\n", configure->dns6);
    if (text.size > 0)
        write_etc("resolv.conf", buf_text(&text));
}

void configure_apply(const struct guest_configure *configure, bool machine)
{
    int result;

    if (machine)
        set_clock(configure->realtime_ns);
    if (machine)
        set_seed(configure->seed);
    set_hostname(configure->hostname);
    set_machine_id(configure->machine_id);
    set_resolver(configure);
    result = network_configure(configure);
    if (result < 0)
        warn("network", result);
}
