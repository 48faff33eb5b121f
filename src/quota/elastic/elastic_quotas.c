/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims/may_end.h"
#include "quota/elastic/elastic_state.h"

#include <gpuledger/error.h>
#include <string.h>

/* --- making ----------------------------------------------------------------------------------- */

static void free_list(gpointer list)
{
    g_ptr_array_unref(list);
}

struct elastic_quotas *elastic_quotas_new(void)
{
    struct elastic_quotas *quotas = g_new0(struct elastic_quotas, 1);

    quotas->trusted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    quotas->all = g_ptr_array_new_with_free_func(quota_free);
    quotas->unkept[0] = unkept_new();
    quotas->unkept[1] = unkept_new();
    quotas->keys = g_ptr_array_new();
    quotas->accounts = g_ptr_array_new_with_free_func(account_free);
    quotas->doors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_list);
    quotas->choices = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    quotas->chosen = g_hash_table_new_full(choice_hash, choice_equal, choice_free, NULL);
    node_tallies_init(&quotas->counted);
    quotas->tallies = g_ptr_array_new_with_free_func(tally_free);
    quotas->holders = g_hash_table_new_full(holder_hash, holder_equal, holder_free, NULL);
    quotas->waiters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, waiter_free);
    quotas->fresh = g_hash_table_new(NULL, NULL);
    quotas->kinds =
        g_hash_table_new_full(waiting_kind_hash, waiting_kind_equal, waiting_kind_free, NULL);
    quotas->n_kinds = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    quotas->uncounted = g_hash_table_new(NULL, NULL);
    return quotas;
}

void elastic_quotas_free(struct elastic_quotas *quotas)
{
    g_hash_table_unref(quotas->fresh);
    g_hash_table_unref(quotas->uncounted);
    g_hash_table_unref(quotas->n_kinds);
    g_hash_table_unref(quotas->kinds);
    g_hash_table_unref(quotas->waiters);
    g_ptr_array_unref(quotas->tallies);
    g_hash_table_unref(quotas->holders);
    node_tallies_clear(&quotas->counted);
    g_hash_table_unref(quotas->choices);
    g_hash_table_unref(quotas->chosen);
    g_hash_table_unref(quotas->doors);
    g_ptr_array_unref(quotas->accounts);
    g_ptr_array_unref(quotas->keys);
    g_hash_table_unref(quotas->unkept[0]);
    g_hash_table_unref(quotas->unkept[1]);
    g_ptr_array_unref(quotas->all);
    g_hash_table_unref(quotas->trusted);
    for (guint key = 0; key < ELASTIC_KEYS_MAX; key++)
        g_free(quotas->outlooks[key]);
    g_free(quotas);
}

/* --- what they say ---------------------------------------------------------------------------- */

static bool is_same_keys(const GPtrArray *one, const GPtrArray *other)
{
    return one->len == other->len &&
           (one->len == 0 || memcmp(one->pdata, other->pdata, one->len * sizeof *one->pdata) == 0);
}

static void rebuild(struct elastic_quotas *quotas)
{
    GPtrArray *keys = keys_choose(quotas);
    const bool same = is_same_keys(keys, quotas->keys);

    g_ptr_array_unref(quotas->keys);
    quotas->keys = keys;
    accounts_make(quotas);
    elastic_settle_holders(quotas);
    elastic_uncount_kinds(quotas, true);
    quotas->round += !same;
    choices_weigh(quotas);
}

void elastic_quotas_trust(struct elastic_quotas *quotas, const char *namespaces)
{
    g_auto(GStrv) names = g_strsplit(namespaces ? namespaces : "", ",", -1);

    g_hash_table_unref(quotas->trusted);
    quotas->trusted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (char **name = names; *name; name++)
        g_hash_table_add(quotas->trusted, g_strdup(g_strstrip(*name)));
    rebuild(quotas);
}

void elastic_quotas_lend_reclaimable(struct elastic_quotas *quotas, bool bare)
{
    quotas->reclaimable = true;
    quotas->bare = bare;
}

static struct quota *find(const struct elastic_quotas *quotas,
                          const struct resource_quota_view *view)
{
    for (guint i = 0; i < quotas->all->len; i++) {
        struct quota *quota = quotas->all->pdata[i];
        if (quota->elastic == view->elastic && g_str_equal(quota->name, view->name) &&
            g_str_equal(quota->ns, view->ns))
            return quota;
    }
    return NULL;
}

/* What it said before counts on; one of which nothing is known closes its namespace. */
static bool shut(struct elastic_quotas *quotas, const struct resource_quota_view *view,
                 uint32_t generation, const struct quota *known, bool *ret_changed)
{
    *ret_changed = !known && !elastic_quotas_closes(quotas, view->ns);
    if (!known)
        unkept_set(quotas, view->elastic, view->ns, view->name, generation);
    if (*ret_changed)
        rebuild(quotas); /* those of its pods that wait count no more */
    return false;
}

