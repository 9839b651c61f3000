/* zygote_request.c - see zygote_request.h. */
#include "zygote_request.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "buf.h"
#include "zygote/message.h"

static int put_arguments(struct buf *to, const char *const *argv, uint32_t *ret_count)
{
    int result = 0;

    for (*ret_count = 0; result == 0 && argv[*ret_count]; (*ret_count)++)
        result = buf_append(to, argv[*ret_count], strlen(argv[*ret_count]) + 1);
    return result;
}

static int send_request(int socket_fd, struct zygote_request *head, const struct buf *arguments,
                        const struct proc_fd *fds, int permit_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * (ZYGOTE_FDS_MAX + 1))];
        struct cmsghdr aligned;
    } control = { { 0 } };
    const size_t fds_size = sizeof(int) * (head->fd_count + 1);
    struct iovec parts[] = { { head, sizeof(*head) }, { arguments->data, arguments->size } };
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = ARRAY_SIZE(parts),
                              .msg_control = &control,
                              .msg_controllen = CMSG_SPACE(fds_size) };
    struct cmsghdr *rights = &control.aligned;
    int numbers[ZYGOTE_FDS_MAX + 1];

    for (uint32_t i = 0; i < head->fd_count; i++) {
        head->targets[i] = fds[i].target;
        numbers[i] = fds[i].fd;
    }
    numbers[head->fd_count] = permit_fd;
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds_size);
    memcpy(CMSG_DATA(rights), numbers, fds_size);
    return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int zygote_request_send(int socket_fd, uint64_t id, const struct proc_spec *spec, int answer_fd,
                        int permit_fd)
{
    const struct confine_child *child = spec->before_exec_ctx;
    struct zygote_request head = { .id = id,
                                   .confine = *child->confine,
                                   .rules_fd = child->rules_fd,
                                   .small_pages = child->small_pages,
                                   .answer_fd = answer_fd,
                                   .fd_count = (uint32_t)spec->fd_count };
    struct buf arguments = { .limit = ZYGOTE_REQUEST_MAX_BYTES };
    int result = spec->fd_count > ZYGOTE_FDS_MAX
                     ? -E2BIG
                     : put_arguments(&arguments, spec->argv, &head.argument_count);

    assert(spec->before_exec == confine_child);
    if (result == 0)
        result = send_request(socket_fd, &head, &arguments, spec->fds, permit_fd);
    buf_done(&arguments);
    return result;
}
