/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is listed and watched of the cluster: one row for each kind of object. Lists, watches, a saved cluster,
 * the sweep after a list, records and readiness go over the table, and know no kind by name. Nodes and pods
 * have their own ways into the ledger (store/store.h); of their rows only what is above `apply` counts.
 *
 * A file below this folder adds a kind: the build finds its line KIND_ROW. The position is the row's place in
 * the table, its enum feed; a record begins with what is known in this order, so a new kind comes last.
 */
#include "base/log.h"
#include "store/store.h"

#define KIND_NAME(word) .name = (word), .gone = word "-gone"
/* The codecs of word_view. */
#define KIND_VIEW(word)                                                                            \
    static bool word##_decode(struct json_arena *arena, const cJSON *object, void *ret_view,       \
                              GError **error)                                                      \
    {                                                                                              \
        return word##_view_decode(arena, object, ret_view, error);                                 \
    }                                                                                              \
    static void word##_encode(struct json_writer *writer, const void *view)                        \
    {                                                                                              \
        word##_view_encode(writer, view);                                                          \
    }                                                                                              \
    static bool word##_decode(struct json_arena *arena, const cJSON *object, void *ret_view,       \
                              GError **error)
#define KIND_OF_VIEW(word)                                                                         \
    .size = sizeof(struct word##_view), .decode = word##_decode, .encode = word##_encode
#define KIND_ROW(name, position) extern const struct kind kind_##name

/* What a view begins with. */
struct object_name {
    const char *ns, *name;
};

/* What is wrong with an object, for the log. */
struct object_fault {
    const char *message;
    struct log_field fields[2]; /* the second may have no key */
    char *text;                 /* that a field has; for g_free */
    bool counted;               /* as an object that cannot be understood */
    bool limited; /* more than a few of them are not written: others may make such objects */
};
struct object_faults {
    struct object_fault faults[2];
    size_t n;
};

/* One more, whose fields the caller writes. */
static inline struct object_fault *object_fault(struct object_faults *faults, const char *message,
                                                char *take_text)
{
    struct object_fault *fault = &faults->faults[faults->n++];

    *fault = (struct object_fault){.message = message, .text = take_text};
    return fault;
}

/* Under the store's lock. */
struct kind_call {
    struct store *store;
    void **kept;                  /* what the kind keeps of its own in this store; NULL at first */
    uint32_t generation;          /* of the list under way, or of the last one */
    struct object_faults *faults; /* of `apply`; else NULL */
    void *read;                   /* what `read` has made; NULL in `sweep` */
};

struct kind {
    const char *name, *gone; /* in a record, by KIND_NAME: "elasticquota", "elasticquota-gone" */
    const char *feed;        /* in metrics, messages, and a record's lists: "elasticquotas" */
    const char *resource;    /* plural, as in paths and permissions */
    const char *kind;        /* "ElasticQuota" */
    const char *api;         /* "/apis/scheduling.x-k8s.io/v1alpha1" */
    const char *older_api;   /* where servers that do not have it there do; or NULL */
    bool optional;  /* without permission to read it everything else works: there is none, then */
    bool unawaited; /* the ledger is complete without it */
    bool (*wanted)(const struct store_options *options); /* NULL: always */
    size_t size;                                         /* of its view */
    bool (*decode)(struct json_arena *arena, const cJSON *object, void *ret_view, GError **error);
    void (*encode)(struct json_writer *writer, const void *view);

    /* The one namespace that it is read in, NULL: there is nothing to be read. Without the function: all. */
    const char *(*within)(void);
    /* Whether the store cares for an object of that name, with these options, or (NULL) any. Without the
     * function: for all. */
    bool (*concerns)(const struct store_options *options, const struct object_name *name);

    /* Before the lock is taken, what takes long: what `apply` and `remove` need of the object. `view` NULL: it is
     * gone. What they replace they leave in it: it is freed after the lock is given back. */
    void *(*read)(const struct store *store, const struct object_name *name, const void *view);
    void (*free_read)(void *read);
    void (*apply)(const struct kind_call *call, const void *view);
    void (*remove)(const struct kind_call *call, const struct object_name *name);
    /* What the list has not named goes. */
    void (*sweep)(const struct kind_call *call);
    void (*free)(void *kept);
};

extern const struct kind *const kinds[]; /* by enum feed */

/* The label of a cell of the metrics by enum feed or enum watched; NULL: it has none. */
const char *kind_cell_name(unsigned cell);
