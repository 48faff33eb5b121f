/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pods wait for. Those that wait alike are one kind, so that another quota, or other nodes, measure a few kinds
 * and not all pods again.
 */
#include "core/ledger.h"
#include "quota/elastic/elastic_state.h"

void waiter_free(gpointer data)
{
    struct waiter *waiter = data;

    g_free(waiter->ns);
    request_free(waiter->request);
    g_free(waiter);
}

/* --- kinds -------------------------------------------------------------------------------------- */

guint waiting_kind_hash(gconstpointer data)
{
    const struct waiting_kind *kind = data;
    const struct request *request = kind->request;
    guint hash = g_str_hash(kind->ns) * 31 + (kind->choice ? g_str_hash(kind->choice) : 0);

    hash = hash * 31 + g_direct_hash(request->dialect) + (guint)kind->tie;
    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        hash = hash * 31 + (guint)ask->memory.value;
        hash = hash * 31 + (guint)(ask->core * 64 + ask->count);
    }
    return hash;
}

static bool are_same_asks(const struct card_ask *a, const struct card_ask *b)
{
    return a->memory.value == b->memory.value && a->memory.kind == b->memory.kind &&
           a->memory.at_least == b->memory.at_least && a->container == b->container &&
           a->count == b->count && a->core == b->core && a->exclusive == b->exclusive &&
           a->init == b->init && a->sidecar == b->sidecar && g_strcmp0(a->device, b->device) == 0;
}

/* In what counts: pods that ask for other CPU or other cards are alike. */
static bool ask_alike(const struct request *a, const struct request *b)
{
    for (; a && b; a = a->alternative, b = b->alternative) {
        if (a->dialect != b->dialect || a->n_asks != b->n_asks)
            return false;
        for (uint32_t i = 0; i < a->n_asks; i++) {
            if (!are_same_asks(&a->asks[i], &b->asks[i]))
                return false;
        }
    }
    return a == b;
}

gboolean waiting_kind_equal(gconstpointer one, gconstpointer other)
{
    const struct waiting_kind *left = one, *right = other;

    return left->tie == right->tie && g_str_equal(left->ns, right->ns) &&
           g_strcmp0(left->choice, right->choice) == 0 && ask_alike(left->request, right->request);
}

void waiting_kind_free(gpointer data)
{
    struct waiting_kind *kind = data;

    g_free(kind->ns);
    g_free(kind->choice);
    request_free(kind->request);
    g_free(kind);
}

static void note_kinds(struct elastic_quotas *quotas, const char *ns, int more)
{
    const gint n = GPOINTER_TO_INT(g_hash_table_lookup(quotas->n_kinds, ns)) + more;

    if (n > 0)
        g_hash_table_replace(quotas->n_kinds, g_strdup(ns), GINT_TO_POINTER(n));
    else
        g_hash_table_remove(quotas->n_kinds, ns);
}

/* NULL: the namespace has too many. */
static struct waiting_kind *reach_kind(struct elastic_quotas *quotas, const struct waiter *waiter)
{
    const char *choice = elastic_quotas_choice(quotas, waiter->uid);
    const struct waiting_kind wanted = {
        .ns = waiter->ns, .choice = (char *)choice, .tie = waiter->tie, .request = waiter->request};
    struct waiting_kind *kind = NULL;

    if (g_hash_table_lookup_extended(quotas->kinds, &wanted, (gpointer *)&kind, NULL))
        return kind;
    if (GPOINTER_TO_INT(g_hash_table_lookup(quotas->n_kinds, waiter->ns)) >= WAITING_KINDS_MAX)
        return NULL;
    kind = g_new0(struct waiting_kind, 1);
    kind->ns = g_strdup(waiter->ns);
    kind->choice = g_strdup(choice);
    kind->tie = waiter->tie;
    kind->request = request_dup(waiter->request);
    note_kinds(quotas, kind->ns, 1);
    g_hash_table_add(quotas->kinds, kind);
    g_hash_table_add(quotas->uncounted, kind);
    return kind;
}

/* So many pods of the kind more, or less. */
static void add_waiting(struct elastic_quotas *quotas, const struct waiting_kind *kind, int64_t n)
{
    if (kind->account)
        elastic_note_change(quotas);
    for (struct elastic_account *at = kind->account; at; at = at->parent) {
        for (guint key = 0; key < quotas->keys->len; key++) {
            const amount_sum amount = (amount_sum)kind->amounts[key] * n;
            at->waiting_sum[key] += amount;
            at->waiting[key] = amount_sum_told(at->waiting_sum[key]);
            if (kind->tie && at == kind->account)
                at->tied_sum[key] += amount;
        }
    }
}

