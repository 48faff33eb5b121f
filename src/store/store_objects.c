/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, as the watch or a list shows them, usage, and the groups of pods. */
#include "base/log.h"
#include "base/metrics.h"
#include "core/ledger.h"
#include "core/node.h"
#include "core/node_traits.h"
#include "store/booking.h"
#include "store/store_state.h"
#include "wire/switch_mark.h"

#include <string.h>

/* Under the lock: what quotas are about. */
static void mark_node(struct store *store, const struct node_view *view)
{
    const struct store_options *options = &store->options;
    const char *model = NULL, *pool = NULL;

    if (options->model_label && *options->model_label)
        model = string_pairs_get(&view->labels, options->model_label);
    if (options->pool_label && *options->pool_label)
        pool = string_pairs_get(&view->labels, options->pool_label);
    quotas_set_node(store->quotas, view->name, model, pool);
}

/* NULL: the node says nothing of a plan, or nothing that can be understood. */
static struct plan_mark *read_mark(const struct store *store, const struct node_view *view,
                                   GError **error)
{
    const char *text = string_pairs_get(&view->annotations, PLAN_MARK);

    return text && *text && !view->as_new
               ? plan_mark_parse(text, store->options.dialects.classes, error)
               : NULL;
}

/* Under the lock. Of a node that may not be known yet. */
static void note_mark(struct store *store, const char *node, struct plan_mark *take_mark)
{
    g_autoptr(GPtrArray) none = g_ptr_array_new();

    if (!take_mark && !g_hash_table_remove(store->marks, node))
        return;
    nominations_keep(store->nominations, node, take_mark ? take_mark->rooms : none);
    if (take_mark)
        g_hash_table_replace(store->marks, g_strdup(node), take_mark);
}

/* Under the lock. A time in the future is that at which it was first seen. */
static void date_heartbeat(const struct store *store, const struct node *node,
                           struct heartbeat *heartbeat)
{
    const struct heartbeat *known = &node->heartbeat;

    heartbeat->at_ns = known->dialect == heartbeat->dialect && known->said_ns == heartbeat->said_ns
                           ? known->at_ns
                           : MIN(heartbeat->said_ns, store_clock(store).now_ns);
}

/* Under the lock: since when the node is being changed; 0: it is not. */
static int64_t see_change(struct store *store, const char *node)
{
    const int64_t said_ms = store->replayed_change_ms;

    store->replayed_change_ms = 0;
    return changes_see(store->changes, store->ledger, node,
                       said_ms > 0 ? said_ms : store_clock(store).now_ms);
}

/* The node takes pods again that it would not take before. */
static bool is_back(const struct node *node, const struct node_facts *facts)
{
    const struct heartbeat *before = &node->heartbeat, *now = &facts->heartbeat;

    return (node->switches_ns != 0 && facts->switches_ns == 0) ||
           node_is_silent(node, now->dialect, now->at_ns) || (before->dialect && !now->dialect);
}

