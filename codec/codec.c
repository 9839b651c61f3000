/* codec.c - ownership of decoded bodies: what a struct of the tables holds, and its release. */
#include "codec.h"

#include <errno.h>
#include <string.h>

static void content_free(struct content *content)
{
    free(content->text.data);
    free(content->stream.channel_id);
    free(content->stream.access_key);
    free(content->stream.direction);
}

static void channel_ref_free(struct channel_ref *ref)
{
    free(ref->channel_id);
    free(ref->access_key);
    free(ref->direction);
}

static void env_free(struct env *env)
{
    for (size_t i = 0; i < env->count; i++) {
        free(env->entries[i].name);
        free(env->entries[i].value);
    }
    free(env->entries);
}

static void objects_free(const struct type *type, struct object_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        codec_free(type, list->items + i * type->size);
    free(list->items);
}

static void member_free(const struct field *field, void *member)
{
    switch (field->kind) {
    case FIELD_TEXT:
    case FIELD_B64:
        free(*(char **)member);
        break;
    case FIELD_BLOB:
        free(((struct blob *)member)->data);
        break;
    case FIELD_TEXTS:
        text_list_done(member);
        break;
    case FIELD_ENV:
        env_free(member);
        break;
    case FIELD_CONTENT:
        content_free(member);
        break;
    case FIELD_STREAM:
        channel_ref_free(member);
        break;
    case FIELD_OBJECT:
        codec_free(field->type, member);
        break;
    case FIELD_OBJECTS:
        objects_free(field->type, member);
        break;
    case FIELD_BOOL:
    case FIELD_U32:
    case FIELD_U64:
    case FIELD_I32:
    case FIELD_I64:
    case FIELD_KIND_MAX:
        break;
    }
}

void codec_free(const struct type *type, void *value)
{
    for (size_t i = 0; i < type->field_count; i++)
        member_free(&type->fields[i], (char *)value + type->fields[i].offset);
    memset(value, 0, type->size);
}

int text_list_append(struct text_list *list, const char *text)
{
    char *copy = strdup(text);
    char **items = copy ? realloc(list->items, (list->count + 1) * sizeof(*items)) : NULL;

    if (!items) {
        free(copy);
        return -ENOMEM;
    }
    list->items = items;
    items[list->count++] = copy;
    return 0;
}

void text_list_done(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct text_list){ 0 };
}
