/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who may wait inside a call. Each that does keeps a thread and a connection that nobody can cut, so
 * only so many may in all, and for one node only as many as it can still serve before their time is
 * up: the others are better off with the answer at once. Any thread; takes a lock of its own, for
 * nanoseconds, so it may be asked under the store's.
 */
#include <stdbool.h>

struct waiters;

struct waiters *waiters_new(unsigned max, unsigned per_node_max);
/* Nobody must wait any more. NULL is fine. */
void waiters_free(struct waiters *waiters);

/* Whether one more may wait for the node; true is to be followed by one waiters_leave with the same
 * node. Without waiters (NULL) everybody may. */
bool waiters_enter(struct waiters *waiters, const char *node);
void waiters_leave(struct waiters *waiters, const char *node);
