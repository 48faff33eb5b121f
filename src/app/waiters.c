/* SPDX-License-Identifier: Apache-2.0 */
#include "app/waiters.h"

#include <glib.h>
#include <pthread.h>

struct waiters {
    unsigned max, per_node_max;
    pthread_mutex_t lock; /* the rest */
    unsigned n;
    GHashTable *nodes; /* name to how many, in the pointer */
};

struct waiters *waiters_new(unsigned max, unsigned per_node_max)
{
    struct waiters *waiters = g_new0(struct waiters, 1);

    waiters->max = max;
    waiters->per_node_max = per_node_max;
    pthread_mutex_init(&waiters->lock, NULL);
    waiters->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return waiters;
}

void waiters_free(struct waiters *waiters)
{
    if (!waiters)
        return;
    g_hash_table_unref(waiters->nodes);
    pthread_mutex_destroy(&waiters->lock);
    g_free(waiters);
}

static unsigned count(const struct waiters *waiters, const char *node)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(waiters->nodes, node));
}

bool waiters_enter(struct waiters *waiters, const char *node)
{
    if (!waiters)
        return true;
    pthread_mutex_lock(&waiters->lock);
    const unsigned there = count(waiters, node);
    const bool enters = waiters->n < waiters->max && there < waiters->per_node_max;
    if (enters) {
        waiters->n++;
        g_hash_table_insert(waiters->nodes, g_strdup(node), GUINT_TO_POINTER(there + 1));
    }
    pthread_mutex_unlock(&waiters->lock);
    return enters;
}

void waiters_leave(struct waiters *waiters, const char *node)
{
    if (!waiters)
        return;
    pthread_mutex_lock(&waiters->lock);
    const unsigned there = count(waiters, node);
    waiters->n--;
    if (there > 1)
        g_hash_table_insert(waiters->nodes, g_strdup(node), GUINT_TO_POINTER(there - 1));
    else
        g_hash_table_remove(waiters->nodes, node);
    pthread_mutex_unlock(&waiters->lock);
}
