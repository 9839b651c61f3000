/* interrupt.c - see interrupt.h. */
#include "interrupt.h"

#include <pthread.h>
#include <unistd.h>

static void on_signal(void *ctx, int signal_number)
{
    struct interrupt *interrupt = ctx;

    if (interrupt->caught != 0)
        _exit(128 + signal_number);
    interrupt->caught = signal_number;
}

static const int signals[INTERRUPT_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

int interrupt_init(struct interrupt *interrupt, struct loop *loop)
{
    *interrupt = (struct interrupt){ 0 };
    for (int i = 0; i < INTERRUPT_SIGNALS; i++) {
        int result = loop_signal_new(loop, signals[i], on_signal, interrupt,
                                     &interrupt->sources[i]);

        if (result < 0) {
            interrupt_done(interrupt);
            return result;
        }
    }
    return 0;
}

void interrupt_done(struct interrupt *interrupt)
{
    for (int i = 0; i < INTERRUPT_SIGNALS; i++) {
        loop_signal_free(interrupt->sources[i]);
        interrupt->sources[i] = NULL;
    }
}

bool interrupt_is_near(const struct interrupt *interrupt)
{
    bool near = interrupt->caught != 0;
    sigset_t set;

    (void)sigpending(&set); /* cannot fail with such an argument */
    for (int i = 0; i < INTERRUPT_SIGNALS; i++)
        near = near || sigismember(&set, signals[i]) == 1;
    return near;
}

void interrupt_release(struct interrupt *interrupt)
{
    sigset_t set;

    interrupt_done(interrupt);
    (void)sigemptyset(&set); /* these cannot fail with such arguments */
    for (int i = 0; i < INTERRUPT_SIGNALS; i++)
        (void)sigaddset(&set, signals[i]);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