bool elastic_quotas_set(struct elastic_quotas *quotas, const struct resource_quota_view *view,
                        struct elastic_limits *limits, uint32_t generation, bool *ret_changed,
                        GError **error)
{
    struct quota *known = find(quotas, view), *quota = elastic_limits_take(limits, error);

    *ret_changed = false;
    if (known)
        known->generation = generation;
    if (!quota)
        return shut(quotas, view, generation, known, ret_changed);
    *ret_changed = unkept_remove(quotas, view->elastic, view->ns, view->name);
    if (*ret_changed)
        rebuild(quotas);
    if (known ? quota_is_same(known, quota) : quota_is_idle(quota)) {
        quota_free(quota);
        return true;
    }
    if (!known && !quota_is_idle(quota) && !unkept_make_room(quotas, view->ns)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "quota '%s/%s': there are more than %d, and its namespace has the most",
                    view->ns, view->name, ELASTIC_QUOTAS_MAX);
        quota_free(quota);
        return shut(quotas, view, generation, NULL, ret_changed);
    }
    if (known)
        g_ptr_array_remove(quotas->all, known);
    quota->generation = generation;
    if (quota_is_idle(quota))
        quota_free(quota);
    else
        g_ptr_array_add(quotas->all, quota);
    *ret_changed = true;
    rebuild(quotas);
    return true;
}

void elastic_quotas_remove(struct elastic_quotas *quotas, const struct resource_quota_view *view)
{
    const bool opened = unkept_remove(quotas, view->elastic, view->ns, view->name);

    if (g_ptr_array_remove(quotas->all, find(quotas, view)) || opened)
        rebuild(quotas);
}

bool elastic_quotas_sweep(struct elastic_quotas *quotas, bool elastic, uint32_t generation)
{
    const guint before = quotas->all->len;
    const bool opened = unkept_sweep(quotas, elastic, generation);

    for (guint i = quotas->all->len; i-- > 0;) {
        const struct quota *quota = quotas->all->pdata[i];
        if (quota->elastic == elastic && quota->generation != generation)
            g_ptr_array_remove_index(quotas->all, i);
    }
    if (quotas->all->len == before && !opened)
        return false;
    rebuild(quotas);
    return true;
}

static void set_tie(struct elastic_quotas *quotas, const char *uid, enum pod_tie tie)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, uid);

    if (!waiter || waiter->tie == tie)
        return;
    elastic_uncount(quotas, waiter);
    waiter->tie = tie;
    g_hash_table_add(quotas->fresh, waiter);
}

enum pod_tie elastic_tie_of(const struct elastic_quotas *quotas, const struct pod_view *pod)
{
    const struct waiter *waiter = pod->uid ? g_hash_table_lookup(quotas->waiters, pod->uid) : NULL;

    if (!quotas->reclaimable)
        return 0;
    if (pod->n_containers > 0) /* the whole pod, and not only its names */
        return may_end_not(ENDER_RECLAIM, quotas->bare, pod_view_ties(pod));
    return waiter ? waiter->tie : 0;
}

void elastic_quotas_tie(struct elastic_quotas *quotas, const struct pod_view *pod)
{
    set_tie(quotas, pod->uid, elastic_tie_of(quotas, pod));
}

struct elastic_quotas *elastic_quotas_dup(const struct elastic_quotas *quotas)
{
    struct elastic_quotas *copy = elastic_quotas_new();

    g_hash_table_unref(copy->trusted);
    copy->trusted = g_hash_table_ref(quotas->trusted);
    copy->reclaimable = quotas->reclaimable;
    copy->bare = quotas->bare;
    for (guint i = 0; i < quotas->all->len; i++)
        g_ptr_array_add(copy->all, quota_dup(quotas->all->pdata[i]));
    unkept_copy(copy, quotas);
    g_ptr_array_unref(copy->keys);
    copy->keys = g_ptr_array_copy(quotas->keys, NULL, NULL);
    rebuild(copy);
    return copy;
}

void elastic_quotas_copy_pod(struct elastic_quotas *quotas, const struct elastic_quotas *from,
                             const char *uid)
{
    const struct waiter *waiter = g_hash_table_lookup(from->waiters, uid);

    choices_copy(quotas, from, uid);
    if (!waiter)
        return;
    elastic_quotas_await(quotas, uid, waiter->ns, waiter->request);
    set_tie(quotas, uid, waiter->tie);
    elastic_quotas_hope(quotas, uid, !waiter->hopeless);
}

/* --- pods ------------------------------------------------------------------------------------- */

