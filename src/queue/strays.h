/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Stray promises: a node side may still hand them out, and kubelet does not ask for them any more, or never
 * would (docs/design/promises.md). By node, which the ledger is told, and by namespace, for who
 * revokes them.
 *
 * There are as many as pods have such annotations: each may cost a pod its card, so none is left out.
 *
 * Guarded by the store's lock.
 */
#include "json/json.h"

#include <gpuledger/dialect.h>

/* Different amounts on one node, of one dialect, that the ledger is told; of more, that any pod may be given
 * what another was promised. */
#define STRAYS_SIZES_MAX 1024

struct strays;

struct stray {
    const struct dialect *dialect;
    const char *uid, *ns, *name; /* of the pod that it was made to */
    const char *node;
    int64_t match_amount, time; /* as in struct device_promise */
    bool revocable; /* else another scheduler may be about to bind the pod, for STRAY_SPARED_MS */
};

struct strays *strays_new(void);
void strays_free(struct strays *strays);

/* Reads the dialect's promise of the pod; false: it makes none. It is stray unless it is awaited. */
bool strays_read(const struct dialect *dialect, const struct pod_view *pod, struct stray *ret_stray,
                 bool *ret_awaited);

/* Whether kubelet will ask for what the pod was promised, in whichever dialect, however long that takes. */
bool strays_await(const struct pod_view *pod);

/* It is stray, as a list of this number or a watch after it says. Returns whether that is new. */
bool strays_set(struct strays *strays, struct ledger *ledger, const struct stray *stray,
                uint32_t generation);
/* It is not, or no longer. Returns whether it was. */
bool strays_drop(struct strays *strays, struct ledger *ledger, const struct dialect *dialect,
                 const char *uid);
/* One that the list of this number has not named, a copy to be freed with stray_free; NULL: there is none. */
struct stray *strays_stale(const struct strays *strays, uint32_t generation);
void stray_free(struct stray *copy); /* NULL is ignored */
/* All of those, in one go. */
void strays_sweep(struct strays *strays, struct ledger *ledger, uint32_t generation);

/* Tells the ledger those of a node that it has just come to know. */
void strays_show(const struct strays *strays, struct ledger *ledger, const char *node);

/* The least time of those, on whatever node, whose pods come before that one in the API server's list, of dialects
 * whose node side may begin there (`whole_cluster`); INT64_MAX: there is none. After TURNS_LOOK_MAX others, of
 * whichever is next. */
int64_t strays_least_before(const struct strays *strays, const char *ns, const char *name);

/* Until it says no. */
void strays_each(const struct strays *strays, const char *node,
                 bool (*visit)(const struct stray *stray, void *data), void *data);

/* Copies, to be freed with strays_free, of at most so many that are to be revoked, namespaces in turns;
 * none of them again for REVOKE_AGAIN_MS. One that another scheduler may be about to bind is among them once it has
 * stood for STRAY_SPARED_MS, whatever its time came to be meanwhile. */
#define REVOKE_AGAIN_MS 5000
#define STRAY_SPARED_MS 600000
GPtrArray *strays_take_due(struct strays *strays, guint most, int64_t now_ms);

/* As a record has it, and back; borrowed from the arena. */
void stray_encode(struct json_writer *writer, const struct stray *stray);
bool stray_decode(struct json_arena *arena, const cJSON *object, struct stray *ret_stray,
                  GError **error);
