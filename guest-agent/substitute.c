/* substitute.c - see substitute.h.
 *
 * One pass: until the first match nothing is written; then the lines so far are copied and the
 * rest follows. Memory is one line and a little, whatever the replacement grows to. */
#include "substitute.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "fs_error.h"
#include "lines.h"
#include "temporary.h"
#include "utf8.h"

#define WRITE_BYTES (64u * 1024)

struct pass {
    const struct substitution *substitution;
    const char *path;
    int folder_fd;
    int fd;
    struct temporary file; /* open since the first match */
    struct buf out;        /* not yet written to it */
    uint64_t replacements;
};

static void pass_done(struct pass *pass)
{
    temporary_done(&pass->file);
    buf_done(&pass->out);
    closep(&pass->fd);
}

static int pass_flush(struct pass *pass)
{
    int result = temporary_write(&pass->file, pass->out.data, pass->out.size);

    buf_clear(&pass->out);
    return result;
}

/* 0 or -errno. */
static int pass_emit(struct pass *pass, const char *text, size_t size)
{
    if (size == 0)
        return 0;
    if (pass->out.size + size > WRITE_BYTES) {
        int result = pass_flush(pass);

        if (result < 0)
            return result;
    }
    if (size > WRITE_BYTES)
        return temporary_write(&pass->file, text, size);
    return buf_append(&pass->out, text, size);
}

/* The first match: everything before this line is as it was. */
static int pass_begin_output(struct pass *pass, uint64_t line_offset)
{
    uint8_t data[WRITE_BYTES];
    uint64_t at = 0;
    int result = temporary_open(&pass->file, pass->folder_fd);

    while (result == 0 && at < line_offset) {
        const uint64_t left = line_offset - at;
        ssize_t size = pread(pass->fd, data, left < sizeof(data) ? left : sizeof(data),
                             (off_t)at);

        if (size <= 0)
            return size < 0 ? -errno : -EIO; /* it shrank meanwhile */
        at += (uint64_t)size;
        result = temporary_write(&pass->file, data, (size_t)size);
    }
    return result;
}

static int pass_replace(struct pass *pass, const char *line)
{
    const struct substitution *substitution = pass->substitution;
    struct span piece;
    size_t cursor = 0;
    int result = 0;

    while (result == 0 &&
           template_next(substitution->template, substitution->pattern, line, &cursor, &piece))
        result = pass_emit(pass, piece.data, piece.size);
    pass->replacements++;
    return result;
}

/* Where to look next after a match up to END, or after none where only a non-empty one was
 * wanted. False: nowhere. */
static bool subject_advance(struct pattern_subject *subject, bool found, size_t start,
                            size_t end)
{
    uint32_t code_point;

    if (found) {
        subject->from = end;
        subject->again_here = start == end;
        return true;
    }
    if (!subject->again_here || subject->from >= subject->size)
        return false;
    subject->from += utf8_decode(subject->text + subject->from, subject->size - subject->from,
                                 &code_point, NULL);
    subject->again_here = false;
    return true;
}

/* One match: the text before it, and what takes its place. 0 or -errno. */
static int pass_take_match(struct pass *pass, const struct line *line, size_t copied,
                           size_t start)
{
    int result = 0;

    if (pass->file.fd < 0)
        result = pass_begin_output(pass, line->offset);
    if (result == 0)
        result = pass_emit(pass, line->text + copied, start - copied);
    if (result == 0)
        result = pass_replace(pass, line->text);
    return result;
}

static int pass_line(struct pass *pass, const struct line *line, struct sandbox_error *err)
{
    struct pattern_subject subject = { .text = line->text, .size = line->size };
    size_t copied = 0, start = 0, end = 0;
    int found, result = 0;

    do {
        found = pattern_match(pass->substitution->pattern, &subject, err);
        if (found < 0)
            return -1;
        if (found == 0)
            continue;
        if (!pattern_group(pass->substitution->pattern, 0, &start, &end) || start < copied)
            break; /* \K set it back behind what is done */
        result = pass_take_match(pass, line, copied, start);
        copied = end;
        if (pass->substitution->first_only)
            break;
    } while (result == 0 && subject_advance(&subject, found > 0, start, end));
    if (result == 0 && pass->file.fd >= 0)
        result = pass_emit(pass, line->text + copied, line->size - copied);
    return result < 0 ? fs_error(err, -result, pass->path) : 0;
}

static int pass_lines(struct pass *pass, struct sandbox_error *err)
{
    _cleanup_(lines_done)
    struct lines lines;
    struct line line;
    int result;

    lines_init(&lines, pass->fd);
    for (uint64_t number = 1;; number++) {
        result = lines_next(&lines, &line);
        if (result == -EFBIG)
            return sandbox_error_set(err, S216, "%s: line %" PRIu64 " is over %u bytes",
                                     pass->path, number, LINE_BYTES_MAX);
        if (result <= 0)
            return result < 0 ? fs_error(err, -result, pass->path) : 0;
        if (!utf8_valid(line.text, line.size))
            return sandbox_error_set(err, S216, "%s: line %" PRIu64 " is not UTF-8", pass->path,
                                     number);
        if (pass_line(pass, &line, err) < 0)
            return -1;
    }
}

static int pass_commit(struct pass *pass, const char *name, const struct stat *status)
{
    int result;

    if (pass->file.fd < 0)
        return 0;
    result = pass_flush(pass);
    if (result == 0)
        result = temporary_set_owner(&pass->file, status->st_uid, status->st_gid,
                                     status->st_mode & 07777);
    return result < 0 ? result : temporary_commit(&pass->file, name, true);
}

int substitute_file(const struct substitution *substitution, int folder_fd, const char *name,
                    const char *path, uint64_t *ret_replacements, struct sandbox_error *err)
{
    _cleanup_(pass_done)
    struct pass pass = {
        .substitution = substitution,
        .path = path,
        .folder_fd = folder_fd,
        .fd = openat(folder_fd, name,
                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
        .file = TEMPORARY_NONE,
    };
    struct stat status;
    int result;

    if (pass.fd < 0 || fstat(pass.fd, &status) < 0)
        return fs_error(err, errno, path);
    if (!S_ISREG(status.st_mode))
        return fs_wrong_type(err, path, status.st_mode, "a regular file");
    if (pass_lines(&pass, err) < 0)
        return -1;
    result = pass_commit(&pass, name, &status);
    if (result < 0)
        return fs_error(err, -result, path);
    *ret_replacements = pass.replacements;
    return 0;
}
