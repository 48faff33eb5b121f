/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/elastic/sparing.h"

#include "core/ledger.h"
#include "policy/reclaim.h"
#include "quota/elastic/elastic_state.h"

#include <stdlib.h>
#include <string.h>

G_STATIC_ASSERT(ELASTIC_KEYS_MAX == RECLAIM_KEYS_MAX);

struct elastic_sparing {
    const struct elastic_room *room;
    struct elastic_quotas *quotas;
    struct ledger *ledger;
    GHashTable *
        ending; /* account -> amount_sum[ELASTIC_KEYS_MAX]: of pods that terminate; NULL: not counted */
};

/* One node, from the cheapest of its pods on. */
struct looking {
    struct elastic_sparing *sparing;
    guint unsure;                      /* elastic_room_unsure */
    GHashTable *borrowers;             /* account -> struct borrower * */
    const struct allocation *measured; /* `amounts` are its, and those of pods like it */
    int64_t amounts[ELASTIC_KEYS_MAX];
};

struct elastic_sparing *elastic_sparing_new(const struct elastic_room *room, struct ledger *ledger)
{
    if (!room || !elastic_room_account(room))
        return NULL;
    struct elastic_sparing *sparing = g_new0(struct elastic_sparing, 1);
    sparing->room = room;
    sparing->quotas = elastic_room_quotas(room);
    sparing->ledger = ledger;
    return sparing;
}

void elastic_sparing_free(struct elastic_sparing *sparing)
{
    if (!sparing)
        return;
    g_clear_pointer(&sparing->ending, g_hash_table_unref);
    g_free(sparing);
}

static const struct elastic_account *account_of(const struct elastic_sparing *sparing,
                                                const struct allocation *allocation)
{
    const struct pod_view pod = {.uid = allocation->uid, .ns = allocation->ns};

    return elastic_quotas_account(sparing->quotas, &pod);
}

/* What no account has a min for is guaranteed to none. */
static void measure(const struct elastic_sparing *sparing, const struct allocation *allocation,
                    int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    elastic_quotas_measure(sparing->quotas, allocation, ret_amounts);
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++)
        ret_amounts[key] = sparing->quotas->min[key] ? ret_amounts[key] : 0;
}

/* --- pods that terminate -------------------------------------------------------------------------- */

static void add_ending(struct elastic_sparing *sparing, const struct allocation *allocation)
{
    const struct elastic_account *at = account_of(sparing, allocation);
    int64_t amounts[ELASTIC_KEYS_MAX];

    measure(sparing, allocation, amounts);
    for (; at && !at->whole; at = at->parent) {
        amount_sum *sums = g_hash_table_lookup(sparing->ending, at);
        if (!sums) {
            sums = g_new0(amount_sum, ELASTIC_KEYS_MAX);
            g_hash_table_insert(sparing->ending, (gpointer)at, sums);
        }
        for (int key = 0; key < ELASTIC_KEYS_MAX; key++)
            sums[key] += amounts[key];
    }
}

/* Once for all nodes, and only for a pod that borrows: it looks at each pod of the ledger. */
static void count_ending(struct elastic_sparing *sparing)
{
    const GPtrArray *nodes = ledger_nodes(sparing->ledger);

    if (sparing->ending)
        return;
    sparing->ending = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        for (guint j = 0; j < node->allocations->len; j++) {
            const struct allocation *one = node->allocations->pdata[j];
            if (one->terminating)
                add_ending(sparing, one);
        }
    }
}

/* --- one node ------------------------------------------------------------------------------------- */

/* Where the way up from the account meets the preempting pod's: at their number, if only at the top; -1: they lend
 * each other nothing. */
static int meets(const struct elastic_sparing *sparing, const struct elastic_account *account)
{
    const struct elastic_account *own = elastic_room_account(sparing->room);

    if (elastic_account_top(account) != elastic_account_top(own))
        return -1;
    for (; account && !account->whole; account = account->parent) {
        int level = 0;
        for (const struct elastic_account *at = own; at && !at->whole; at = at->parent, level++) {
            if (at == account)
                return level;
        }
    }
    int n = 0;
    for (; own && !own->whole; own = own->parent)
        n++;
    return n;
}

