/* main.c - sandbox-qemu: the adapter whose sandboxes are QEMU's microVMs. */
#include "backend.h"
#include "ops.h"

int main(int argc, char **argv)
{
    return adapter_main(argc, argv, &qemu_backend_ops);
}
