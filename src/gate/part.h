/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Parts: what the store remembers beside the ledger. A part is one folder and one row, `const struct part part_NAME`
 * with a line PART_ROW(NAME, POSITION); the build makes the table of them. The store starts, feeds, copies, settles,
 * records and stops its parts by the table, and names none.
 *
 * A hook that is NULL has nothing to do. The hooks are called under the store's lock, but for `encode`, `free` and
 * what belongs to a copy that no other thread knows yet.
 */
#include "core/section/section.h"
#include "json/json.h"

#include <gpuledger/ledger.h>

struct node_view;
struct rejection;
struct store;

#define PART_ROW(name, position) extern const struct part part_##name
#define PART_ROWS_MAX 32

enum part_source {
    PART_OF_WATCHES, /* follows from what the API server says */
    PART_OF_CALLS,   /* also from what the verbs did, so that a record has to tell it */
};

/* How far a part has been copied; of what the numbers are the part knows. */
struct part_cursor {
    guint members, others;
    uint64_t last;
};
#define PART_BEGIN ((struct part_cursor){G_MAXUINT, G_MAXUINT, 0})

enum pod_change_kind {
    POD_CHANGE_BOUND, /* its object says so, again perhaps; `admitted`: and that kubelet has admitted it */
    POD_CHANGE_STARTED, /* kubelet has admitted it */
    POD_CHANGE_REJECTED, /* kubelet has failed it; this, and the next, while the ledger has its allocation */
    POD_CHANGE_VANISHED, /* its object is there no longer; it may not have ended */
    POD_CHANGE_GONE,     /* with or without an allocation until now */
};

struct pod_change {
    enum pod_change_kind kind;
    const char *uid;
    const struct allocation *allocation; /* NULL of POD_CHANGE_GONE */
    const struct rejection *rejection;   /* POD_CHANGE_REJECTED */
    bool admitted;                       /* POD_CHANGE_BOUND */
};

enum part_settled {
    PART_MOVED = 1 << 0,  /* a record has to tell the moment */
    PART_OPENED = 1 << 1, /* so, too; pods that were refused may be let in */
};

/* The part as it is at one moment, taken a few members at a time while it changes, and as a record has it. */
struct part_image {
    const char *kind;           /* of the line in a record */
    void *(*begin)(void *self); /* NULL: there is nothing to record */
    bool (*take)(void *image);  /* some more; false: it is complete. NULL: it is at once */
    void (*encode)(struct json_writer *writer, void *image); /* once, of a complete one */
    void (*free)(void *image);
    /* Takes what a record says for what is known. False: it cannot be understood. */
    bool (*learn)(void *self, struct json_arena *arena, const cJSON *object, GError **error);
    /* A replay compares it with what it knows itself by then, and calls it so. NULL: it does not. */
    const char *compared;
};

/* What a part has of the store; good as long as the part. */
struct part_base {
    struct ledger *ledger;
    struct store *store; /* for parts of the store's own folder, whose state is the store */
    unsigned bit;        /* the mark of its gate (gate/gate.h), by ledger_mark */
};

struct part {
    const char *name;
    enum part_source source;
    const struct section *section; /* its options, or NULL */
    /* `settings`, the section's struct, is good until `stop`; NULL: none were given. Returns NULL if the part is off. */
    void *(*start)(const struct part_base *base, const void *settings);
    void (*stop)(void *self);
    /* The next few members of another store's, from PART_BEGIN on, not all of one moment. False: that was all. */
    bool (*copy)(void *self, const void *from, struct part_cursor *at);
    /* True: pods that were refused on the pod's node may be let in. */
    bool (*pod)(void *self, const struct pod_change *change);
    /* The Node as it is now, NULL: it is gone. Returns the same. */
    bool (*node)(void *self, const char *name, const struct node_view *view);
    /* What an operator asks for: "resume", a node. False: nothing has changed. */
    bool (*order)(void *self, const char *verb, const char *node);
    /* Time passes: before each decision, and from time to time. The only clock. Returns of enum part_settled. */
    unsigned (*settle)(void *self, int64_t now_ms);
    const struct part_image *image;
};

/* In order of position; ends with NULL. */
extern const struct part *const parts_table[];

/* The values of a part's section; a list of these ends with a row of NULL. */
struct part_settings {
    const struct part *part;
    const void *settings;
};

struct part_set {
    void *selves[PART_ROWS_MAX]; /* in the order of the table; NULL: off */
    struct part_base bases[PART_ROWS_MAX];
    struct part_settings settings[PART_ROWS_MAX + 1]; /* as given to parts_start; owned */
};

/* Copies the settings, and the base but for the mark. `list` NULL: there are none. */
void parts_start(struct part_set *parts, const struct part_base *base,
                 const struct part_settings *list);
void parts_stop(struct part_set *parts);
/* Its place in the table. */
size_t part_place(const struct part *part);
/* The state of one; NULL: it is off. */
void *parts_of(const struct part_set *parts, const struct part *part);
bool parts_pod(struct part_set *parts, const struct pod_change *change);
bool parts_node(struct part_set *parts, const char *name, const struct node_view *view);
bool parts_order(struct part_set *parts, const char *verb, const char *node);
unsigned parts_settle(struct part_set *parts, int64_t now_ms);
