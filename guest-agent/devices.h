/* devices.h - a machine's devices: the modules that drive them, and waiting until they are
 * there.
 */
#pragma once

/* Loads what /modules.order lists, in that order, from /lib/modules, and deletes it: the
 * initramfs is memory. A kernel that has all of it built in comes without the list. 0 or
 * -errno. */
int devices_load_modules(void);

/* The kernel's announcements of new devices; open it before modules are loaded. -errno. */
int devices_listen(void);

/* Waits until PATH exists. 0, -ETIMEDOUT or another -errno. */
int devices_await(int listen_fd, const char *path, int timeout_ms);

/* Opens the virtio port of that name and waits until the host has opened its end. The
 * descriptor or -errno. */
int devices_open_port(int listen_fd, const char *name, int timeout_ms);

/* Opens the disk of that serial number past the page cache, and so that nobody mounts it. The
 * descriptor, -ENOENT: there is none, or another -errno. */
int devices_open_disk(const char *serial);