void elastic_uncount(struct elastic_quotas *quotas, struct waiter *waiter)
{
    struct waiting_kind *kind = waiter->kind;

    g_hash_table_remove(quotas->fresh, waiter);
    waiter->kind = NULL;
    if (!kind)
        return;
    add_waiting(quotas, kind, -1);
    if (--kind->n > 0)
        return;
    note_kinds(quotas, kind->ns, -1);
    g_hash_table_remove(quotas->uncounted, kind);
    g_hash_table_remove(quotas->kinds, kind);
}

void elastic_uncount_kinds(struct elastic_quotas *quotas, bool anew)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, quotas->kinds);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        struct waiting_kind *kind = value;
        if (!anew)
            add_waiting(quotas, kind, -(int64_t)kind->n);
        kind->account = NULL;
        g_hash_table_add(quotas->uncounted, kind);
    }
}

/* --- counting ----------------------------------------------------------------------------------- */

/* A node on which pods of the dialect may be, for units and sizes that only nodes know. */
static const struct node *find_example(struct elastic_quotas *quotas, struct ledger *ledger,
                                       const struct dialect *dialect)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        quotas->n_examined++;
        if (node->present && (node->dialect == dialect || node_offers(node, dialect)))
            return node;
    }
    return NULL;
}

/* The same for all that are counted at a time: `examples` has those that were looked for. */
static const struct node *example_of(struct elastic_quotas *quotas, struct ledger *ledger,
                                     const struct dialect *dialect, GHashTable *examples)
{
    gpointer node;

    if (!g_hash_table_lookup_extended(examples, dialect, NULL, &node)) {
        node = (gpointer)find_example(quotas, ledger, dialect);
        g_hash_table_insert(examples, (gpointer)dialect, node);
    }
    return node;
}

/* Whether a quota lets them come when nobody else has anything of it. */
static bool may_ever_have(const struct elastic_quotas *quotas, const struct waiting_kind *kind,
                          const struct elastic_account *account)
{
    if (elastic_quotas_closes(quotas, kind->ns))
        return false;
    for (const struct elastic_account *at = account; at; at = at->parent) {
        if (unkept_concerns(at, kind->request))
            return false;
        for (guint key = 0; key < quotas->keys->len; key++) {
            const bool sure = quotas->min[key] && (!at->parent || kind->tie);
            const int64_t most = sure ? MIN(at->min[key], at->max[key]) : at->max[key];
            if (kind->amounts[key] > most)
                return false;
        }
    }
    return true;
}

static void count_kind(struct elastic_quotas *quotas, struct ledger *ledger,
                       struct waiting_kind *kind, GHashTable *examples)
{
    struct elastic_account *account = accounts_find(quotas, kind->ns, kind->choice);
    const struct node *node =
        account ? example_of(quotas, ledger, kind->request->dialect, examples) : NULL;

    quotas->n_examined++;
    if (!node)
        return;
    elastic_measure_request(quotas, node, kind->request, kind->amounts);
    if (!may_ever_have(quotas, kind, account))
        return;
    kind->account = account;
    add_waiting(quotas, kind, kind->n);
}

static bool count_fresh(struct elastic_quotas *quotas, struct ledger *ledger, uint64_t *left)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, quotas->fresh);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        struct waiter *waiter = value;
        if (ledger_get(ledger, waiter->uid))
            continue;
        if (*left == 0)
            return false;
        --*left;
        quotas->n_examined++;
        g_hash_table_iter_remove(&iter);
        waiter->kind = waiter->hopeless ? NULL : reach_kind(quotas, waiter);
        if (!waiter->kind)
            continue;
        waiter->kind->n++;
        add_waiting(quotas, waiter->kind, 1);
    }
    return true;
}

bool elastic_count_waiters(struct elastic_quotas *quotas, struct ledger *ledger, uint64_t *left)
{
    GHashTableIter iter;
    gpointer kind;

    if (quotas->supply != ledger_supply(ledger))
        elastic_uncount_kinds(quotas, false);
    quotas->supply = ledger_supply(ledger);
    if (g_hash_table_size(quotas->fresh) > 0 && !count_fresh(quotas, ledger, left))
        return false;
    if (g_hash_table_size(quotas->uncounted) == 0) /* the usual case */
        return true;
    g_autoptr(GHashTable) examples = g_hash_table_new(NULL, NULL);
    g_hash_table_iter_init(&iter, quotas->uncounted);
    while (g_hash_table_iter_next(&iter, &kind, NULL)) {
        if (*left == 0)
            return false;
        --*left;
        g_hash_table_iter_remove(&iter);
        count_kind(quotas, ledger, kind, examples);
    }
    return true;
}
