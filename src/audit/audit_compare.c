/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger against the cluster. The first comparison finds suspects only: the lists are not of
 * one moment, and the watch is always a little behind. Each suspect is then asked about, the watch
 * gets its time, and the ledger is looked at again; who still differs is asked about once more, for
 * it may have changed meanwhile.
 */
#include "core/fail.h"
#include "audit/audit_rows.h"
#include "core/ledger/granted_unit.h"
#include "core/ledger.h"
#include "store/images/node_images.h"

#include <string.h>

#define CALL_MS 5000
#define SUSPECTS_MAX 500 /* each costs two calls */

/* What a pod holds by the API server; allocation NULL: nothing. */
struct truth {
    struct allocation *allocation;
    char *node;
    char *version; /* of the object */
};

struct suspect {
    char *uid, *ns, *name;
    struct truth truth;
};

struct comparison {
    struct store *store;
    struct store *fresh;
    struct cluster *cluster;
    const struct audit_options *options;
    struct audit_report *report;
    struct node_images *images; /* of the store's */
    GPtrArray *pods;            /* struct suspect * */
    GHashTable *spaces;         /* namespace -> how many are suspects */
    GPtrArray *nodes; /* char *: names */
};

static void truth_clear(struct truth *truth)
{
    g_clear_pointer(&truth->allocation, allocation_free);
    g_clear_pointer(&truth->node, g_free);
    g_clear_pointer(&truth->version, g_free);
}
typedef struct truth truth;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(truth, truth_clear)

static void suspect_free(gpointer data)
{
    struct suspect *suspect = data;
    g_free(suspect->uid);
    g_free(suspect->ns);
    g_free(suspect->name);
    truth_clear(&suspect->truth);
    g_free(suspect);
}

/* --- pods ----------------------------------------------------------------------------------- */

static bool same_cards(const struct allocation *a, const struct allocation *b)
{
    bool same = a->n_shares == b->n_shares;

    for (uint32_t i = 0; same && i < a->n_shares; i++)
        same = a->shares[i].card == b->shares[i].card &&
               a->shares[i].container == b->shares[i].container;
    return same;
}

/* Of shares on the same cards. */
static bool same_amounts(const struct allocation *a, const struct allocation *b)
{
    for (uint32_t i = 0; i < a->n_shares; i++) {
        const struct share *left = &a->shares[i], *right = &b->shares[i];

        if (left->memory.value != right->memory.value || left->memory.kind != right->memory.kind ||
            left->memory.at_least != right->memory.at_least || left->core != right->core ||
            left->exclusive != right->exclusive)
            return false;
    }
    return true;
}

/* Whether the pod's object asks for what the share is of. */
static bool is_asked_for(const struct allocation *told, const struct allocation *held,
                         const struct share *share)
{
    uint32_t n;
    const struct share *asked = allocation_known(told, &n);
    const struct card *card = node_share_card(held->node, share);

    for (uint32_t i = 0; i < n; i++) {
        if (asked[i].container == share->container && asked[i].core == share->core &&
            asked[i].exclusive == share->exclusive && asked[i].devices == share->devices &&
            g_strcmp0(asked[i].device, share->device) == 0 &&
            allocation_share_dialect(told, &asked[i]) == allocation_share_dialect(held, share) &&
            (share->place.size > 0 || /* an instance may be larger */
             card_bytes(held->node, card, granted_amount(held, held->node, asked[i].memory)) ==
                 card_bytes(held->node, card, share->memory)))
            return true;
    }
    return false;
}

static bool asks_for_all(const struct allocation *told, const struct allocation *held)
{
    bool all = true;

    for (uint32_t i = 0; i < held->n_shares; i++)
        all &= is_asked_for(told, held, &held->shares[i]);
    return all;
}

static bool same_state(const struct allocation *a, const struct allocation *b)
{
    return a->dialect == b->dialect && a->distrust == b->distrust && a->assigned == b->assigned &&
           a->waiting == b->waiting && a->match_amount == b->match_amount &&
           a->assume_time_ns == b->assume_time_ns;
}

