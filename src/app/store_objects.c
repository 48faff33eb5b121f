/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, ConfigMaps, budgets and ResourceQuotas, as the watch or a list shows them. */
#include "app/log.h"
#include "app/metrics.h"
#include "app/recorder.h"
#include "app/store_state.h"
#include "core/node_traits.h"

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

void store_apply_node(struct store *store, const struct node_view *view)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) failure = NULL;
    g_autoptr(node_traits) traits = node_traits_new(view);
    bool shared = dialect_read_topology(view, &store->options.dialects, topology, &warning,
                                        &failure);

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    const struct node *known = ledger_node(store->ledger, view->name);
    const bool paused = !shared && !failure && known && known->present &&
                        dialect_is_paused(known, view);
    struct node *node =
        paused ? ledger_pause_node(store->ledger, view->name)
               : ledger_set_topology(store->ledger, view->name, shared ? topology : NULL);
    node->generation = store->generation[FEED_NODES];
    node->cordoned = view->cordoned;
    if (!shared && !paused)
        node->host = host_of_node(view);
    struct node_traits *former = node->traits;
    node->traits = g_steal_pointer(&traits);
    traits = former;
    mark_node(store, view);
    if (rejects_see_mark(store->rejects, view->name,
                         string_pairs_get(&view->annotations, REJECTS_RESUME)))
        ledger_mark_freed(store->ledger, view->name);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_node(number, view, paused));

    if ((failure || warning) && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_NODES);
        log_event(LOG_LEVEL_WARN,
                  failure ? "node cannot be understood" : "node is not quite understood", LOG_TEXT("node", view->name),
                  LOG_TEXT("why", failure ? failure->message : warning));
    }
}

void store_delete_node(struct store *store, const char *name)
{
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    ledger_remove_node(store->ledger, name);
    rejects_forget_node(store->rejects, name);
    quotas_set_node(store->quotas, name, NULL, NULL);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_gone(RECORD_NODE_GONE, number, name));
}

/* The dialect that the ConfigMap belongs to, and the node it speaks of. */
static const struct dialect *health_dialect(const struct configmap_view *view,
                                            const char **ret_node)
{
    for (size_t i = 0; dialects[i]; i++) {
        const struct dialect *dialect = dialects[i];
        if (dialect->health_prefix && g_strcmp0(view->ns, dialect->health_namespace) == 0 &&
            g_str_has_prefix(view->name, dialect->health_prefix)) {
            *ret_node = view->name + strlen(dialect->health_prefix);
            return dialect;
        }
    }
    return NULL;
}

void store_note_quotas(struct store *store)
{
    const GPtrArray *nodes = ledger_nodes(store->ledger);

    for (guint i = 0; i < nodes->len; i++)
        ledger_mark_freed(store->ledger, ((const struct node *)nodes->pdata[i])->name);
    store_notify(store);
}

static bool is_of_quotas(const struct store *store, const struct configmap_view *view)
{
    return store->options.model_label && *store->options.model_label &&
           g_strcmp0(view->ns, QUOTAS_NAMESPACE) == 0 && g_strcmp0(view->name, QUOTAS_NAME) == 0;
}

static void apply_quotas(struct store *store, const struct configmap_view *view, bool gone)
{
    const char *text = gone ? NULL : string_pairs_get(&view->data, "gpu_quota");
    g_autoptr(GError) failure = NULL;
    bool changed = false;

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    store->quotas_generation = store->generation[FEED_CONFIGMAPS];
    quotas_set(store->quotas, text, &changed, &failure);
    if (changed)
        store_note_quotas(store);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_configmap(number, view, gone));
    if (failure && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);
        log_event(LOG_LEVEL_WARN, "quotas cannot be understood; those before them count",
                  LOG_TEXT("why", failure->message));
    }
}

void store_apply_configmap(struct store *store, const struct configmap_view *view)
{
    const char *node;
    const struct dialect *dialect = health_dialect(view, &node);
    g_autofree char *warning = NULL;

    if (is_of_quotas(store, view))
        apply_quotas(store, view, false);
    if (!dialect)
        return;
    g_autoptr(GArray) indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    dialect->read_health(view, indices, &warning);

    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    ledger_set_unhealthy(store->ledger, node, (const int32_t *)(void *)indices->data,
                         indices->len);
    g_hash_table_insert(store->health, g_strdup(node),
                        GUINT_TO_POINTER(store->generation[FEED_CONFIGMAPS]));
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_configmap(number, view, false));

    if (warning && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_CONFIGMAPS);
        log_event(LOG_LEVEL_WARN, "unhealthy cards cannot be understood", LOG_TEXT("node", node),
                  LOG_TEXT("why", warning));
    }
}

void store_delete_configmap(struct store *store, const struct configmap_view *view)
{
    const char *node;

    if (is_of_quotas(store, view))
        apply_quotas(store, view, true);
    if (!health_dialect(view, &node))
        return;
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    ledger_set_unhealthy(store->ledger, node, NULL, 0);
    g_hash_table_remove(store->health, node);
    store_notify(store);
    store_unlock(store);
    recorder_take(store->recorder, record_configmap(number, view, true));
}

/* --- budgets -------------------------------------------------------------------------------- */

void store_apply_budget(struct store *store, const struct budget_view *view)
{
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    budgets_set(store->budgets, view, store->generation[FEED_BUDGETS]);
    store_unlock(store);
    recorder_take(store->recorder, record_budget(number, view, false));
}

void store_delete_budget(struct store *store, const char *ns, const char *name)
{
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    budgets_remove(store->budgets, ns, name);
    store_unlock(store);
    recorder_take(store->recorder,
                  record_budget(number, &(struct budget_view){.ns = ns, .name = name}, true));
}

/* --- ResourceQuotas ------------------------------------------------------------------------- */

void store_apply_resource_quota(struct store *store, const struct resource_quota_view *view)
{
    g_autoptr(GError) failure = NULL;
    bool changed = false;

    if (!store->options.resource_quotas)
        return;
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    resource_quotas_set(quotas_resources(store->quotas), view,
                        store->generation[FEED_RESOURCE_QUOTAS], &changed, &failure);
    if (changed)
        store_note_quotas(store);
    store_unlock(store);
    recorder_take(store->recorder, record_resource_quota(number, view, false));
    if (failure && !store->options.silent) {
        metrics_count(COUNTER_OBJECTS_BAD, FEED_RESOURCE_QUOTAS);
        log_event(LOG_LEVEL_WARN, "a ResourceQuota cannot be understood; what it said before counts",
                  LOG_TEXT("why", failure->message));
    }
}

void store_delete_resource_quota(struct store *store, const char *ns, const char *name)
{
    if (!store->options.resource_quotas)
        return;
    store_lock(store);
    const uint64_t number = recorder_number(store->recorder);
    resource_quotas_remove(quotas_resources(store->quotas), ns, name);
    store_note_quotas(store);
    store_unlock(store);
    recorder_take(store->recorder,
                  record_resource_quota(
                      number, &(struct resource_quota_view){.ns = ns, .name = name}, true));
}
