/* SPDX-License-Identifier: Apache-2.0 */
/* Promises that are stray: what the watch and lists say of pods in whatever phase. */
#include "store/store_state.h"

#define DIALECTS_MAX 8 /* whose node sides go by promises of other pods */

struct news {
    struct stray stray;
    bool made, awaited; /* as read */
    bool stands;        /* and is stray */
    uint64_t number;
};

/* Under the lock. A list that names it again is told as well: it sweeps what it does not name. */
static void note(struct store *store, struct news *news)
{
    const struct stray *stray = &news->stray;
    const bool changed =
        news->stands ? strays_set(store->strays, store->ledger, stray, store->generation[FEED_PODS])
                     : strays_drop(store->strays, store->ledger, stray->dialect, stray->uid);

    if (changed || (news->stands && store->listing[FEED_PODS]))
        news->number = observer_number(store->observer);
    if (changed)
        store_notify_all(store);
}

static void tell(struct store *store, const struct news *news)
{
    observer_tell(store->observer,
                  &(struct observation){news->stands ? OBSERVED_PROMISE : OBSERVED_PROMISE_GONE,
                                        news->number, .stray = &news->stray});
}

void store_set_promise(struct store *store, const struct stray *stray, bool stands)
{
    struct news news = {.stray = *stray, .stands = stands};

    store_lock(store);
    note(store, &news);
    store_unlock(store);
    tell(store, &news);
}

/* Under the lock. kubelet will ask for what is awaited, and the pod keeps its turn; but nobody is kept waiting by
 * a time that its author made up. */
static void judge(struct store *store, struct news *news)
{
    const struct stray *stray = &news->stray;
    const bool ordered = news->made && news->awaited && stray->dialect->whole_cluster;
    const bool ours = ordered && turns_wrote(store->turns, stray->uid, stray->time);

    news->stands =
        news->made && (!news->awaited || (ordered && !ours && stray->time < TURN_EARLIEST));
    if (ordered && !news->stands && (ours || stray->time <= TURN_LATEST))
        turns_set(store->turns, &(struct turn){stray->uid, stray->ns, stray->name, stray->time},
                  false);
}

int64_t store_choose_turn(const struct store *store, const struct dialect *dialect,
                          const struct node *node, const struct turn *pod, int64_t now_ns)
{
    if (!dialect->whole_cluster)
        return -1;
    return turns_choose(store->turns, store->ledger, pod, now_ns / G_GINT64_CONSTANT(1000000000),
                        MIN(dialect_outranked(node, dialect),
                            strays_least_before(store->strays, pod->ns, pod->name)));
}

void store_take_turn(struct store *store, const struct allocation *booked)
{
    if (booked->turn > 0)
        turns_set(store->turns, &(struct turn){booked->uid, booked->ns, booked->name, booked->turn},
                  true);
}

void store_note_promises(struct store *store, const struct pod_view *pod)
{
    struct news news[DIALECTS_MAX];
    int n = 0;

    for (size_t i = 0; dialects[i]; i++) {
        if (!dialects[i]->read_promise)
            continue;
        g_assert(n < DIALECTS_MAX);
        struct news *next = &news[n++];
        *next = (struct news){.stray = {dialects[i], .uid = pod->uid}};
        next->made = strays_read(dialects[i], pod, &next->stray, &next->awaited);
    }
    store_lock(store);
    for (int i = 0; i < n; i++) {
        judge(store, &news[i]);
        note(store, &news[i]);
    }
    store_unlock(store);
    for (int i = 0; i < n; i++)
        tell(store, &news[i]);
}

void store_drop_promises(struct store *store, const char *uid)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (dialects[i]->read_promise &&
            strays_drop(store->strays, store->ledger, dialects[i], uid))
            store_notify_all(store);
    }
}