/* How what the ledger has differs from the truth, `node` being the truth's: from what it would have if
 * it heard that now. */
static enum audit_cause find_cause(const struct allocation *told, const char *node,
                              const struct allocation *held)
{
    if (held && held->state == ALLOCATION_HELD &&
        !told) /* a place in a group, which lapses by itself */
        return AUDIT_NONE;
    if (held && held->state != ALLOCATION_CONFIRMED)
        return AUDIT_UNCONFIRMED;
    if (!told)
        return held ? AUDIT_LEFT_OVER : AUDIT_NONE;
    if (!held)
        return AUDIT_MISSING;
    if (!g_str_equal(node, held->node->name))
        return AUDIT_PLACE;
    g_autoptr(allocation) truth = ledger_foresee(
        held->node, dialect_continue(held, allocation_dup(told), NULL));
    if (!same_cards(truth, held))
        return AUDIT_PLACE;
    if (!same_amounts(truth, held) || !asks_for_all(told, held))
        return AUDIT_AMOUNT;
    return same_state(truth, held) ? AUDIT_NONE : AUDIT_STALE;
}

/* The version alone would do where there is one; a saved cluster may lack it. */
static bool same_truth(const struct truth *a, const struct truth *b)
{
    if (!a->allocation || !b->allocation)
        return a->allocation == b->allocation;
    return g_strcmp0(a->version, b->version) == 0 && g_str_equal(a->node, b->node) &&
           same_cards(a->allocation, b->allocation) &&
           same_amounts(a->allocation, b->allocation) && same_state(a->allocation, b->allocation);
}

/* One side of a row; NULL: nothing there. */
static char *describe(enum audit_cause cause, const struct allocation *pod, const char *node,
                      int64_t memory_unit)
{
    if (!pod)
        return NULL;
    GString *text = g_string_new(NULL);
    g_autofree char *holding = audit_holding(pod, memory_unit);

    if (cause == AUDIT_PLACE)
        g_string_append_printf(text, "%s: ", node);
    g_string_append(text, holding);
    if (cause == AUDIT_STALE)
        g_string_append_printf(text, ", %s%s, placed at %" G_GINT64_FORMAT,
                               pod->assigned ? "assigned" : "not assigned",
                               pod->waiting ? ", waiting" : "", pod->assume_time_ns);
    return g_string_free(text, FALSE);
}

/* `node` is the truth's, and either of the two pods may be NULL. */
static void report_pod(struct audit_report *report, enum audit_cause cause,
                       const struct allocation *truth, const char *node,
                       const struct allocation *held)
{
    const char *held_node = held ? held->node->name : NULL;
    int64_t unit = held ? held->node->memory_unit : 1;

    audit_report_add(report, &(struct audit_finding){
                                 .cause = cause,
                                 .pod = truth ? truth : held,
                                 .node = truth ? node : held_node,
                                 .take_cluster = describe(cause, truth, node, unit),
                                 .take_ledger = describe(cause, held, held_node, unit),
                             });
}

static guint n_suspects(const struct comparison *comparison, const char *ns)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(comparison->spaces, ns));
}

static void count_suspect(const struct comparison *comparison, const char *ns, int more)
{
    g_hash_table_replace(comparison->spaces, g_strdup(ns),
                         GUINT_TO_POINTER(n_suspects(comparison, ns) + (guint)more));
}

/* Of the namespace with the most one goes, for one that has at least two less. */
static bool make_room(struct comparison *comparison, const char *ns)
{
    const GPtrArray *pods = comparison->pods;
    guint at = 0, most = 0;

    for (guint i = 0; i < pods->len; i++) {
        const guint n = n_suspects(comparison, ((const struct suspect *)pods->pdata[i])->ns);
        if (n > most) {
            most = n;
            at = i;
        }
    }
    if (most < n_suspects(comparison, ns) + 2)
        return false;
    count_suspect(comparison, ((const struct suspect *)pods->pdata[at])->ns, -1);
    g_ptr_array_remove_index_fast(comparison->pods, at);
    return true;
}

