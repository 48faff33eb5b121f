/* SPDX-License-Identifier: Apache-2.0 */
/* Promises that are stray: what the watch and lists say of pods in whatever phase. */
#include "store/store_state.h"

#define DIALECTS_MAX 8 /* whose node sides go by promises of other pods */

struct news {
    struct stray stray;
    bool stands;
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
    struct news news = {*stray, stands, 0};

    store_lock(store);
    note(store, &news);
    store_unlock(store);
    tell(store, &news);
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
        next->stands = strays_read(dialects[i], pod, &next->stray);
    }
    store_lock(store);
    for (int i = 0; i < n; i++)
        note(store, &news[i]);
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