void elastic_quotas_choose(struct elastic_quotas *quotas, const struct pod_view *pod,
                           const char *choice, const char *node)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, pod->uid);

    if (g_strcmp0(elastic_quotas_choice(quotas, pod->uid), choice) == 0)
        return;
    choices_set(quotas, pod, choice);
    if (waiter) {
        elastic_uncount(quotas, waiter);
        g_hash_table_add(quotas->fresh, waiter);
    }
    if (node)
        node_tallies_renew(&quotas->counted, node);
}

bool elastic_quotas_forget(struct elastic_quotas *quotas, const char *uid)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, uid);
    const bool limited = waiter && accounts_find(quotas, waiter->ns, NULL);

    if (!waiter)
        return false;
    elastic_uncount(quotas, waiter);
    g_hash_table_remove(quotas->waiters, uid);
    return limited;
}

bool elastic_quotas_hope(struct elastic_quotas *quotas, const char *uid, bool hope)
{
    struct waiter *waiter = g_hash_table_lookup(quotas->waiters, uid);

    if (!waiter || waiter->hopeless == !hope)
        return false;
    waiter->hopeless = !hope;
    elastic_uncount(quotas, waiter);
    g_hash_table_add(quotas->fresh, waiter);
    return !hope && accounts_find(quotas, waiter->ns, NULL);
}

void elastic_quotas_leave(struct elastic_quotas *quotas, const char *uid)
{
    elastic_quotas_forget(quotas, uid);
    choices_set(quotas, &(struct pod_view){.uid = uid}, NULL);
}

void elastic_quotas_await(struct elastic_quotas *quotas, const char *uid, const char *ns,
                          const struct request *request)
{
    struct waiter *waiter = g_new0(struct waiter, 1);

    elastic_quotas_forget(quotas, uid);
    waiter->uid = g_strdup(uid);
    waiter->ns = g_strdup(ns);
    waiter->request = request_dup(request);
    g_hash_table_insert(quotas->waiters, (gpointer)waiter->uid, waiter);
    g_hash_table_add(quotas->fresh, waiter);
}

const struct elastic_account *elastic_quotas_account(const struct elastic_quotas *quotas,
                                                     const struct pod_view *pod)
{
    const char *choice = pod->uid ? elastic_quotas_choice(quotas, pod->uid) : NULL;

    return accounts_find(quotas, pod->ns ? pod->ns : "", choice ? choice : quota_of_pod(pod));
}

const struct elastic_account *elastic_account_parent(const struct elastic_account *account)
{
    return account->parent && !account->parent->whole ? account->parent : NULL;
}

const struct elastic_account *elastic_account_top(const struct elastic_account *account)
{
    while (account->parent)
        account = account->parent;
    return account;
}

const char *elastic_account_id(const struct elastic_account *account)
{
    return account->id;
}

bool elastic_account_in_tree(const struct elastic_account *account)
{
    return account->quota != NULL;
}

bool elastic_account_borrows(const struct elastic_quotas *quotas,
                             const struct elastic_account *account)
{
    for (; account && !account->whole; account = account->parent) {
        for (guint key = 0; key < quotas->keys->len; key++) {
            if (quotas->min[key] && account->used[key] > account->min[key])
                return true;
        }
    }
    return false;
}

/* --- giving back ------------------------------------------------------------------------------ */

uint32_t elastic_quotas_n_keys(const struct elastic_quotas *quotas)
{
    return quotas->keys->len;
}

bool elastic_quotas_lends(const struct elastic_quotas *quotas, uint32_t key)
{
    return quotas->min[key];
}

void elastic_quotas_sum(struct elastic_quotas *quotas, struct ledger *ledger,
                        const struct elastic_account *account, struct elastic_sums *ret_sums)
{
    elastic_count_all(quotas, ledger);
    memcpy(ret_sums->min, account->min, sizeof account->min);
    memcpy(ret_sums->max, account->max, sizeof account->max);
    memcpy(ret_sums->used, account->used_sum, sizeof account->used_sum);
    memcpy(ret_sums->sure, account->used_sum, sizeof account->used_sum);
    for (guint i = account->place + 1; i < quotas->accounts->len; i++) {
        const struct elastic_account *below = quotas->accounts->pdata[i];
        for (guint key = 0; below->parent == account && key < quotas->keys->len; key++)
            ret_sums->sure[key] -= MAX(below->used_sum[key] - below->min[key], 0);
    }
}

void elastic_quotas_measure(const struct elastic_quotas *quotas,
                            const struct allocation *allocation,
                            int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    memset(ret_amounts, 0, ELASTIC_KEYS_MAX * sizeof *ret_amounts);
    for (guint key = 0; key < quotas->keys->len; key++)
        ret_amounts[key] = elastic_amount(quotas->keys->pdata[key], allocation);
}

