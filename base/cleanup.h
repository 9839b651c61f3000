/* cleanup.h - scope-exit release and explicit transfer of ownership. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

/* Defines NAME##p(), the scope-exit form of a destructor that accepts NULL. */
#define DEFINE_CLEANUP(type, fn)                                                               \
    static inline void fn##p(type *object)                                                     \
    {                                                                                          \
        if (*object)                                                                           \
            fn(*object);                                                                       \
    }

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

#define _printf_(format_index, first) __attribute__((format(printf, format_index, first)))

static inline void freep(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

/* Closes *fd unless it is negative and leaves -1 behind. */
static inline void closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing can be done about a failing close */
    *fd = -1;
}

/* Hands the object to the caller: the variable no longer owns it. */
#define take_ptr(pointer)                                                                      \
    ({                                                                                         \
        __typeof__(pointer) take_ptr_value = (pointer);                                        \
        (pointer) = NULL;                                                                      \
        take_ptr_value;                                                                        \
    })

static inline int take_fd(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define CONTAINER_OF(pointer, type, member)                                                    \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
