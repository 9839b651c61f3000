/* fs.c - which function serves which file operation. */
#include "fs.h"

#include "cleanup.h"

/* The typed functions behind one pointer type. */
#define FS_OPERATION(name, request_type, reply_type)                                           \
    static int call_##name(struct job *job, const void *request, void *reply,                  \
                           struct sandbox_error *err)                                          \
    {                                                                                          \
        const struct request_type *typed_request = request;                                    \
        struct reply_type *typed_reply = reply;                                                \
                                                                                               \
        return name(job, typed_request, typed_reply, err);                                     \
    }

FS_OPERATION(fs_ls, fs_ls_request, fs_ls_reply)
FS_OPERATION(fs_stat, fs_stat_request, fs_entry)
FS_OPERATION(fs_mkdir, fs_mkdir_request, fs_mkdir_reply)
FS_OPERATION(fs_rm, fs_rm_request, fs_rm_reply)
FS_OPERATION(fs_chmod, fs_chmod_request, fs_chmod_reply)
FS_OPERATION(fs_mv, fs_mv_request, fs_mv_reply)
FS_OPERATION(fs_grep, fs_grep_request, fs_grep_reply)
FS_OPERATION(fs_sed, fs_sed_request, fs_sed_reply)
FS_OPERATION(fs_write, fs_write_request, guest_fs_write_reply)
FS_OPERATION(fs_read, fs_read_request, guest_empty)
FS_OPERATION(fs_sync, guest_empty, guest_empty)

static const job_fn functions[] = {
    [GUEST_fs_ls] = call_fs_ls,       [GUEST_fs_stat] = call_fs_stat,
    [GUEST_fs_mkdir] = call_fs_mkdir, [GUEST_fs_rm] = call_fs_rm,
    [GUEST_fs_chmod] = call_fs_chmod, [GUEST_fs_mv] = call_fs_mv,
    [GUEST_fs_grep] = call_fs_grep,   [GUEST_fs_sed] = call_fs_sed,
    [GUEST_fs_write] = call_fs_write, [GUEST_fs_read] = call_fs_read,
    [GUEST_sync] = call_fs_sync,
};

job_fn fs_operation(enum guest_operation_id id)
{
    return id < (int)ARRAY_SIZE(functions) ? functions[id] : NULL;
}
