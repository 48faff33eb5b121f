/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/turns/turns.h"

#include "core/ledger.h"
#include "core/node_traits.h"

#include <gpuledger/dialect.h>
#include <string.h>

/* Between two pods, so that others fit there. */
#define STEP (INT64_C(1) << 16)
#define TIME_MAX (INT64_C(1) << 62)
/* The node lifecycle controller's, of a node whose kubelet reports no more. */
#define UNREACHABLE "node.kubernetes.io/unreachable"

struct entry {
    struct turn turn; /* strings are owned */
    int64_t written;  /* by gpuledger; 0: nothing was */
    GSequenceIter *at;
};

struct turns {
    GHashTable *entries; /* uid, the entry's own -> struct entry * */
    GSequence *by_time;
};

static void entry_free(gpointer data)
{
    struct entry *entry = data;

    g_sequence_remove(entry->at);
    g_free((char *)entry->turn.uid);
    g_free((char *)entry->turn.ns);
    g_free((char *)entry->turn.name);
    g_free(entry);
}

struct turns *turns_new(void)
{
    struct turns *turns = g_new0(struct turns, 1);

    turns->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    turns->by_time = g_sequence_new(NULL);
    return turns;
}

void turns_free(struct turns *turns)
{
    g_hash_table_unref(turns->entries);
    g_sequence_free(turns->by_time);
    g_free(turns);
}

static gint compare_times(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct entry *one = a, *other = b;

    return one->turn.time < other->turn.time ? -1 : one->turn.time > other->turn.time;
}

void turns_set(struct turns *turns, const struct turn *turn, bool ours)
{
    const struct entry *known = g_hash_table_lookup(turns->entries, turn->uid);
    struct entry *entry;

    if (known && known->turn.time == turn->time && (!ours || known->written == turn->time))
        return;
    entry = g_new(struct entry, 1);
    entry->turn = *turn;
    entry->turn.uid = g_strdup(turn->uid);
    entry->turn.ns = g_strdup(turn->ns ? turn->ns : "");
    entry->turn.name = g_strdup(turn->name ? turn->name : "");
    entry->written = ours ? turn->time : known ? known->written : 0;
    entry->at = g_sequence_insert_sorted(turns->by_time, entry, compare_times, NULL);
    g_hash_table_replace(turns->entries, (char *)entry->turn.uid, entry);
}

void turns_drop(struct turns *turns, const char *uid)
{
    g_hash_table_remove(turns->entries, uid);
}

bool turns_wrote(const struct turns *turns, const char *uid, int64_t time)
{
    const struct entry *entry = g_hash_table_lookup(turns->entries, uid);

    return entry && entry->written == time && time > 0;
}

int turns_compare(const char *ns, const char *name, const char *other_ns, const char *other_name)
{
    const int by_ns = strcmp(ns ? ns : "", other_ns ? other_ns : "");

    return by_ns ? by_ns : strcmp(name ? name : "", other_name ? other_name : "");
}

/* What it holds if it waits, and the pod comes before it (1) or after it (-1) in the list; else NULL. */
static const struct allocation *find_beside(const struct entry *entry, const struct ledger *ledger,
                                            const struct turn *pod, int side)
{
    const struct turn *other = &entry->turn;
    const struct allocation *held = ledger_get(ledger, other->uid);

    if (!held || !(held->waiting || held->awaited) || g_strcmp0(other->uid, pod->uid) == 0)
        return NULL;
    return turns_compare(other->ns, other->name, pod->ns, pod->name) * side > 0 ? held : NULL;
}

/* Whether a kubelet may ask a plugin there that begins with the first pod of the cluster. */
static bool may_ask(const struct node *node)
{
    const struct node_traits *traits = node->traits;
    bool asks = false;

    for (int32_t i = 0; i < node->n_dialects; i++)
        asks |= node->dialects[i]->whole_cluster;
    for (uint32_t i = 0; traits && i < traits->n_taints; i++)
        asks &= g_strcmp0(traits->taints[i].key, UNREACHABLE) != 0;
    return asks && node->present;
}

/* The least time of those that come before the pod: it needs a smaller one. */
static int64_t find_before(const struct turns *turns, const struct ledger *ledger,
                           const struct turn *pod)
{
    GSequenceIter *at = g_sequence_get_begin_iter(turns->by_time);

    for (int i = 1; !g_sequence_iter_is_end(at); i++, at = g_sequence_iter_next(at)) {
        const struct entry *entry = g_sequence_get(at);
        if (i > TURNS_LOOK_MAX || find_beside(entry, ledger, pod, -1))
            return entry->turn.time;
    }
    return INT64_MAX;
}

/* The largest of those that come after it: it needs a larger one. `all`: also of those for whom no kubelet asks
 * now, as far as is known. */
static int64_t find_after(const struct turns *turns, const struct ledger *ledger,
                          const struct turn *pod, bool all)
{
    const int looks = all ? TURNS_LOOK_MAX : TURNS_LOOK_AGAIN_MAX;
    GSequenceIter *at = g_sequence_get_end_iter(turns->by_time);

    for (int i = 1; !g_sequence_iter_is_begin(at); i++) {
        at = g_sequence_iter_prev(at);
        const struct entry *entry = g_sequence_get(at);
        const struct allocation *held = find_beside(entry, ledger, pod, 1);
        if (i > looks || (held && (all || may_ask(held->node))))
            return entry->turn.time;
    }
    return 0;
}

/* `now_s` if that will do; 0: there is none. */
static int64_t choose_between(int64_t above, int64_t below, int64_t now_s)
{
    if (now_s < below && (above == 0 || now_s - above >= STEP))
        return now_s;
    if (below == INT64_MAX)
        return above < TIME_MAX ? above + STEP : 0;
    if (below - above < 2)
        return 0;
    /* Others may come after it, or between. */
    return above == 0 ? below - MAX(1, below >> 10) : above + (below - above) / 2;
}

int64_t turns_choose(const struct turns *turns, const struct ledger *ledger, const struct turn *pod,
                     int64_t now_s, int64_t before)
{
    const int64_t below = MIN(before, find_before(turns, ledger, pod));
    const int64_t time = choose_between(find_after(turns, ledger, pod, true), below, now_s);

    return time ? time : choose_between(find_after(turns, ledger, pod, false), below, now_s);
}