void elastic_quotas_measure_placed(const struct elastic_quotas *quotas, const struct node *node,
                                   const struct placement *placement,
                                   int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    memset(ret_amounts, 0, ELASTIC_KEYS_MAX * sizeof *ret_amounts);
    elastic_measure_placement(quotas, node, placement, ret_amounts);
}

uint64_t elastic_quotas_round(const struct elastic_quotas *quotas)
{
    return quotas->round;
}

void elastic_quotas_foresee(const struct elastic_quotas *quotas, const struct node *node,
                            const struct request *request, int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    memset(ret_amounts, 0, ELASTIC_KEYS_MAX * sizeof *ret_amounts);
    elastic_measure_request(quotas, node, request, ret_amounts);
}

/* --- for people ------------------------------------------------------------------------------- */

static const char *const faults[QUOTA_FAULT_N] = {
    [QUOTA_FAULT_NONE] = "",
    [QUOTA_FAULT_NO_PARENT] = "no_parent",
    [QUOTA_FAULT_PARENT_TWICE] = "parent_twice",
    [QUOTA_FAULT_TREE] = "tree",
    [QUOTA_FAULT_CIRCLE] = "circle",
    [QUOTA_FAULT_DEPTH] = "depth",
    [QUOTA_FAULT_LISTS] = "lists",
    [QUOTA_FAULT_BESIDE] = "beside",
};

const char *quota_fault_code(enum quota_fault fault)
{
    return faults[fault];
}

bool elastic_quotas_limit(const struct elastic_quotas *quotas)
{
    return quotas->all->len > 0 || g_hash_table_size(quotas->unkept[0]) > 0 ||
           g_hash_table_size(quotas->unkept[1]) > 0;
}

uint64_t elastic_quotas_n_counted(const struct elastic_quotas *quotas)
{
    return quotas->counted.n_pods + quotas->n_examined;
}

guint elastic_quotas_n_faults(const struct elastic_quotas *quotas)
{
    guint n = 0;

    for (guint i = 0; i < quotas->accounts->len; i++)
        n +=
            ((const struct elastic_account *)quotas->accounts->pdata[i])->fault != QUOTA_FAULT_NONE;
    return n;
}

struct elastic_count elastic_count_of(const struct elastic_quotas *quotas,
                                      const struct elastic_account *account, guint key)
{
    const struct elastic_account *parent = elastic_account_parent(account);

    return (struct elastic_count){
        .ns = account->ns,
        .quota = account->name,
        .parent = parent           ? parent->name
                  : account->quota ? account->quota->parent
                                   : NULL,
        .tree = account->tree,
        .fault = account->fault,
        .keeps = account->keeps,
        .key = quotas->keys->pdata[key],
        .min = account->min[key],
        .max = account->max[key],
        .weight = account->weighted ? account->weight[key] : 0,
        .used = account->used[key],
        .waiting = account->waiting[key],
    };
}

static gint compare_ids(gconstpointer a, gconstpointer b)
{
    return strcmp((*(struct elastic_account *const *)a)->id,
                  (*(struct elastic_account *const *)b)->id);
}

static bool is_of_note(const struct elastic_count *count)
{
    return count->min > 0 || count->max < INT64_MAX || count->fault != QUOTA_FAULT_NONE ||
           (count->quota && (count->used > 0 || count->waiting > 0));
}

void elastic_quotas_each(struct elastic_quotas *quotas, struct ledger *ledger,
                         void (*visit)(const struct elastic_count *count, void *data), void *data)
{
    g_autoptr(GPtrArray) shown = g_ptr_array_new();
    const guint n = quotas->keys->len;
    g_autofree int64_t *lendable = g_new(int64_t, (gsize)quotas->accounts->len *n + 1);

    for (guint i = 0; i < quotas->accounts->len; i++)
        g_ptr_array_add(shown, quotas->accounts->pdata[i]);
    elastic_count_all(quotas, ledger);
    for (guint key = 0; key < n; key++) {
        lending_look(quotas, key);
        for (guint i = 0; i < shown->len; i++)
            lendable[i * n + key] =
                quotas->min[key] ? amount_sum_told(quotas->outlooks[key][i].lendable) : INT64_MAX;
    }
    g_ptr_array_sort(shown, compare_ids);
    for (guint i = 0; i < shown->len; i++) {
        const struct elastic_account *account = shown->pdata[i];
        for (guint key = 0; !account->whole && key < n; key++) {
            struct elastic_count count = elastic_count_of(quotas, account, key);
            count.lendable = lendable[account->place * n + key];
            count.share = INT64_MAX;
            if (is_of_note(&count))
                visit(&count, data);
        }
    }
}
