/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order among pods that wait for a device plugin which may begin its search with the first pod of the
 * cluster (struct dialect, `whole_cluster`; docs/design/promises.md). Such a plugin takes that pod, of whatever
 * node, unless a pod of its own node has a smaller time. So of two pods on different nodes, the one that comes
 * first in the list, by namespace and name, has the larger time: whichever pod is the first of the cluster when
 * a plugin looks, it is not mistaken.
 *
 * A pod counts while its allocation waits. Where there is no such time, those whose node is gone or unreachable do
 * not keep others waiting: nobody knows for how long that lasts, and no plugin looks meanwhile. Guarded by the
 * store's lock.
 */
#include <gpuledger/ledger.h>

struct turns;

/* A promise with a time outside is no scheduler's, unless gpuledger itself has written it. Those before are revoked
 * whatever their pod waits for; those after count for nothing: only their own author can be served another's. */
#define TURN_EARLIEST (INT64_C(1) << 20)
#define TURN_LATEST (INT64_C(1) << 40)

/* At most so many pods are looked at for each end of the range; of more, that the next might be in the way. */
#define TURNS_LOOK_MAX 256
#define TURNS_LOOK_AGAIN_MAX                                                                       \
    4096 /* the same where those that no kubelet asks for are passed over */

struct turn {
    const char *uid, *ns, *name; /* of the pod */
    int64_t time;                /* as in struct device_promise */
};

struct turns *turns_new(void);
void turns_free(struct turns *turns);

/* `ours`: gpuledger is about to write it; that is remembered until turns_drop. */
void turns_set(struct turns *turns, const struct turn *turn, bool ours);
void turns_drop(struct turns *turns, const char *uid);
/* Whether gpuledger has written that time into the pod. */
bool turns_wrote(const struct turns *turns, const char *uid, int64_t time);

/* A time for the pod that is below `before` and keeps the order with all that wait: `now_s` if that will do.
 * 0: there is none as long as they wait. */
int64_t turns_choose(const struct turns *turns, const struct ledger *ledger, const struct turn *pod,
                     int64_t now_s, int64_t before);

/* By namespace and name, as the API server lists pods. */
int turns_compare(const char *ns, const char *name, const char *other_ns, const char *other_name);
