/* fs_grep.c - grep (contract 8.8). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_error.h"
#include "glob.h"
#include "lines.h"
#include "path.h"
#include "pattern.h"
#include "utf8.h"
#include "walk.h"

#define BINARY_PROBE_BYTES 8192u
#define ANSWER_TEXT_BYTES_MAX (2u * 1024 * 1024)
#define CUT_MARK "\xe2\x80\xa6" /* U+2026 */

struct grep {
    const struct fs_grep_request *request;
    struct fs_grep_reply *reply;
    struct job *job;
    struct pattern *pattern;
    size_t room;       /* of reply->matches */
    size_t text_bytes; /* of its paths and contents */
};

/* The text of a match: the line, cut if it is too long. 0 or -ENOMEM. */
static int match_content(const struct grep *grep, const char *line, size_t size,
                         struct blob *ret_content)
{
    const uint64_t max = grep->request->max_line_bytes;
    const bool cut = max > 0 && size > max;
    const size_t kept = cut ? utf8_boundary(line, size, (size_t)max) : size;
    const size_t mark = cut ? strlen(CUT_MARK) : 0;

    ret_content->data = malloc(kept + mark + 1);
    if (!ret_content->data)
        return -ENOMEM;
    memcpy(ret_content->data, line, kept);
    memcpy(ret_content->data + kept, CUT_MARK, mark);
    ret_content->data[kept + mark] = 0;
    ret_content->size = kept + mark;
    return 0;
}

static int matches_make_room(struct grep *grep)
{
    struct fs_grep_match_list *matches = &grep->reply->matches;
    struct fs_grep_match *items;

    if (matches->count < grep->room)
        return 0;
    grep->room = grep->room ? grep->room * 2 : 64;
    items = reallocarray(matches->items, grep->room, sizeof(*items));
    if (!items)
        return -ENOMEM;
    matches->items = items;
    return 0;
}

/* A name that is not UTF-8 is shown repaired. NULL: no memory. */
static char *path_text(const char *path)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    if (utf8_repair(&text, path, strlen(path)) < 0)
        return NULL;
    return (char *)buf_take(&text, NULL);
}

/* 0 or -ENOMEM; sets reply->truncated when that was the last that fits. */
static int grep_add(struct grep *grep, const char *path, uint64_t number,
                    const struct line *line)
{
    struct fs_grep_match match = { .has_path = true, .has_line = true, .has_content = true };
    struct fs_grep_match_list *matches = &grep->reply->matches;

    match.line = number;
    match.path = path_text(path);
    if (!match.path || matches_make_room(grep) < 0 ||
        match_content(grep, line->text, line->size, &match.content) < 0) {
        free(match.path);
        return -ENOMEM;
    }
    grep->text_bytes += strlen(match.path) + match.content.size;
    if (grep->text_bytes > ANSWER_TEXT_BYTES_MAX) {
        codec_free(&type_fs_grep_match, &match);
        grep->reply->truncated = true;
        return 0;
    }
    matches->items[matches->count++] = match;
    grep->reply->truncated = matches->count == grep->request->max_matches;
    return 0;
}

static int grep_line(struct grep *grep, const char *path, uint64_t number, struct line *line,
                     struct sandbox_error *err)
{
    struct pattern_subject subject;
    int result;

    if (line->text[line->size - 1] == '\n')
        line->size--;
    if (!utf8_valid(line->text, line->size))
        return 0;
    subject = (struct pattern_subject){ .text = line->text, .size = line->size };
    result = pattern_match(grep->pattern, &subject, err);
    if (result <= 0)
        return result;
    return grep_add(grep, path, number, line) < 0 ? fs_error(err, ENOMEM, path) : 0;
}

