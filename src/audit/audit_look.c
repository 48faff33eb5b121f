/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with the cluster itself: the ledger counts it as well as it can, but only people
 * can put it right.
 */
#include "audit/audit_rows.h"
#include "core/ledger.h"
#include "dialect/marks/card_order.h"
#include "gate/node_backoff/node_backoff.h"

#include <string.h>

#define MS_NS INT64_C(1000000)

/* A node under the store's lock. */
struct look {
    struct audit_report *report;
    const struct store *store;
    const struct node *node;
    int64_t stuck_ns;
    int64_t now_ns;
    GHashTable *labels; /* namespace -> how many of its quotas' labels were found, as a pointer */
};

#define LABELS_TOLD 5 /* of one namespace: whoever may make pods there writes them */

static void find(const struct look *look, enum audit_cause cause, const struct allocation *pod,
                 char *take_ledger)
{
    audit_report_add(look->report,
                     &(struct audit_finding){
                         .cause = cause,
                         .pod = pod,
                         .node = look->node->name,
                         .take_cluster = audit_holding(pod, look->node->memory_unit),
                         .take_ledger = take_ledger,
                     });
}

/* --- annotations ---------------------------------------------------------------------------- */

static void look_at_annotations(const struct look *look, const struct allocation *pod)
{
    static const enum audit_cause causes[DISTRUST_N] = {
        [DISTRUST_NONE] = AUDIT_NONE,         [DISTRUST_UNMARKED] = AUDIT_FOREIGN,
        [DISTRUST_LOST] = AUDIT_LOST,         [DISTRUST_MALFORMED] = AUDIT_MALFORMED,
        [DISTRUST_EDITED] = AUDIT_EDITED,     [DISTRUST_UNREAD] = AUDIT_UNREAD,
        [DISTRUST_WAITED] = AUDIT_UNASSIGNED, [DISTRUST_UNSEALED] = AUDIT_UNSEALED,
        [DISTRUST_MISTAKEN] = AUDIT_MISTAKEN,
    };
    static const char *const counted[] = {"counted on every card", "counted on its only card"};
    const char *named = store_named_cards(look->store, pod->uid);
    /* Of whom it is not known where it was bound, nothing was edited. */
    const bool edited =
        named && pod->distrust != DISTRUST_UNSEALED && pod->distrust != DISTRUST_MISTAKEN;
    enum audit_cause cause = edited ? AUDIT_EDITED : causes[pod->distrust];
    bool unplaced = false, placed = false;
    uint32_t n;
    const struct share *shares = allocation_known(pod, &n);

    if (cause == AUDIT_NONE)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const bool said = shares[i].key || shares[i].card != CARD_UNKNOWN;
        placed |= !shares[i].device && said &&
                  (shares[i].basis == SHARE_HELD || shares[i].basis == SHARE_BY_UUID);
        unplaced |= !shares[i].device && !node_share_card(look->node, &shares[i]);
    }
    if (cause == AUDIT_FOREIGN && placed) /* all of them are gone */
        cause = AUDIT_LOST;
    if (edited)
        audit_report_add(look->report, &(struct audit_finding){
                                           .cause = cause,
                                           .pod = pod,
                                           .node = look->node->name,
                                           .take_cluster = g_strdup_printf("card %s", named),
                                           .take_ledger =
                                               audit_holding(pod, look->node->memory_unit),
                                       });
    else if (pod->n_shares == 0)
        find(look, cause, pod, g_strdup("nothing: its node side gives it no card"));
    else if (pod->distrust == DISTRUST_EDITED)
        find(look, cause, pod, g_strdup("the larger, if it runs with what the annotation states"));
    else if (pod->distrust == DISTRUST_WAITED)
        find(look, cause, pod, g_strdup("on its card; nobody waits for it any longer"));
    else if (unplaced || look->node->n_cards == 1)
        find(look, cause, pod, g_strdup(counted[look->node->n_cards == 1]));
    else
        find(look, cause, pod, g_strdup("on the card that it was bound to"));
}

/* The ledger takes the only card of a node for any; a UUID says another thing than that. */
static bool is_gone(const struct node *node, const struct share *share)
{
    if (share->device || !share->key)
        return !share->device && share->card != CARD_UNKNOWN && !node_card(node, share->card);
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (share->key == node->cards[i].key || share->key == node->cards[i].former_key)
            return false;
    }
    return true;
}