static void note_suspect(struct comparison *comparison, const struct allocation *pod)
{
    const bool full = comparison->pods->len == SUSPECTS_MAX;

    comparison->report->unchecked += full;
    if (full && !make_room(comparison, pod->ns))
        return;
    struct suspect *suspect = g_new0(struct suspect, 1);
    *suspect = (struct suspect){g_strdup(pod->uid), g_strdup(pod->ns), g_strdup(pod->name)};
    g_ptr_array_add(comparison->pods, suspect);
    count_suspect(comparison, pod->ns, 1);
}

/* A pod that is not the same in both, whose owners do not change them meanwhile; `fresh` or `held` may be NULL. */
static void suspect_pod(struct comparison *comparison, const struct allocation *fresh,
                        const struct allocation *held)
{
    const char *node = fresh ? fresh->node->name : NULL;
    enum audit_cause cause = find_cause(fresh, node, held);

    if (cause == AUDIT_UNCONFIRMED)
        report_pod(comparison->report, cause, fresh, node, held);
    else if (cause != AUDIT_NONE)
        note_suspect(comparison, fresh ? fresh : held);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static bool same_node(const struct node *a, const struct node *b)
{
    bool a_is_there = a && a->present, b_is_there = b && b->present;

    if (!a_is_there || !b_is_there)
        return a_is_there == b_is_there;
    /* Who has seen it with its plugin knows more of it. */
    if (a->sketch.dialect || b->sketch.dialect)
        return a->paused && b->paused;
    if (a->dialect != b->dialect || a->n_cards != b->n_cards || a->memory_unit != b->memory_unit)
        return false;
    for (int32_t i = 0; i < a->n_cards; i++) {
        if (a->cards[i].memory != b->cards[i].memory || a->cards[i].healthy != b->cards[i].healthy ||
            a->cards[i].closure != b->cards[i].closure)
            return false;
    }
    return true;
}

static bool same_in_both(struct store *left, struct store *right, const char *name)
{
    const struct node *a = ledger_node(store_lock(left), name);
    const struct node *b = ledger_node(store_lock(right), name);
    bool same = same_node(a, b);

    store_unlock(right);
    store_unlock(left);
    return same;
}

/* NULL: it is not there. */
static char *describe_node(struct store *store, const char *name)
{
    const struct node *node = ledger_node(store_lock(store), name);
    bool is_there = node && node->present;
    GString *text = g_string_new(is_there && node->n_cards == 0 ? "no cards" : NULL);

    for (int32_t i = 0; is_there && i < node->n_cards; i++) {
        g_autofree char *size = audit_bytes(node->cards[i].memory, node->memory_unit);
        g_string_append_printf(text, "%s%s%s", i ? ", " : "", size,
                               !node->cards[i].healthy ? " unhealthy" : node->cards[i].closure ? " closed" : "");
    }
    store_unlock(store);
    return g_string_free(text, !is_there);
}

/* --- the first comparison ------------------------------------------------------------------- */

/* By UID, the pods of a node; NULL: none. */
static GHashTable *list_pods(const struct node *node)
{
    GHashTable *pods = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; node && i < node->allocations->len; i++) {
        struct allocation *pod = g_ptr_array_index(node->allocations, i);
        g_hash_table_insert(pods, (gpointer)pod->uid, pod);
    }
    return pods;
}

/* A pod that the node should have and has not; the ledger may have it elsewhere. */
static void look_elsewhere(struct comparison *comparison, const struct allocation *pod)
{
    const struct allocation *held = ledger_get(store_lock_again(comparison->store), pod->uid);

    suspect_pod(comparison, pod, held);
    store_unlock(comparison->store);
}

/* The ledger's node as it was at one moment, against what was told of it; nobody else has the fresh
 * store. */
