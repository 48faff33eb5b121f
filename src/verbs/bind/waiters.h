/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The binds that wait, for the node side or for another bind of their pod. Each of them holds a
 * connection and a thread for as long as it may, so there are only so many, in all and on one node,
 * where those beyond the first would hardly come to their turn in time.
 *
 * While there is room anybody waits. Then the namespace that has most gives way to one that has fewer:
 * one namespace alone may have all, and keeps nobody else from waiting.
 *
 * Guarded by the store's lock.
 */
#include <glib.h>
#include <stdbool.h>

#define WAITERS_MAX 512 /* in all, unless it is told otherwise */
#define WAITERS_PER_NODE_MAX 16

/* A bind that waits; the caller's, who fills `ns` and `node`. */
struct waiting_bind {
    const char *ns, *node;
    bool in;  /* it is among them */
    bool cut; /* it has given way and must leave */
    struct waiting_bind *older, *younger;
};

struct waiters {
    unsigned max; /* 0: WAITERS_MAX */
    unsigned n;
    struct waiting_bind *youngest;
};

/* False: there are too many. Who is among them already stays. `ret_cut`: somebody else has to leave and
 * should be told. */
bool waiters_enter(struct waiters *waiters, struct waiting_bind *waiter, bool *ret_cut);

/* Who is not among them is ignored. */
void waiters_leave(struct waiters *waiters, struct waiting_bind *waiter);
