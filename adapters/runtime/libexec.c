/* libexec.c - see libexec.h. */
#include "libexec.h"

#include <stdio.h>
#include <unistd.h>

#include "cleanup.h"
#include "proc.h"

char *libexec_find(const char *name)
{
    static const char *const folders[] = { "../libexec/iii-sandbox", "." };
    const char *self = proc_self_directory();

    for (size_t i = 0; self && i < ARRAY_SIZE(folders); i++) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/%s/%s", self, folders[i], name) < 0)
            path = NULL;
        else if (access(path, X_OK) == 0)
            return take_ptr(path);
    }
    return NULL;
}
