/* SPDX-License-Identifier: Apache-2.0 */
/* Who queues, for who decides nothing: a few at a time under the lock, which everybody else gets first in
 * between. */
#include "store/node_walk.h"
#include "store/store_state.h"

guint store_arrivals_each_by(struct store *store, const char *who, arrivals_visit visit, void *data)
{
    struct arrivals_cursor cursor = {0};
    bool more;
    guint n;

    do {
        store_lock_again_by(store, who);
        more = arrivals_walk(store->arrivals, &cursor, visit, data);
        n = arrivals_n(store->arrivals);
        store_unlock(store);
    } while (more);
    return n;
}

void store_gangs_each_by(struct store *store, const char *who,
                         void (*visit)(const struct gang_row *row, void *data), void *data)
{
    guint at = GANGS_ALL;
    bool more;

    do {
        store_lock_again_by(store, who);
        more = gangs_walk(store->gangs, &at, visit, data);
        store_unlock(store);
    } while (more);
}
