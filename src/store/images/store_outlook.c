/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value model of policies that go by the expected pods is made by a thread that decides nothing
 * (verbs/outlook.h), and swapped in: a call goes by the last one. Both moments are events, so that a replay makes
 * the same model of the same pods and nodes, and goes over to it at the same place.
 */
#include "core/ledger.h"
#include "policy/demand.h"
#include "policy/value_model.h"
#include "store/store_state.h"

struct outlook_draft {
    struct demand *demand;
    struct supplies *supplies;
    bool dropped; /* what was learned is another thing by now */
};

static void free_draft(struct outlook_draft *draft)
{
    demand_free(draft->demand);
    g_clear_pointer(&draft->supplies, supplies_free);
    g_free(draft);
}

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
    struct outlook_draft *draft = NULL;
    uint64_t number = 0;

    store_lock(store);
    if (!store->draft && (replayed || is_due(store))) {
        number = observer_number(store->observer);
        draft = g_new0(struct outlook_draft, 1);
        draft->supplies = collect(store->ledger);
        draft->demand = demand_draft(store->demand, store->ledger);
        store->draft = draft;
        store->apart = true;
    }
    store_unlock(store);
    if (draft)
        observer_tell(store->observer, &(struct observation){OBSERVED_OUTLOOK_BEGUN, number});
    return draft;
}

void store_make_outlook(struct store *store)
{
    store_lock(store);
    struct outlook_draft *draft = store->draft; /* only whoever has begun it takes it away */
    store_unlock(store);
    if (draft)
        demand_settle_for(draft->demand, draft->supplies);
}

void store_swap_outlook(struct store *store)
{
    uint64_t number = 0;
    bool swapped = false;

    store_lock(store);
    struct outlook_draft *draft = store->draft;
    store->draft = NULL;
    if (draft && !draft->dropped) {
        number = observer_number(store->observer);
        demand_adopt(store->demand, draft->demand);
        swapped = true;
    }
    store_unlock(store);
    if (swapped)
        observer_tell(store->observer, &(struct observation){OBSERVED_OUTLOOK, number});
    if (draft)
        free_draft(draft);
}

void store_refresh_outlook(struct store *store)
{
    if (!store_begin_outlook(store, false))
        return;
    store_make_outlook(store);
    store_swap_outlook(store);
}

void store_drop_outlook(struct store *store)
{
    if (store->draft)
        store->draft->dropped = true;
    store->apart = false;
}

const struct demand *store_demand(struct store *store)
{
    if (!store->apart || !demand_value_model(store->demand))
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

void store_learn(struct store *store, const struct demand *demand)
{
    const struct learned_demand learned = demand_tell(demand);

    store_lock(store);
    demand_learn(store->demand, &learned);
    store_drop_outlook(store);
    hints_forget_all(store->hints);
    store_unlock(store);
}

void store_note_policy(struct store *store, const char *name, const struct policy *policy)
{
    if (expects(policy))
        g_hash_table_add(store->expecting, g_strdup(name));
    else
        g_hash_table_remove(store->expecting, name);
}
