/* main.c - iii: the command line of the engine. */
#include <signal.h>

#include "command.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN); /* of a reader that is gone we hear by EPIPE */
    return command_main(argc, argv);
}