static void look_at_card(const struct look *look, const struct allocation *pod)
{
    if (look->node->sketch.dialect) /* which cards it has will be known when its plugin is back */
        return;
    for (uint32_t i = 0; i < pod->n_shares; i++) {
        const struct share *share = &pod->shares[i];

        if (!is_gone(look->node, share))
            continue;
        find(look, AUDIT_CARD_GONE, pod,
             share->key ? g_strdup_printf("counted on %s; none of the node's %d cards has this UUID",
                                          look->node->n_cards == 1 ? "its only card" : "every card",
                                          look->node->n_cards)
                        : g_strdup_printf("the node has %d cards", look->node->n_cards));
        return;
    }
}

static void look_at_assignment(const struct look *look, const struct allocation *pod)
{
    int64_t age_ns = look->now_ns - pod->assume_time_ns;

    if (pod->waiting && pod->assume_time_ns > 0 && age_ns > look->stuck_ns)
        find(look, AUDIT_UNASSIGNED, pod,
             g_strdup_printf("waiting for %" G_GINT64_FORMAT " s", age_ns / (1000 * MS_NS)));
}

/* --- cards that hold too much --------------------------------------------------------------- */

static bool is_on(const struct node *node, const struct share *share, const struct card *card)
{
    return !share->device && (node->n_cards == 1 || share->card == card->index);
}

/* Who came first may stay: those whose time is not known came last. */
static gint compare_times(gconstpointer a, gconstpointer b)
{
    const struct allocation *left = *(const struct allocation *const *)a;
    const struct allocation *right = *(const struct allocation *const *)b;
    uint64_t left_ns = (uint64_t)left->assume_time_ns - 1;
    uint64_t right_ns = (uint64_t)right->assume_time_ns - 1;

    if (left_ns != right_ns)
        return left_ns < right_ns ? -1 : 1;
    return strcmp(left->uid, right->uid);
}

static char *fullness(const struct node *node, const struct card *card)
{
    g_autofree char *used = audit_bytes(card->memory_used, node->memory_unit);
    g_autofree char *size = audit_bytes(card->memory, node->memory_unit);

    if (card->memory_used > card->memory)
        return g_strdup_printf("card %d holds %s of %s", card->index, used, size);
    const int32_t core = card_core_told(card, card->core_used);
    return g_strdup_printf("card %d holds %d.%d %% core", card->index, core / 10, core % 10);
}

static void look_at_fullness(const struct look *look, const struct card *card)
{
    const struct node *node = look->node;
    g_autoptr(GPtrArray) pods = g_ptr_array_new();
    int64_t memory = 0, core = 0;

    if (card->memory_used <= card->memory && card->core_used <= card->core)
        return;
    for (guint i = 0; i < node->allocations->len; i++)
        g_ptr_array_add(pods, g_ptr_array_index(node->allocations, i));
    g_ptr_array_sort(pods, compare_times);
    for (guint i = 0; i < pods->len; i++) {
        const struct allocation *pod = g_ptr_array_index(pods, i);
        bool here = false;

        for (uint32_t j = 0; j < pod->n_shares; j++) {
            if (!is_on(node, &pod->shares[j], card))
                continue;
            here = true;
            memory += card_bytes(node, card, pod->shares[j].memory);
            core += card_core(card, pod->shares[j].core);
        }
        if (here && (memory > card->memory || core > card->core))
            find(look, AUDIT_OVERBOOKED, pod, fullness(node, card));
    }
}

/* --- pods whose classes do not go together ---------------------------------------------------- */

static bool meet(const struct node *node, const struct share *one, const struct share *other)
{
    const struct pool *pool = one->device ? node_pool(node, one->device) : NULL;
    const struct card *card = node_share_card(node, one);

    if (pool)
        return pool->shared && other->device && g_str_equal(one->device, other->device);
    return card && !one->device && !other->device && node_share_card(node, other) == card;
}

static bool are_together(const struct node *node, const struct allocation *one,
                         const struct allocation *other)
{
    for (uint32_t i = 0; i < one->n_shares; i++) {
        for (uint32_t j = 0; j < other->n_shares; j++) {
            if (meet(node, &one->shares[i], &other->shares[j]))
                return true;
        }
    }
    return false;
}

/* The first of them is named. */
static void look_at_company(const struct look *look, const struct allocation *pod)
{
    const struct node *node = look->node;

    for (guint i = 0; work_class_is_choosy(pod->work_class) && i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (other == pod || work_class_mixes(pod->work_class, other->work_class) ||
            !are_together(node, pod, other))
            continue;
        find(look, AUDIT_COMPANY, pod,
             g_strdup_printf("class %s, beside %s/%s of %s", pod->work_class->name, other->ns,
                             other->name,
                             other->work_class ? other->work_class->name : "no class"));
        return;
    }
}

