/* SPDX-License-Identifier: Apache-2.0 */
/* Nominated pods that are on their way: for them nobody ends. */
#include "core/ledger.h"
#include "queue/nominations_state.h"

static struct nomination *find(const struct nominations *nominations, const char *uid)
{
    return uid ? g_hash_table_lookup(nominations->pods, uid) : NULL;
}

/* Others may find more of the node from now on. */
static void stop(struct nominations *nominations, struct nomination *nomination)
{
    if (nomination->comes_until_ns != 0)
        ledger_mark_freed(nominations->ledger, nomination->node);
    nomination->comes_until_ns = 0;
}

void nominations_expect(struct nominations *nominations, int64_t until_ns)
{
    if (until_ns > 0)
        nominations->earliest_ns = MIN(nominations->earliest_ns, until_ns);
}

bool nominations_unsettled(const struct nominations *nominations, const char *uid)
{
    const struct nomination *nomination = find(nominations, uid);

    return nomination && nomination->comes_until_ns == COMES_UNKNOWN;
}

void nominations_settle(struct nominations *nominations, const char *uid, bool comes)
{
    struct nomination *nomination = find(nominations, uid);

    if (nomination && nomination->comes_until_ns == COMES_UNKNOWN)
        nomination->comes_until_ns = comes ? COMES_NOW : 0;
}

void nominations_stop(struct nominations *nominations, const char *uid)
{
    struct nomination *nomination = find(nominations, uid);

    if (nomination)
        stop(nominations, nomination);
}

/* Whatever the order: nobody counts as coming before all have been asked. */
static GPtrArray *ask_unknown(struct nominations *nominations,
                              const struct nominations_begin *begin)
{
    GPtrArray *coming = g_ptr_array_new();
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, nominations->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct nomination *one = value;
        if (one->comes_until_ns == COMES_NOW ||
            (one->comes_until_ns == COMES_UNKNOWN && begin->comes(one->uid, begin->data)))
            g_ptr_array_add(coming, one);
    }
    return coming;
}

void nominations_begin(struct nominations *nominations, const struct nominations_begin *begin)
{
    GHashTableIter iter;
    gpointer value;

    if (!nominations->any_unsettled)
        return;
    nominations->any_unsettled = false;
    g_autoptr(GPtrArray) coming = ask_unknown(nominations, begin);
    g_hash_table_iter_init(&iter, nominations->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct nomination *one = value;
        one->comes_until_ns = MAX(one->comes_until_ns, 0);
    }
    for (guint i = 0; i < coming->len; i++) {
        struct nomination *one = coming->pdata[i];
        one->comes_until_ns = begin->now_ns + begin->lasts_ns;
        nominations->n_kept++;
        nominations_expect(nominations, one->comes_until_ns);
    }
}

bool nominations_end_coming(struct nominations *nominations, int64_t now_ns)
{
    GHashTableIter iter;
    gpointer value;
    bool any = false;

    if (now_ns < nominations->earliest_ns)
        return false;
    nominations->earliest_ns = INT64_MAX;
    g_hash_table_iter_init(&iter, nominations->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct nomination *one = value;
        if (one->comes_until_ns > 0 && one->comes_until_ns <= now_ns) {
            stop(nominations, one);
            any = true;
        }
        nominations_expect(nominations, one->comes_until_ns);
    }
    return any;
}

void nominations_each_coming(const struct nominations *nominations,
                             void (*visit)(const char *uid, int64_t until_ns, void *data),
                             void *data)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, nominations->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct nomination *one = value;
        if (one->comes_until_ns != 0)
            visit(one->uid, one->comes_until_ns, data);
    }
}

void nominations_learn_none_comes(struct nominations *nominations)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, nominations->pods);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        ((struct nomination *)value)->comes_until_ns = 0;
}

void nominations_learn_coming(struct nominations *nominations, const char *uid, int64_t until_ns)
{
    struct nomination *nomination = find(nominations, uid);

    if (!nomination || nomination->claim)
        return;
    nomination->comes_until_ns = until_ns;
    nominations->any_unsettled |= until_ns < 0;
    nominations_expect(nominations, until_ns);
}