void store_apply_node(struct store *store, const struct node_view *view)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) failure = NULL, unread = NULL, unclaimed = NULL;
    struct plan_mark *mark = read_mark(store, view, &unread);
    const char *claim_view = view->as_new ? NULL : string_pairs_get(&view->annotations, CLAIM_KEY);
    GPtrArray *claims = store_read_claim_view(store, claim_view, &unclaimed);
    g_autoptr(node_traits) traits = node_traits_new(view);
    const struct host host = host_of_node(view);
    const struct switch_ahead ahead = switch_mark_ahead(view, &warning);
    struct heartbeat heartbeat;
    dialect_read_heartbeat(view, &heartbeat, &warning);
    if (store->options.saved)
        heartbeat = (struct heartbeat){0};
    bool shared = dialect_read_topology(view, &store->options.dialects, topology, &warning,
                                        &failure);

    const bool sketched = !shared && !failure &&
                          dialect_read_sketch(view, &store->options.dialects, topology);

    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    const struct node *known = ledger_node(store->ledger, view->name);
    const bool paused = !shared && !failure && known && known->present &&
                        dialect_is_paused(known, view);
    struct node *node =
        paused ? ledger_pause_node(store->ledger, view->name)
               : ledger_set_topology(store->ledger, view->name, shared || sketched ? topology : NULL);
    const int64_t change_ms = see_change(store, view->name);
    date_heartbeat(store, node, &heartbeat);
    const struct node_facts facts = {
        .generation = store->generation[FEED_NODES],
        .cordoned = view->cordoned,
        .distrusted = failure || warning,
        .limited = g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT),
        .switches_ns = ahead.at_ns,
        .slots_ahead = ahead.slots,
        .heartbeat = heartbeat,
        .host = shared || sketched || paused ? NULL : &host,
    };
    const bool freed = is_back(node, &facts);
    strays_show(store->strays, store->ledger, view->name);
    traits = node_set_facts(node, &facts, g_steal_pointer(&traits));
    store_hope_node(store, view->name);
    store_note_policy(store, view->name, node->policy);
    mark_node(store, view);
    note_mark(store, view->name, mark);
    store_note_claim_view(store, view->name, claim_view, claims);
    if (parts_node(&store->parts, view->name, view) || freed)
        ledger_mark_freed(store->ledger, view->name);
    store_notify(store, view->name, NULL);
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_NODE, number, .node = view,
                                                         .paused = paused, .change_ms = change_ms});

    if ((failure || warning) && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_NODES);
        log_event(LOG_LEVEL_WARN,
                  failure ? "node cannot be understood" : "node is not quite understood", LOG_TEXT("node", view->name),
                  LOG_TEXT("why", failure ? failure->message : warning));
    }
    if (unread && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_NODES);
        log_event(LOG_LEVEL_WARN, "what a plan says of the node cannot be understood",
                  LOG_TEXT("node", view->name), LOG_TEXT("why", unread->message));
    }
    if (unclaimed && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_NODES);
        log_event(LOG_LEVEL_WARN, "annotation " CLAIM_KEY " cannot be read",
                  LOG_TEXT("node", view->name), LOG_TEXT("why", unclaimed->message));
    }
}

void store_delete_node(struct store *store, const char *name)
{
    store_lock(store);
    const uint64_t number = observer_number(store->observer);
    ledger_remove_node(store->ledger, name);
    store_note_policy(store, name, NULL);
    store_hope_node(store, name);
    parts_node(&store->parts, name, NULL);
    changes_forget(store->changes, name);
    note_mark(store, name, NULL);
    store_note_claim_view(store, name, NULL, store_read_claim_view(store, NULL, NULL));
    quotas_set_node(store->quotas, name, NULL, NULL);
    store_notify(store, name, NULL);
    store_unlock(store);
    observer_tell(store->observer, &(struct observation){OBSERVED_NODE_GONE, number, .key = name});
}

/* --- groups ------------------------------------------------------------------------------------ */

static bool join(struct store *store, const struct pod_view *pod, enum gang_role role,
                 const struct gang_source *source)
{
    const struct pod_group_claim claim = pod_group_claim(pod);
    const struct allocation *held = ledger_get(store->ledger, pod->uid);
    bool joined = true;

    if (!store->options.gangs)
        return true;
    /* Old word of a pod whose Binding is under way, or has been seen. */
    if (role == GANG_PENDING && held && held->state != ALLOCATION_HELD)
        role = held->state == ALLOCATION_CONFIRMED ? GANG_BOUND : GANG_BOOKED;
    if (claim.name)
        joined = gangs_join(store->gangs, pod->ns ? pod->ns : "", &claim, pod->uid, role, source);
    else
        gangs_forget(store->gangs, pod->uid);
    store_tell_gangs(store);
    store_hope_groups(store);
    return joined;
}

bool store_join_gang(struct store *store, const struct pod_view *pod, enum gang_role role)
{
    return join(store, pod, role,
                &(struct gang_source){.generation = store->generation[FEED_PODS]});
}

bool store_join_asking(struct store *store, const struct pod_view *pod, int64_t now_ms)
{
    return join(store, pod, GANG_PENDING, &(struct gang_source){.asked_ms = MAX(now_ms, 1)});
}
