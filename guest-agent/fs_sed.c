/* fs_sed.c - sed (contract 8.9): which files, and what came of each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs.h"
#include "fs_error.h"
#include "glob.h"
#include "path.h"
#include "substitute.h"
#include "utf8.h"
#include "walk.h"

#define FILES_MAX 20000u
#define FILES_BYTES_MAX (2u * 1024 * 1024)

struct sed {
    const struct fs_sed_request *request;
    struct fs_sed_reply *reply;
    struct substitution substitution;
    size_t room;  /* of reply->results */
    size_t count; /* files that it is about, */
    size_t bytes; /* and their paths */
};

/* Counts one more file against the limits. */
static int sed_count(struct sed *sed, const char *path, struct sandbox_error *err)
{
    sed->count++;
    sed->bytes += strlen(path);
    if (sed->count > FILES_MAX)
        return sandbox_error_set(err, S210, "over %u files", FILES_MAX);
    if (sed->bytes > FILES_BYTES_MAX)
        return sandbox_error_set(err, S210, "over %u bytes in the paths of the files",
                                 FILES_BYTES_MAX);
    return 0;
}

static char *repaired_text(const char *text)
{
    _cleanup_(buf_done)
    struct buf repaired = { 0 };

    if (utf8_repair(&repaired, text, strlen(text)) < 0)
        return NULL;
    return (char *)buf_take(&repaired, NULL);
}

static char *failure_text(const struct sandbox_error *failure)
{
    _cleanup_(buf_done)
    struct buf text = { 0 };

    if (buf_printf(&text, "%s: %s", error_info_get(failure->code)->code, failure->message) < 0)
        return NULL;
    return repaired_text(buf_text(&text));
}

/* Lists what came of PATH; a FAILURE is consumed. */
static int sed_record(struct sed *sed, const char *path, uint64_t replacements,
                      struct sandbox_error *failure, struct sandbox_error *err)
{
    struct fs_sed_result_list *results = &sed->reply->results;
    struct fs_sed_result result = {
        .has_path = true,
        .path = repaired_text(path),
        .has_replacements = true,
        .replacements = failure ? 0 : replacements,
        .has_success = true,
        .success = !failure,
        .has_error = failure != NULL,
        .error = failure ? failure_text(failure) : NULL,
    };

    if (failure)
        sandbox_error_done(failure);
    if (results->count == sed->room) {
        const size_t room = sed->room ? sed->room * 2 : 64;
        struct fs_sed_result *items = reallocarray(results->items, room, sizeof(*items));

        if (items) {
            results->items = items;
            sed->room = room;
        }
    }
    if (!result.path || results->count == sed->room || result.has_error != !!result.error) {
        codec_free(&type_fs_sed_result, &result);
        return fs_error(err, ENOMEM, path);
    }
    results->items[results->count++] = result;
    sed->reply->total_replacements += result.replacements;
    return 0;
}

/* One file in FOLDER_FD. */
static int sed_file(struct sed *sed, int folder_fd, const char *name, const char *path,
                    struct sandbox_error *err)
{
    struct sandbox_error failure = { 0 };
    uint64_t replacements = 0;
    int result = substitute_file(&sed->substitution, folder_fd, name, path, &replacements,
                                 &failure);

    return sed_record(sed, path, replacements, result < 0 ? &failure : NULL, err);
}

/* A file by its path; through a link the target is meant, and the link stays. */
static int sed_path(struct sed *sed, const char *shown, struct sandbox_error *err)
{
    struct sandbox_error failure = { 0 };
    _cleanup_free_ char *real = NULL;
    _cleanup_close_ int folder_fd = -1;
    struct path path;
    int result = path_init(&path, "files", shown, &failure);

    if (result == 0) {
        real = realpath(path.text, NULL);
        result = real ? path_init(&path, "files", real, &failure)
                      : fs_error(&failure, errno, path.text);
    }
    if (result == 0) {
        folder_fd = path_open_parent(&path);
        if (folder_fd < 0)
            result = fs_error(&failure, -folder_fd, path.text);
    }
    if (result < 0)
        return sed_record(sed, shown, 0, &failure, err);
    return sed_file(sed, folder_fd, path_name_at(&path), shown, err);
}

/* The form `files`. */
static int sed_files(struct sed *sed, struct sandbox_error *err)
{
    const struct text_list *files = &sed->request->files;

    for (size_t i = 0; i < files->count; i++) {
        if (sed_path(sed, files->items[i], err) < 0)
            return -1;
    }
    return 0;
}

