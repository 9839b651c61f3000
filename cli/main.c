/* main.c - iii: the command line of the engine. */
#include <signal.h>

#include "command.h"
#include "proc.h"

int main(int argc, char **argv)
{
    if (proc_hold_standard_fds() < 0)
        return EXIT_CODE_FAILED;    /* there may be nowhere to say it */
    (void)signal(SIGPIPE, SIG_IGN); /* of a reader that is gone we hear by EPIPE */
    return command_main(argc, argv);
}
