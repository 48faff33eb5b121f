/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConfigMaps in which dialects keep word: which cards are unhealthy, and quotas. The roles that people have
 * installed for other extenders do not all grant them.
 */
#include "core/ledger.h"
#include "store/kinds/kind.h"
#include "store/store_state.h"

KIND_ROW(configmaps, 2);

KIND_VIEW(configmap);

/* What lists have named. */
struct named {
    GHashTable *health; /* node name -> generation of the ConfigMap that speaks of it */
    uint32_t quotas;    /* generation of that with quotas */
};

static struct named *named_in(const struct kind_call *call)
{
    struct named *named = *call->kept;

    if (named)
        return named;
    *call->kept = named = g_new0(struct named, 1);
    named->health = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return named;
}

static void named_free(void *kept)
{
    struct named *named = kept;

    g_hash_table_unref(named->health);
    g_free(named);
}

/* One namespace serves all dialects; test_reflector_feeds holds their rows to it. */
static const char *within(void)
{
    const char *ns = NULL;

    for (size_t i = 0; dialects[i] && !ns; i++)
        ns = dialects[i]->health_namespace;
    return ns;
}

/* The dialect whose quotas the ConfigMap has, if they are to be kept to. */
static const struct dialect *quotas_dialect(const struct store_options *options,
                                            const struct object_name *name)
{
    return !options || (options->model_label && *options->model_label)
               ? dialect_of_quotas(name->ns, name->name)
               : NULL;
}

static bool concerns(const struct store_options *options, const struct object_name *name)
{
    const char *node;

    return quotas_dialect(options, name) || dialect_of_health(name->ns, name->name, &node);
}

/* NULL: there is none. */
static void set_quotas(const struct kind_call *call, const char *text)
{
    g_autoptr(GError) failure = NULL;
    bool changed = false;

    named_in(call)->quotas = call->generation;
    quotas_set(call->store->quotas, text, &changed, &failure);
    if (changed)
        store_note_quotas(call->store);
    store_notify_all(call->store);
    if (!failure)
        return;
    struct object_fault *fault =
        object_fault(call->faults, "quotas cannot be understood; those before them count",
                     g_strdup(failure->message));
    fault->fields[0] = LOG_TEXT("why", fault->text);
    fault->counted = true;
}

static void set_health(const struct kind_call *call, const struct dialect *dialect,
                       const char *node, const struct configmap_view *view)
{
    g_autoptr(GArray) indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    char *warning = NULL;

    dialect->read_health(view, indices, &warning);
    ledger_set_unhealthy(call->store->ledger, node, (const int32_t *)(void *)indices->data,
                         indices->len);
    g_hash_table_insert(named_in(call)->health, g_strdup(node), GUINT_TO_POINTER(call->generation));
    store_notify(call->store, node, NULL);
    if (!warning)
        return;
    struct object_fault *fault =
        object_fault(call->faults, "unhealthy cards cannot be understood", warning);
    fault->fields[0] = LOG_TEXT("node", node);
    fault->fields[1] = LOG_TEXT("why", warning);
    fault->counted = true;
}

static void apply(const struct kind_call *call, const void *view)
{
    const struct configmap_view *configmap = view;
    const struct object_name name = {configmap->ns, configmap->name};
    const struct dialect *quotas = quotas_dialect(&call->store->options, &name);
    const char *node;
    const struct dialect *health = dialect_of_health(name.ns, name.name, &node);

    if (quotas)
        set_quotas(call, string_pairs_get(&configmap->data, quotas->quotas_key));
    if (health)
        set_health(call, health, node, configmap);
}

static void forget(const struct kind_call *call, const struct object_name *name)
{
    const char *node;

    if (quotas_dialect(&call->store->options, name))
        set_quotas(call, NULL);
    if (!dialect_of_health(name->ns, name->name, &node))
        return;
    ledger_set_unhealthy(call->store->ledger, node, NULL, 0);
    g_hash_table_remove(named_in(call)->health, node);
    store_notify(call->store, node, NULL);
}

static void sweep(const struct kind_call *call)
{
    GHashTableIter iter;
    gpointer name, generation;
    bool changed = false;

    if (named_in(call)->quotas != call->generation)
        quotas_set(call->store->quotas, NULL, &changed, NULL);
    if (changed)
        store_note_quotas(call->store);
    g_hash_table_iter_init(&iter, named_in(call)->health);
    while (g_hash_table_iter_next(&iter, &name, &generation)) {
        if (GPOINTER_TO_UINT(generation) == call->generation)
            continue;
        ledger_set_unhealthy(call->store->ledger, name, NULL, 0);
        g_hash_table_iter_remove(&iter);
    }
}

const struct kind kind_configmaps = {
    KIND_NAME("configmap"), .feed = "configmaps", .resource = "configmaps", .kind = "ConfigMap",
    .api = "/api/v1",       .optional = true,     KIND_OF_VIEW(configmap),  .within = within,
    .concerns = concerns,   .apply = apply,       .remove = forget,         .sweep = sweep,
    .free = named_free,
};
