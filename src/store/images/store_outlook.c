/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value model of policies that go by the expected pods is made by a thread that decides nothing
 * (verbs/outlook.h), and swapped in: a call goes by the last one. Both moments are events, so that a replay makes
 * the same model of the same pods and nodes, and goes over to it at the same place. A record's file that begins
 * does not know the last one: from there on decisions go without, until the next is there.
 */
#include "core/ledger.h"
#include "policy/demand.h"
#include "policy/value_model.h"
#include "store/store_state.h"

/* Under the lock. */
static struct supplies *collect(struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    struct supplies *supplies = supplies_new(true);

    for (guint i = 0; i < nodes->len; i++)
        supplies_add(supplies, nodes->pdata[i]);
    return supplies;
}

/* Under the lock. */
static bool is_due(const struct store *store)
{
    return store->expected && demand_is_known(store->demand) &&
           (!store->apart || !demand_is_settled(store->demand, store->ledger));
}

bool store_begin_outlook(struct store *store, bool replayed)
{
    struct outlook_draft *draft = &store->draft;
    uint64_t number = 0;
    bool begun = false;

    store_lock(store);
    if (!draft->demand && (replayed || is_due(store))) {
        number = observer_number(store->observer);
        *draft = (struct outlook_draft){.demand = demand_draft(store->demand, store->ledger),
                                        .supplies = collect(store->ledger)};
        store->apart = begun = true;
    }
    store_unlock(store);
    if (begun)
        observer_tell(store->observer, &(struct observation){OBSERVED_OUTLOOK_BEGUN, number});
    return begun;
}

void store_make_outlook(struct store *store)
{
    store_lock(store);
    struct outlook_draft draft = store->draft; /* only whoever has begun it takes it away */
    store_unlock(store);
    if (draft.demand)
        demand_settle_for(draft.demand, draft.supplies);
}

void store_swap_outlook(struct store *store)
{
    uint64_t number = 0;

    store_lock(store);
    const struct outlook_draft draft = store->draft;
    const bool swaps = draft.demand && !draft.dropped;
    store->draft = (struct outlook_draft){0};
    if (swaps) {
        number = observer_number(store->observer);
        demand_adopt(store->demand, draft.demand);
        store->bare = false;
    }
    store_unlock(store);
    if (swaps)
        observer_tell(store->observer, &(struct observation){OBSERVED_OUTLOOK, number});
    demand_free(draft.demand);
    if (draft.supplies)
        supplies_free(draft.supplies);
}

void store_refresh_outlook(struct store *store)
{
    if (!store_begin_outlook(store, false))
        return;
    store_make_outlook(store);
    store_swap_outlook(store);
}

const struct demand *store_demand(struct store *store)
{
    if (!store->apart || (!store->bare && !demand_value_model(store->demand)))
        demand_settle(store->demand, store->ledger);
    return store->demand;
}

static bool expects(const struct policy *policy)
{
    return policy && policy->expects;
}

const struct demand *store_demand_for(struct store *store, const struct request *request)
{
    bool wanted = expects(store->options.policy) || g_hash_table_size(store->expecting) > 0;

    for (; request && !wanted; request = request->alternative)
        wanted = expects(terms_rating(request->terms, NULL)) ||
                 (request->terms && expects(request->terms->policy)) ||
                 (request->dialect && expects(request->dialect->policy));
    if (!wanted)
        return NULL;
    store->expected = true;
    return store_demand(store);
}

void store_learn(struct store *store, const struct demand *demand, bool bare)
{
    store_lock(store);
    store_take_lesson(store, demand, bare);
    store_unlock(store);
}

void store_note_policy(struct store *store, const char *name, const struct policy *policy)
{
    if (expects(policy))
        g_hash_table_add(store->expecting, g_strdup(name));
    else
        g_hash_table_remove(store->expecting, name);
}
