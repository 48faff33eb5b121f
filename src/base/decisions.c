/* SPDX-License-Identifier: Apache-2.0 */
#include "base/decisions.h"
#include "core/reason/reasons.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GQueue rows = G_QUEUE_INIT; /* struct decision_row *, the latest first, strings owned */

static struct decision_row *row_new(const struct decision_row *from)
{
    struct decision_row *row = g_new(struct decision_row, 1);

    *row = *from;
    row->decision.ns = g_strdup(from->decision.ns);
    row->decision.name = g_strdup(from->decision.name);
    row->decision.node = g_strdup(from->decision.node);
    row->decision.why = g_strdup(from->decision.why);
    return row;
}

static void row_free(gpointer data)
{
    struct decision_row *row = data;

    g_free((gpointer)row->decision.ns);
    g_free((gpointer)row->decision.name);
    g_free((gpointer)row->decision.node);
    g_free((gpointer)row->decision.why);
    g_free(row);
}

void decision_set_refusals(struct decision *decision, const uint64_t counts[REASONS_MAX])
{
    for (unsigned reason = REASON_NONE + 1; reason < reasons_count(); reason++) {
        unsigned at = DECISION_REASONS;
        while (at > 0 && counts[reason] > decision->refusals[at - 1].n)
            at--;
        if (at == DECISION_REASONS)
            continue;
        memmove(&decision->refusals[at + 1], &decision->refusals[at],
                (DECISION_REASONS - 1 - at) * sizeof decision->refusals[0]);
        decision->refusals[at].reason = (enum reason)reason;
        decision->refusals[at].n = counts[reason];
    }
}

static bool is_about(const struct decision *one, const struct decision *other)
{
    return one->verb == other->verb && g_strcmp0(one->name, other->name) == 0 &&
           g_strcmp0(one->ns, other->ns) == 0;
}

static bool is_same(const struct decision *one, const struct decision *other)
{
    for (size_t i = 0; i < DECISION_REASONS; i++) {
        if (one->refusals[i].n != other->refusals[i].n ||
            one->refusals[i].reason != other->refusals[i].reason)
            return false;
    }
    return one->card == other->card && one->n_nodes == other->n_nodes &&
           one->n_taking == other->n_taking && one->result == other->result &&
           g_strcmp0(one->node, other->node) == 0 && g_strcmp0(one->why, other->why) == 0;
}

/* The row that says the same, if nothing else was decided about the pod since. */
static GList *find_same(const struct decision *decision)
{
    for (GList *at = rows.head; at; at = at->next) {
        const struct decision_row *row = at->data;
        if (is_about(&row->decision, decision))
            return is_same(&row->decision, decision) ? at : NULL;
    }
    return NULL;
}

void decisions_note(const struct decision *decision, int64_t now_s)
{
    pthread_mutex_lock(&lock);
    GList *same = find_same(decision);
    if (same) {
        struct decision_row *row = same->data;
        row->last_s = now_s;
        row->times++;
        g_queue_unlink(&rows, same);
        g_queue_push_head_link(&rows, same);
    } else {
        g_queue_push_head(&rows, row_new(&(struct decision_row){*decision, now_s, now_s, 1}));
        if (rows.length > DECISIONS_MAX)
            row_free(g_queue_pop_tail(&rows));
    }
    pthread_mutex_unlock(&lock);
}

void decisions_each(void (*visit)(const struct decision_row *row, void *data), void *data)
{
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func(row_free);

    pthread_mutex_lock(&lock);
    for (const GList *at = rows.head; at; at = at->next)
        g_ptr_array_add(copies, row_new(at->data));
    pthread_mutex_unlock(&lock);
    for (guint i = 0; i < copies->len; i++)
        visit(g_ptr_array_index(copies, i), data);
}