static int grep_lines(struct grep *grep, int fd, const char *path, struct sandbox_error *err)
{
    _cleanup_(lines_done)
    struct lines lines;
    struct line line;
    int result;

    lines_init(&lines, fd);
    result = lines_begin_with_nul(&lines, BINARY_PROBE_BYTES);
    if (result != 0)
        return result < 0 ? fs_error(err, -result, path) : 0;
    for (uint64_t number = 1; !grep->reply->truncated; number++) {
        if (job_cancelled(grep->job))
            return sandbox_error_set(err, S216, "%s: the call was cancelled", path);
        result = lines_next(&lines, &line);
        if (result == -EFBIG)
            return sandbox_error_set(err, S216, "%s: line %llu is over %u bytes", path,
                                     (unsigned long long)number, LINE_BYTES_MAX);
        if (result <= 0)
            return result < 0 ? fs_error(err, -result, path) : 0;
        if (grep_line(grep, path, number, &line, err) < 0)
            return -1;
    }
    return 0;
}

/* A file of the walk, or PATH itself as FOLDER_FD AT_FDCWD. */
static int grep_file(struct grep *grep, int folder_fd, const char *name, const char *path,
                     struct sandbox_error *err)
{
    const int no_follow = folder_fd == AT_FDCWD ? 0 : O_NOFOLLOW;
    _cleanup_close_ int fd = openat(folder_fd, name,
                                    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | no_follow);
    struct stat status;

    if (fd < 0 && folder_fd != AT_FDCWD && (errno == ENOENT || errno == ELOOP))
        return 0; /* vanished meanwhile */
    if (fd < 0 || fstat(fd, &status) < 0)
        return fs_error(err, errno, path);
    if (!S_ISREG(status.st_mode))
        return 0;
    return grep_lines(grep, fd, path, err);
}

static int grep_folder(struct grep *grep, const struct path *path, struct sandbox_error *err)
{
    const struct fs_grep_request *request = grep->request;
    _cleanup_(walk_freep)
    struct walk *walk = NULL;
    struct walk_entry entry;
    int fd = open(path->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -errno : walk_open(fd, path->text, &walk);

    if (result < 0)
        return fs_error(err, -result, path->text);
    while (!grep->reply->truncated && (result = walk_next(walk, &entry)) > 0) {
        if (job_cancelled(grep->job))
            return sandbox_error_set(err, S216, "%s: the call was cancelled", entry.path);
        if (entry.kind != WALK_FILE || !S_ISREG(entry.mode) ||
            !globs_choose(&request->include_glob, &request->exclude_glob, entry.relative))
            continue;
        if (grep_file(grep, entry.folder_fd, entry.name, entry.path, err) < 0)
            return -1;
    }
    return result < 0 ? fs_error(err, -result, walk_path(walk)) : 0;
}

static int grep_search(struct grep *grep, const struct path *path, const struct stat *status,
                       struct sandbox_error *err)
{
    const struct fs_grep_request *request = grep->request;

    if (S_ISDIR(status->st_mode)) {
        if (!request->recursive)
            return sandbox_error_set(err, S210, "%s is a directory and `recursive` is false",
                                     path->text);
        return grep_folder(grep, path, err);
    }
    if (!S_ISREG(status->st_mode))
        return fs_wrong_type(err, path->text, status->st_mode, "a regular file or a directory");
    if (!globs_choose(&request->include_glob, &request->exclude_glob, path->name))
        return 0;
    return grep_file(grep, AT_FDCWD, path->text, request->path, err); /* echoed as given */
}

int fs_grep(struct job *job, const struct fs_grep_request *request, struct fs_grep_reply *reply,
            struct sandbox_error *err)
{
    const struct pattern_spec spec = {
        .text = request->pattern,
        .ignore_case = request->ignore_case,
    };
    _cleanup_(pattern_freep)
    struct pattern *pattern = NULL;
    struct grep grep = { .request = request, .reply = reply, .job = job };
    struct stat status;
    struct path path;

    if (path_init(&path, "path", request->path, err) < 0 ||
        globs_check("include_glob", &request->include_glob, err) < 0 ||
        globs_check("exclude_glob", &request->exclude_glob, err) < 0)
        return -1;
    if (stat(path.text, &status) < 0)
        return fs_error(err, errno, path.text);
    if (pattern_new(&spec, job, &pattern, err) < 0)
        return -1;
    grep.pattern = pattern;
    reply->has_matches = reply->has_truncated = true;
    return grep_search(&grep, &path, &status, err);
}
