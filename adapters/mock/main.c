/* main.c - sandbox-mock: an adapter for testing callers, without a VM. */
#include "mock.h"

int main(int argc, char **argv)
{
    return adapter_main(argc, argv, &mock_ops);
}
