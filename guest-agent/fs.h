/* fs.h - the file operations (contract 8), one function an operation; job.h says how they run.
 *
 *   fs_ls.c     ls stat                fs_write.c  write
 *   fs_mkdir.c  mkdir                  fs_read.c   read
 *   fs_rm.c     rm                     fs_grep.c   grep
 *   fs_chmod.c  chmod                  fs_sed.c    sed
 *   fs_mv.c     mv                     fs_sync.c   sync
 *
 * All of them run as root in the sandbox's own tree. A program may change that tree at any
 * moment, so what a path named a moment ago is looked at through descriptors. */
#pragma once

#include "job.h"

/* The function of a file operation; never NULL for one. */
job_fn fs_operation(enum guest_operation_id id);

int fs_ls(struct job *job, const struct fs_ls_request *request, struct fs_ls_reply *reply,
          struct sandbox_error *err);
int fs_stat(struct job *job, const struct fs_stat_request *request, struct fs_entry *reply,
            struct sandbox_error *err);
int fs_mkdir(struct job *job, const struct fs_mkdir_request *request,
             struct fs_mkdir_reply *reply, struct sandbox_error *err);
int fs_rm(struct job *job, const struct fs_rm_request *request, struct fs_rm_reply *reply,
          struct sandbox_error *err);
int fs_chmod(struct job *job, const struct fs_chmod_request *request,
             struct fs_chmod_reply *reply, struct sandbox_error *err);
int fs_mv(struct job *job, const struct fs_mv_request *request, struct fs_mv_reply *reply,
          struct sandbox_error *err);
int fs_grep(struct job *job, const struct fs_grep_request *request, struct fs_grep_reply *reply,
            struct sandbox_error *err);
int fs_sed(struct job *job, const struct fs_sed_request *request, struct fs_sed_reply *reply,
           struct sandbox_error *err);
int fs_write(struct job *job, const struct fs_write_request *request,
             struct guest_fs_write_reply *reply, struct sandbox_error *err);
int fs_read(struct job *job, const struct fs_read_request *request, struct guest_empty *reply,
            struct sandbox_error *err);
/* Everything written so far is on the disk of the root. */
int fs_sync(struct job *job, const struct guest_empty *request, struct guest_empty *reply,
            struct sandbox_error *err);
