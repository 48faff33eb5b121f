/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/bind/waiters.h"

#include <string.h>

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The namespaces of those who wait for the node, or of all; sorted. */
static GPtrArray *list_namespaces(const struct waiters *waiters, const char *node)
{
    GPtrArray *names = g_ptr_array_sized_new(waiters->n);

    for (const struct waiting_bind *one = waiters->youngest; one; one = one->older) {
        if (!one->cut && (!node || g_str_equal(one->node, node)))
            g_ptr_array_add(names, (gpointer)one->ns);
    }
    g_ptr_array_sort(names, compare_names);
    return names;
}

/* The namespace that has most of them, if it should give way to one more of `ns`; else NULL. */
static const char *find_largest(const GPtrArray *names, const char *ns)
{
    const char *largest = NULL;
    guint most = 0, own = 0;

    for (guint i = 0, run = 0; i < names->len; i++) {
        run = i > 0 && g_str_equal(names->pdata[i], names->pdata[i - 1]) ? run + 1 : 1;
        own += g_str_equal(names->pdata[i], ns);
        if (run > most) {
            most = run;
            largest = names->pdata[i];
        }
    }
    return own + 1 < most ? largest : NULL;
}

static guint count_waiters(const struct waiters *waiters, const char *node)
{
    guint n = 0;

    for (const struct waiting_bind *one = waiters->youngest; one; one = one->older)
        n += !one->cut && (!node || g_str_equal(one->node, node));
    return n;
}

/* Makes room among those who wait for the node, or among all. */
static bool make_room(struct waiters *waiters, const char *node, guint max,
                      const struct waiting_bind *waiter, bool *ret_cut)
{
    if (waiters->n < max || count_waiters(waiters, node) < max)
        return true;
    g_autoptr(GPtrArray) names = list_namespaces(waiters, node);
    const char *largest = find_largest(names, waiter->ns);
    struct waiting_bind *one = waiters->youngest;
    while (largest && one &&
           (one->cut || !g_str_equal(one->ns, largest) || (node && !g_str_equal(one->node, node))))
        one = one->older;
    if (!largest || !one)
        return false;
    one->cut = true;
    *ret_cut = true;
    return true;
}

bool waiters_enter(struct waiters *waiters, struct waiting_bind *waiter, bool *ret_cut)
{
    const guint max = waiters->max ? waiters->max : WAITERS_MAX;

    *ret_cut = false;
    if (waiter->in)
        return !waiter->cut;
    if (!make_room(waiters, waiter->node, WAITERS_PER_NODE_MAX, waiter, ret_cut) ||
        !make_room(waiters, NULL, max, waiter, ret_cut))
        return false;
    waiter->in = true;
    waiter->older = waiters->youngest;
    if (waiter->older)
        waiter->older->younger = waiter;
    waiters->youngest = waiter;
    waiters->n++;
    return true;
}

void waiters_leave(struct waiters *waiters, struct waiting_bind *waiter)
{
    if (!waiter->in)
        return;
    if (waiter->older)
        waiter->older->younger = waiter->younger;
    if (waiter->younger)
        waiter->younger->older = waiter->older;
    else
        waiters->youngest = waiter->older;
    *waiter = (struct waiting_bind){.ns = waiter->ns, .node = waiter->node};
    waiters->n--;
}