/* --- pods without limits -------------------------------------------------------------------- */

/* The first card that it shares is named. */
static void look_at_limits(const struct look *look, const struct allocation *pod)
{
    for (uint32_t i = 0; pod->terms && pod->terms->unlimited && i < pod->n_shares; i++) {
        const struct card *card = node_share_card(look->node, &pod->shares[i]);
        int32_t own = 0;
        for (uint32_t j = 0; card && j < pod->n_shares; j++)
            own += is_on(look->node, &pod->shares[j], card);
        if (!card || card->mig || card->holders <= own)
            continue;
        find(look, AUDIT_UNLIMITED, pod,
             g_strdup_printf("counted with all memory of card %d, which has %d other holder%s",
                             card->index, card->holders - own,
                             card->holders - own == 1 ? "" : "s"));
        return;
    }
}

/* --- cards by two kinds of numbers ------------------------------------------------------------- */

/* One pod of each kind is named. */
static void look_at_numbers(const struct look *look)
{
    const struct node *node = look->node;

    for (int32_t i = 0; i < node->n_dialects; i++) {
        const struct allocation *one = card_order_stranger(node, node->dialects[i]);
        const struct allocation *other = one ? card_order_stranger(node, one->dialect) : NULL;
        if (!other)
            continue;
        audit_report_add(look->report,
                         &(struct audit_finding){
                             .cause = AUDIT_CARD_NUMBERS,
                             .node = node->name,
                             .take_cluster = g_strdup_printf(
                                 "%s/%s of %s beside %s/%s of %s", one->ns, one->name,
                                 one->dialect->name, other->ns, other->name, other->dialect->name),
                             .take_ledger = g_strdup("taken for the same numbers"),
                         });
        return;
    }
}

/* --- quotas that pods ask for ------------------------------------------------------------------ */

static void look_at_quota(const struct look *look, const struct allocation *pod)
{
    const struct elastic_quotas *quotas = store_elastic_quotas(look->store);
    const struct pod_view view = {.uid = pod->uid, .ns = pod->ns};

    if (!quotas || elastic_quotas_heeds(quotas, pod->uid))
        return;
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(look->labels, pod->ns));
    if (n == LABELS_TOLD) {
        audit_report_count(look->report, AUDIT_QUOTA_LABEL);
        return;
    }
    g_hash_table_insert(look->labels, g_strdup(pod->ns), GUINT_TO_POINTER(n + 1));
    const char *choice = elastic_quotas_choice(quotas, pod->uid);
    const struct elastic_account *account = elastic_quotas_account(quotas, &view);
    audit_report_add(
        look->report,
        &(struct audit_finding){
            .cause = AUDIT_QUOTA_LABEL,
            .pod = pod,
            .node = look->node->name,
            .take_cluster = g_strdup_printf("asks for quota '%s': %s", choice,
                                            elastic_choice_fault(quotas, pod->ns, choice)),
            .take_ledger = account ? g_strdup_printf("counts in %s", elastic_account_id(account))
                                   : g_strdup("counts in no quota"),
        });
}

/* By the quota's name: no pod and no node is at fault. */
static void find_unkept(const struct elastic_unkept *unkept, void *data)
{
    const char *name = unkept->name ? unkept->name : unkept->ns;
    struct allocation *pod = allocation_new("", unkept->ns, name, 0);
    char *why = unkept->key ? g_strdup_printf("its limit of '%s' is not counted", unkept->key)
                            : g_strdup("cannot be read, or there are too many");

    audit_report_add(data, &(struct audit_finding){
                               .cause = AUDIT_QUOTA_UNKEPT,
                               .pod = pod,
                               .node = "",
                               .take_cluster = why,
                               .take_ledger = g_strdup("pods that it may limit are refused"),
                           });
    allocation_free(pod);
}

static void look_at_unkept(struct audit_report *report, struct store *store)
{
    store_lock(store);
    const struct elastic_quotas *quotas = store_elastic_quotas(store);
    if (quotas)
        elastic_quotas_each_unkept(quotas, find_unkept, report);
    store_unlock(store);
}

/* --- nodes that are left out ---------------------------------------------------------------- */