/* The form `path`: the same walk twice, so that over the limit nothing is changed. */

typedef int (*sed_step_fn)(struct sed *sed, const struct walk_entry *entry,
                           struct sandbox_error *err);

static int step_count(struct sed *sed, const struct walk_entry *entry,
                      struct sandbox_error *err)
{
    return sed_count(sed, entry->path, err);
}

/* Files that came after the count are left alone when the answer is full. */
static int step_change(struct sed *sed, const struct walk_entry *entry,
                       struct sandbox_error *err)
{
    struct stat status;

    if (sed->reply->results.count == FILES_MAX)
        return 0;
    if (fstatat(entry->folder_fd, entry->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* vanished meanwhile */
    return sed_file(sed, entry->folder_fd, entry->name, entry->path, err);
}

static int sed_walk(struct sed *sed, const struct path *path, sed_step_fn step,
                    struct sandbox_error *err)
{
    const struct fs_sed_request *request = sed->request;
    _cleanup_(walk_freep)
    struct walk *walk = NULL;
    struct walk_entry entry;
    int fd = open(path->text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -errno : walk_open(fd, path->text, &walk);

    if (result < 0)
        return fs_error(err, -result, path->text);
    while ((result = walk_next(walk, &entry)) > 0) {
        if (entry.kind != WALK_FILE || !S_ISREG(entry.mode) ||
            !globs_choose(&request->include_glob, &request->exclude_glob, entry.relative))
            continue;
        if (step(sed, &entry, err) < 0)
            return -1;
    }
    return result < 0 ? fs_error(err, -result, walk_path(walk)) : 0;
}

static int sed_below(struct sed *sed, const struct path *path, const struct stat *status,
                     struct sandbox_error *err)
{
    const struct fs_sed_request *request = sed->request;

    if (S_ISDIR(status->st_mode)) {
        if (!request->recursive)
            return sandbox_error_set(err, S210, "%s is a directory and `recursive` is false",
                                     path->text);
        if (sed_walk(sed, path, step_count, err) < 0)
            return -1;
        return sed_walk(sed, path, step_change, err);
    }
    if (!S_ISREG(status->st_mode))
        return fs_wrong_type(err, path->text, status->st_mode, "a regular file or a directory");
    if (!globs_choose(&request->include_glob, &request->exclude_glob, path->name))
        return 0;
    return sed_path(sed, request->path, err); /* echoed as given */
}

static int sed_check_files(struct sed *sed, struct sandbox_error *err)
{
    for (size_t i = 0; i < sed->request->files.count; i++) {
        if (sed_count(sed, sed->request->files.items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int sed_check_path(const struct fs_sed_request *request, struct path *path,
                          struct stat *status, struct sandbox_error *err)
{
    if (path_init(path, "path", request->path, err) < 0 ||
        globs_check("include_glob", &request->include_glob, err) < 0 ||
        globs_check("exclude_glob", &request->exclude_glob, err) < 0)
        return -1;
    return stat(path->text, status) < 0 ? fs_error(err, errno, path->text) : 0;
}

int fs_sed(struct job *job, const struct fs_sed_request *request, struct fs_sed_reply *reply,
           struct sandbox_error *err)
{
    const struct pattern_spec spec = {
        .text = request->pattern,
        .literal = !request->regex,
        .ignore_case = request->ignore_case,
    };
    struct sed sed = { .request = request, .reply = reply };
    _cleanup_(pattern_freep)
    struct pattern *pattern = NULL;
    _cleanup_(template_freep)
    struct template *template = NULL;
    struct path path;
    struct stat status;

    if ((request->files.count > 0) == (request->path != NULL))
        return sandbox_error_set(err, S210,
                                 "exactly one of `files` and `path` is wanted, got %s",
                                 request->path ? "both" : "neither");
    if (request->path ? sed_check_path(request, &path, &status, err) < 0
                      : sed_check_files(&sed, err) < 0)
        return -1;
    if (spec.literal && spec.text.size == 0)
        return sandbox_error_set(err, S210, "`pattern` is empty and `regex` is false");
    if (pattern_new(&spec, NULL, &pattern, err) < 0 ||
        template_new(&request->replacement, spec.literal, pattern, &template, err) < 0)
        return -1;
    sed.substitution = (struct substitution){
        .pattern = pattern,
        .template = template,
        .first_only = request->first_only,
    };
    reply->has_results = reply->has_total_replacements = true;
    return request->path ? sed_below(&sed, &path, &status, err) : sed_files(&sed, err);
}