static void compare_node(struct comparison *comparison, const char *name)
{
    const struct node *ours = node_images_one(comparison->images, name);
    g_autoptr(GHashTable) pods = list_pods(ours);
    const struct ledger *fresh = store_ledger(comparison->fresh);
    const struct node *theirs = ledger_node(fresh, name);

    if (!same_node(ours, theirs))
        g_ptr_array_add(comparison->nodes, g_strdup(name));
    for (guint i = 0; theirs && i < theirs->allocations->len; i++) {
        const struct allocation *pod = g_ptr_array_index(theirs->allocations, i);
        const struct allocation *held = g_hash_table_lookup(pods, pod->uid);
        if (held)
            suspect_pod(comparison, pod, held);
        else
            look_elsewhere(comparison, pod);
    }
    for (guint i = 0; ours && i < ours->allocations->len; i++) {
        const struct allocation *pod = g_ptr_array_index(ours->allocations, i);
        if (!ledger_get(fresh, pod->uid))
            suspect_pod(comparison, NULL, pod);
    }
}

/* A name that both have is looked at once. */
static void compare_all(struct comparison *comparison)
{
    g_autoptr(GPtrArray) ours = audit_node_names(comparison->store);
    g_autoptr(GPtrArray) theirs = audit_node_names(comparison->fresh);
    guint i = 0, j = 0;

    while (i < ours->len || j < theirs->len) {
        const char *left = i < ours->len ? g_ptr_array_index(ours, i) : NULL;
        const char *right = j < theirs->len ? g_ptr_array_index(theirs, j) : NULL;
        int order = !left ? 1 : !right ? -1 : strcmp(left, right);

        compare_node(comparison, order <= 0 ? left : right);
        i += order <= 0;
        j += order >= 0;
    }
}

/* --- the second look ------------------------------------------------------------------------ */

static bool ask(struct comparison *comparison, const struct suspect *suspect,
                struct truth *ret_truth, GError **error)
{
    struct cluster *cluster = comparison->cluster;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) failure = NULL;
    struct pod_view pod = {0};
    enum outcome outcome =
        cluster->ops->get_pod(cluster, arena, suspect->ns, suspect->name,
                              g_get_monotonic_time() / 1000 + CALL_MS, &pod, &failure);

    *ret_truth = (struct truth){NULL};
    if (outcome != OUTCOME_OK && outcome != OUTCOME_NOT_FOUND) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (outcome == OUTCOME_NOT_FOUND || g_strcmp0(pod.uid, suspect->uid) != 0 ||
        !pod_view_is_bound(&pod) || pod_view_is_terminal(&pod))
        return true;
    ret_truth->allocation =
        dialect_read_allocation(&pod, &store_options(comparison->store)->dialects, NULL);
    ret_truth->node = g_strdup(pod.node_name);
    ret_truth->version = g_strdup(pod.resource_version);
    return true;
}

static enum audit_cause look_again(struct comparison *comparison, const struct suspect *suspect)
{
    const struct allocation *held = ledger_get(store_lock(comparison->store), suspect->uid);
    enum audit_cause cause = find_cause(suspect->truth.allocation, suspect->truth.node, held);

    store_unlock(comparison->store);
    return cause;
}

/* Asks once more about who still differs. */
static bool confirm_pod(struct comparison *comparison, const struct suspect *suspect,
                        GError **error)
{
    enum audit_cause cause = look_again(comparison, suspect);
    g_auto(truth) now = {NULL};

    if (cause == AUDIT_NONE)
        return true;
    if (!ask(comparison, suspect, &now, error))
        return false;
    if (!same_truth(&suspect->truth, &now))
        return true;
    const struct allocation *held = ledger_get(store_lock(comparison->store), suspect->uid);
    if (find_cause(now.allocation, now.node, held) == cause)
        report_pod(comparison->report, cause, now.allocation, now.node, held);
    store_unlock(comparison->store);
    return true;
}