static bool is_above_own(const struct elastic_sparing *sparing,
                         const struct elastic_account *account)
{
    const struct elastic_account *own = elastic_room_account(sparing->room);

    while (own && own != account)
        own = own->parent;
    return own != NULL;
}

/* NULL: the account is the preempting pod's own, or above it. */
static struct borrower *borrower_of(struct looking *looking, const struct elastic_account *account)
{
    const struct elastic_sparing *sparing = looking->sparing;

    if (!account || account->whole || is_above_own(sparing, account))
        return NULL;
    struct borrower *borrower = g_hash_table_lookup(looking->borrowers, account);
    if (borrower)
        return borrower;
    const amount_sum *ending = g_hash_table_lookup(sparing->ending, account);
    borrower = g_new0(struct borrower, 1);
    borrower->parent = borrower_of(looking, account->parent);
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++) {
        borrower->held[key] = account->used_sum[key] - (ending ? ending[key] : 0);
        borrower->min[key] = account->min[key];
    }
    g_hash_table_insert(looking->borrowers, (gpointer)account, borrower);
    return borrower;
}

/* The pods of a node that stand together here mostly hold the same. */
static bool holds_something(struct looking *looking, const struct allocation *one)
{
    bool any = false;

    if (!looking->measured || !share_pods_are_alike(looking->measured, one)) {
        measure(looking->sparing, one, looking->amounts);
        looking->measured = one;
    }
    for (int key = 0; key < ELASTIC_KEYS_MAX; key++)
        any |= looking->amounts[key] > 0;
    return any;
}

/* Whether the pod may end, and then it counts as gone. */
static bool take(struct looking *looking, const struct allocation *one)
{
    const struct elastic_account *account = account_of(looking->sparing, one);

    if (!account || meets(looking->sparing, account) > (int)looking->unsure ||
        !holds_something(looking, one))
        return true;
    struct borrower *borrower = borrower_of(looking, account);
    if (!borrower)
        return true;
    if (!borrower_may_give(borrower, looking->amounts, ELASTIC_KEYS_MAX))
        return false;
    borrower_give(borrower, looking->amounts, ELASTIC_KEYS_MAX, 1);
    return true;
}

/* The cheapest first; of equal ones those of one card together, then the youngest. */
static int compare(const void *a, const void *b)
{
    const struct allocation *one = *(struct allocation *const *)a;
    const struct allocation *other = *(struct allocation *const *)b;
    const int32_t card = one->n_shares > 0 ? one->shares[0].card : CARD_UNKNOWN;
    const int32_t others = other->n_shares > 0 ? other->shares[0].card : CARD_UNKNOWN;

    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    if (card != others)
        return card < others ? -1 : 1;
    if (one->created_s != other->created_s)
        return one->created_s > other->created_s ? -1 : 1;
    return strcmp(one->uid, other->uid);
}

GHashTable *elastic_sparing_find(struct elastic_sparing *sparing, const struct node *node,
                                 int64_t priority)
{
    struct looking looking = {.sparing = sparing};
    GHashTable *spared = NULL;
    size_t n = 0;

    if (!sparing || (looking.unsure = elastic_room_unsure(sparing->room, node)) == 0)
        return NULL;
    count_ending(sparing);
    g_autofree struct allocation **lesser = g_new(struct allocation *, node->allocations->len + 1);
    for (guint i = 0; i < node->allocations->len; i++) {
        struct allocation *one = node->allocations->pdata[i];
        if (one->priority < priority && !one->terminating)
            lesser[n++] = one;
    }
    qsort(lesser, n, sizeof(struct allocation *), compare);
    looking.borrowers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (size_t i = 0; i < n; i++) {
        if (take(&looking, lesser[i]))
            continue;
        if (!spared)
            spared = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_add(spared, g_strdup(lesser[i]->uid));
    }
    g_hash_table_unref(looking.borrowers);
    return spared;
}
