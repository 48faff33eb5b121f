/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/turns/turns.h"

#include "core/ledger.h"

#include <string.h>

/* Between two pods, so that others fit there. */
#define STEP (INT64_C(1) << 16)
#define TIME_MAX (INT64_C(1) << 62)

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

/* Whether it waits, and the pod comes before it (1) or after it (-1) in the list. */
static bool is_beside(const struct entry *entry, const struct ledger *ledger,
                      const struct turn *pod, int side)
{
    const struct turn *other = &entry->turn;
    const struct allocation *held = ledger_get(ledger, other->uid);

    if (!held || !(held->waiting || held->awaited) || g_strcmp0(other->uid, pod->uid) == 0)
        return false;
    return turns_compare(other->ns, other->name, pod->ns, pod->name) * side > 0;
}

/* The least time of those that come before the pod: it needs a smaller one. */
static int64_t find_before(const struct turns *turns, const struct ledger *ledger,
                           const struct turn *pod)
{
    GSequenceIter *at = g_sequence_get_begin_iter(turns->by_time);

    for (int i = 1; !g_sequence_iter_is_end(at); i++, at = g_sequence_iter_next(at)) {
        const struct entry *entry = g_sequence_get(at);
        if (i > TURNS_LOOK_MAX || is_beside(entry, ledger, pod, -1))
            return entry->turn.time;
    }
    return INT64_MAX;
}

/* The largest of those that come after it: it needs a larger one. */
static int64_t find_after(const struct turns *turns, const struct ledger *ledger,
                          const struct turn *pod)
{
    GSequenceIter *at = g_sequence_get_end_iter(turns->by_time);

    for (int i = 1; !g_sequence_iter_is_begin(at); i++) {
        at = g_sequence_iter_prev(at);
        const struct entry *entry = g_sequence_get(at);
        if (i > TURNS_LOOK_MAX || is_beside(entry, ledger, pod, 1))
            return entry->turn.time;
    }
    return 0;
}

int64_t turns_choose(const struct turns *turns, const struct ledger *ledger, const struct turn *pod,
                     int64_t now_s, int64_t before)
{
    const int64_t below = MIN(before, find_before(turns, ledger, pod));
    const int64_t above = find_after(turns, ledger, pod);

    if (now_s < below && (above == 0 || now_s - above >= STEP))
        return now_s;
    if (below == INT64_MAX)
        return above < TIME_MAX ? above + STEP : 0;
    if (below - above < 2)
        return 0;
    /* Others may come after it, or between. */
    return above == 0 ? below - MAX(1, below >> 10) : above + (below - above) / 2;
}
