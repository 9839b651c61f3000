/* tunables.h - numbers of the guest's kernel that are other than its makers chose.
 *
 * Theirs are for machines that live long on processors of their own; ours is one of many, often
 * idle, and what its kernel does by the clock is done by each clone, much of it ahead of the
 * first answer. */
#pragma once

/* Once, when /proc, /sys and the disks are there. What the kernel does not have is left out. */
void tunables_set(void);
