/* adapter.c - see adapter.h. */
#include "adapter.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "utf8.h"

void adapter_set_init(struct adapter_set *set)
{
    *set = (struct adapter_set){ 0 };
    list_init(&set->adapters);
}

struct adapter *adapter_find(const struct adapter_set *set, struct span name)
{
    LIST_FOREACH(node, &set->adapters)
    {
        struct adapter *adapter = LIST_ENTRY(node, struct adapter, node);

        if (adapter->tenure != ADAPTER_ENDS && span_equals(name, adapter->name))
            return adapter;
    }
    return NULL;
}

/* A longer text is cut at a character; it is for people. */
static void copy_text(char *to, size_t size, struct span from)
{
    size_t length = from.data ? utf8_boundary(from.data, from.size, size - 1) : 0;

    if (length > 0)
        memcpy(to, from.data, length);
    to[length] = '\0';
}

int adapter_new(struct adapter_set *set, const struct envelope *hello, enum verdict verdict,
                struct link *link, struct adapter **ret_adapter)
{
    struct adapter *adapter = calloc(1, sizeof(*adapter));

    if (!adapter)
        return -ENOMEM;
    *adapter = (struct adapter){
        .set = set,
        .link = link,
        .generation = ++set->last_generation,
        .contract = hello->contract,
        .verdict = verdict,
    };
    list_init(&adapter->calls);
    copy_text(adapter->name, sizeof(adapter->name), hello->name);
    copy_text(adapter->version, sizeof(adapter->version), hello->version);
    list_append(&set->adapters, &adapter->node);
    set->count++;
    *ret_adapter = adapter;
    return 0;
}

void adapter_check_idle(struct adapter *adapter)
{
    if (adapter->in_flight == 0 && adapter->idle)
        adapter->idle(adapter->idle_ctx);
}

void adapter_detach(struct adapter *adapter)
{
    if (!adapter->link)
        return;
    adapter->link = NULL;
    list_remove(&adapter->node);
    adapter->set->count--;
}

void adapter_free(struct adapter *adapter)
{
    if (!adapter)
        return;
    assert(list_empty(&adapter->calls));
    adapter_detach(adapter);
    free(adapter);
}
