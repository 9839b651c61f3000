/* tables.h - the contract as C: structs, field tables and the operation table, all expanded
 * from the .def files. No policy, no I/O.
 *
 * A struct's memory (texts, lists, nested objects) is owned by the struct; codec.h fills and
 * frees it. Zero-initialised is empty. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text that may hold NUL; data has one more NUL behind it. */
struct blob {
    char *data;
    size_t size;
};

struct text_list {
    size_t count;
    char **items;
};

/* Contract 4.3. Names are not validated here (env_check does, at its place in the order of
 * checks). Entries of an object stand in byte order of their names, each name once; entries of
 * a list keep their order: `name` is then the whole text up to its first `=`, `value` is NULL
 * when it has none. */
struct env_entry {
    char *name;
    char *value;
};
struct env {
    bool is_object;
    size_t count;
    struct env_entry *entries;
};

/* Contract 9.1. */
struct channel_ref {
    char *channel_id;
    char *access_key;
    char *direction;
};

struct content {
    bool is_stream;
    struct blob text;
    struct channel_ref stream;
};

enum field_kind {
    FIELD_TEXT,
    FIELD_BLOB,
    FIELD_B64,
    FIELD_BOOL,
    FIELD_U32,
    FIELD_U64,
    FIELD_I32,
    FIELD_I64,
    FIELD_TEXTS,
    FIELD_ENV,
    FIELD_CONTENT,
    FIELD_STREAM,
    FIELD_OBJECT,
    FIELD_OBJECTS,
    FIELD_KIND_MAX
};

enum field_presence { FIELD_REQUIRED, FIELD_OPTIONAL, FIELD_NULLABLE, FIELD_DEFAULT };

#define FIELD_CTYPE_TEXT char *
#define FIELD_CTYPE_BLOB struct blob
#define FIELD_CTYPE_B64 char *
#define FIELD_CTYPE_BOOL bool
#define FIELD_CTYPE_U32 uint32_t
#define FIELD_CTYPE_U64 uint64_t
#define FIELD_CTYPE_I32 int32_t
#define FIELD_CTYPE_I64 int64_t
#define FIELD_CTYPE_TEXTS struct text_list
#define FIELD_CTYPE_ENV struct env
#define FIELD_CTYPE_CONTENT struct content
#define FIELD_CTYPE_STREAM struct channel_ref

/* struct <name> and struct <name>_list for every type. */
#define TYPE(name, text)                                                                       \
    struct name;                                                                               \
    struct name##_list {                                                                       \
        size_t count;                                                                          \
        struct name *items;                                                                    \
    };                                                                                         \
    struct name {                                                                              \
        char type_has_no_size_zero_;
#define FIELD(owner, kind, name, ...)                                                          \
    bool has_##name;                                                                           \
    FIELD_CTYPE_##kind name;
#define OBJECT(owner, type, name, ...)                                                         \
    bool has_##name;                                                                           \
    struct type name;
#define OBJECTS(owner, type, name, ...)                                                        \
    bool has_##name;                                                                           \
    struct type##_list name;
#define END(name)                                                                              \
    }                                                                                          \
    ;
#include "all_types.def"

/* How every struct <name>_list looks; the table knows the size of an item. */
struct object_list {
    size_t count;
    char *items;
};

struct type;

struct field {
    const char *name;
    enum field_kind kind;
    enum field_presence presence;
    const char *standard; /* JSON text of the default, "" if none */
    int64_t min;          /* numbers: range; TEXT, B64: bytes */
    uint64_t max;
    unsigned since; /* contract minor */
    const char *text;
    size_t offset;           /* of the member */
    size_t has_offset;       /* of has_<name> */
    const struct type *type; /* FIELD_OBJECT, FIELD_OBJECTS */
};

struct type {
    const char *name;
    const char *text;
    size_t size;
    const struct field *fields;
    size_t field_count;
};

/* type_<name>: the table of struct <name>. */
#define TYPE(name, text) extern const struct type type_##name;
#define FIELD(...)
#define OBJECT(...)
#define OBJECTS(...)
#define END(name)
#include "all_types.def"

enum operation_id {
#define OPERATION(id, ...) OP_##id,
#include "operations.def"
    OP_MAX
};

enum { SIDE_EFFECTS = 1, OPTIONAL_OP = 2, ARRAY_REPLY = 4 };

struct operation {
    enum operation_id id;
    const char *name;  /* "fs::ls" */
    const char *group; /* "filesystem" */
    unsigned flags;
    const struct type *request;
    const struct type *reply;
    unsigned since;
    const char *text;
};

extern const struct operation operations[OP_MAX];

/* By name without the namespace ("exec"); NULL: in no table. */
const struct operation *operation_find(const char *name, size_t size);

enum guest_operation_id {
#define GUEST_OPERATION(id, ...) GUEST_##id,
#include "guest.def"
    GUEST_MAX
};

struct guest_operation {
    enum guest_operation_id id;
    const char *name;
    const struct type *request;
    const struct type *reply;
};

extern const struct guest_operation guest_operations[GUEST_MAX];
const struct guest_operation *guest_operation_find(const char *name, size_t size);

/* Contract 14. */
enum limit_value {
#define LIMIT(id, value, ...) LIMIT_##id = (value),
#include "limits.def"
};

struct limit {
    const char *name;
    uint64_t value;
    const char *answer; /* what comes beyond it */
    const char *text;
};

extern const struct limit limits[];
extern const size_t limit_count;