static void find_backoff(const struct node_backoff_row *row, void *data)
{
    const struct look *look = data;

    audit_report_add(look->report, &(struct audit_finding){
                                       .cause = AUDIT_LEFT_OUT,
                                       .node = row->node,
                                       .take_cluster = g_strdup_printf(
                                           "rejected pods: %" G_GUINT64_FORMAT " (%s)", row->total,
                                           rejection_names[row->last]),
                                       .take_ledger = node_backoff_text(row, 0),
                                   });
}

/* --- promises that nobody asks for ------------------------------------------------------------ */

static bool find_promise(const struct stray *stray, void *data)
{
    const struct look *look = data;
    struct allocation *pod = allocation_new(stray->uid, stray->ns, stray->name, 0);

    audit_report_add(look->report,
                     &(struct audit_finding){
                         .cause = AUDIT_PROMISE,
                         .pod = pod,
                         .node = stray->node,
                         .take_cluster = g_strdup_printf("promised GPUs of %s on the node",
                                                         stray->dialect->title),
                         .take_ledger = g_strdup(stray->revocable ? "to be revoked"
                                                                  : "its scheduler may bind it"),
                     });
    allocation_free(pod);
    return true;
}

/* --- groups that are half ------------------------------------------------------------------- */

struct half_look {
    struct audit_report *report;
    const struct ledger *ledger;
};

/* About one of its pods that are bound. */
static void find_half(const struct gang_half *half, void *data)
{
    const struct half_look *look = data;
    const struct gang_row *group = &half->group;
    const struct allocation *pod = ledger_get(look->ledger, half->uid);

    if (!pod)
        return;
    g_autofree char *raised =
        half->raised_from > 0 ? g_strdup_printf(", which were %u", half->raised_from) : NULL;
    audit_report_add(look->report,
                     &(struct audit_finding){
                         .cause = AUDIT_GROUP_HALF,
                         .pod = pod,
                         .node = pod->node->name,
                         .take_cluster = g_strdup_printf(
                             "group %s: %u bound of the %u that it needs%s", group->name,
                             group->bound, group->min, raised ? raised : ""),
                         .take_ledger = g_strdup_printf("%u known, half for %" G_GINT64_FORMAT " s",
                                                        group->known, half->for_ms / 1000),
                     });
}

static void look_at_groups(struct audit_report *report, struct store *store)
{
    struct moment moment;
    struct half_look look = {.report = report, .ledger = store_decide(store, &moment)};

    gangs_each_half(store_gangs(store), moment.now_ms, find_half, &look);
    store_unlock(store);
}

/* --- all of it ------------------------------------------------------------------------------ */

/* Everything that is wrong with a node's pods and cards as they stand. */
static void look_at_node(const struct look *from, struct store *store, const char *name)
{
    struct audit_report *report = from->report;
    const struct node *node = ledger_node(store_lock(store), name);
    struct look look = *from;

    look.node = node;
    look.now_ns = g_get_real_time() * 1000;

    report->nodes += node && node->present && node->n_cards > 0;
    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *pod = g_ptr_array_index(node->allocations, i);

        report->pods++;
        if (pod->state != ALLOCATION_CONFIRMED)
            continue;
        look_at_annotations(&look, pod);
        if (node->present)
            look_at_card(&look, pod);
        look_at_assignment(&look, pod);
        look_at_company(&look, pod);
        look_at_limits(&look, pod);
        look_at_quota(&look, pod);
    }
    for (int32_t i = 0; node && i < node->n_cards; i++)
        look_at_fullness(&look, &node->cards[i]);
    if (node && node->present)
        look_at_numbers(&look);
    node_backoff_each(store_part(store, &part_node_backoff), name, find_backoff, &look);
    strays_each(store_strays(store), name, find_promise, &look);
    store_unlock(store);
}

struct audit_report *audit_look(struct store *store, const struct audit_options *options)
{
    int64_t began_ms = g_get_monotonic_time() / 1000;
    struct audit_report *report = audit_report_new();
    g_autoptr(GPtrArray) names = audit_node_names(store);
    g_autoptr(GHashTable) labels = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const struct look look = {
        .report = report, .store = store, .stuck_ns = options->stuck_ms * MS_NS, .labels = labels};

    for (guint i = 0; i < names->len; i++)
        look_at_node(&look, store, g_ptr_array_index(names, i));
    look_at_groups(report, store);
    look_at_unkept(report, store);
    audit_report_finish(report, began_ms);
    return report;
}