static bool list(struct comparison *comparison, enum feed feed, struct store *store, GError **error)
{
    struct cluster *cluster = comparison->cluster;
    return cluster->ops->list(cluster, feed, store, error) == OUTCOME_OK;
}

static struct store *store_like(struct store *store)
{
    struct store_options options;

    store_lock(store);
    options = *store_options(store);
    store_unlock(store);
    options.silent = true;
    options.seals = NULL; /* what is told of a pod, for the ledger to continue */
    return store_new(&options);
}

static bool confirm_nodes(struct comparison *comparison, GError **error)
{
    g_autoptr(store) again = store_like(comparison->store);

    for (guint i = comparison->nodes->len; i-- > 0;) {
        if (same_in_both(comparison->store, comparison->fresh,
                         g_ptr_array_index(comparison->nodes, i)))
            g_ptr_array_remove_index(comparison->nodes, i);
    }
    if (comparison->nodes->len == 0)
        return true;
    if (!list(comparison, FEED_CONFIGMAPS, again, error) ||
        !list(comparison, FEED_NODES, again, error))
        return false;
    for (guint i = 0; i < comparison->nodes->len; i++) {
        const char *name = g_ptr_array_index(comparison->nodes, i);

        if (!same_in_both(comparison->fresh, again, name) ||
            same_in_both(comparison->store, again, name))
            continue;
        audit_report_add(comparison->report,
                         &(struct audit_finding){
                             .cause = AUDIT_TOPOLOGY,
                             .node = name,
                             .take_cluster = describe_node(again, name),
                             .take_ledger = describe_node(comparison->store, name),
                         });
    }
    return true;
}

static bool confirm_all(struct comparison *comparison, GError **error)
{
    const struct audit_options *options = comparison->options;

    for (guint i = 0; i < comparison->pods->len; i++) {
        struct suspect *suspect = comparison->pods->pdata[i];
        if (!ask(comparison, suspect, &suspect->truth, error))
            return false;
    }
    if (!options->rest) {
        g_usleep((gulong)options->settle_ms * 1000);
    } else if (!options->rest(options->rest_data, options->settle_ms)) {
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "stopped");
    }
    for (guint i = 0; i < comparison->pods->len; i++) {
        if (!confirm_pod(comparison, comparison->pods->pdata[i], error))
            return false;
    }
    return confirm_nodes(comparison, error);
}

/* --- all of it ------------------------------------------------------------------------------ */

/* Pods first: one that is bound meanwhile to a card that is new would else seem to be on none. */
static bool list_all(struct comparison *comparison, GError **error)
{
    static const enum feed order[] = {FEED_PODS, FEED_CONFIGMAPS, FEED_NODES};

    for (size_t i = 0; i < G_N_ELEMENTS(order); i++) {
        if (!list(comparison, order[i], comparison->fresh, error))
            return false;
    }
    return true;
}

struct audit_report *audit_compare(struct store *store, struct cluster *cluster,
                                   const struct audit_options *options, GError **error)
{
    int64_t began_ms = g_get_monotonic_time() / 1000;
    g_autoptr(audit_report) report = audit_look(store, options);
    g_autoptr(store) fresh = store_like(store);
    g_autoptr(node_images) images = node_images_new(store, false);
    g_autoptr(GPtrArray) pods = g_ptr_array_new_with_free_func(suspect_free);
    g_autoptr(GHashTable) spaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) nodes = g_ptr_array_new_with_free_func(g_free);
    struct comparison comparison = {
        .store = store,
        .fresh = fresh,
        .cluster = cluster,
        .options = options,
        .report = report,
        .images = images,
        .pods = pods,
        .spaces = spaces,
        .nodes = nodes,
    };

    if (!list_all(&comparison, error))
        return NULL;
    compare_all(&comparison);
    if ((pods->len > 0 || nodes->len > 0) && !confirm_all(&comparison, error))
        return NULL;
    report->compared = true;
    audit_report_finish(report, began_ms);
    return g_steal_pointer(&report);
}
