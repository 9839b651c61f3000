/* zygote_request.h - asks a zygote for one machine (zygote/message.h). */
#pragma once

#include <stdint.h>

#include "proc.h"

/* Sends SPEC, whose before_exec is confine_child(), under ID, and the machine's end of the
 * socket of its permit; all is borrowed. ANSWER_FD: as in the message. Does not wait: -EAGAIN,
 * SOCKET_FD is full. 0 or -errno. */
int zygote_request_send(int socket_fd, uint64_t id, const struct proc_spec *spec, int answer_fd,
                        int permit_fd);
