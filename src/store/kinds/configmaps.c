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

/* What one says. */
struct reading {
    bool quotas, health;
    struct quotas_text *text; /* NULL: it cannot be understood */
    GError *failure;
    char *node;
    GArray *indices; /* int32_t */
    char *warning;   /* or NULL; taken */
};

static void *read_configmap(const struct store *store, const struct object_name *name,
                            const void *view)
{
    const struct configmap_view *configmap = view;
    const struct dialect *quotas = quotas_dialect(&store->options, name);
    const char *node;
    const struct dialect *health = dialect_of_health(name->ns, name->name, &node);
    struct reading *reading = g_new0(struct reading, 1);

    reading->quotas = quotas != NULL;
    reading->health = health != NULL;
    if (quotas)
        reading->text =
            quotas_text_read(view ? string_pairs_get(&configmap->data, quotas->quotas_key) : NULL,
                             &reading->failure);
    if (!health)
        return reading;
    reading->node = g_strdup(node);
    reading->indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    if (view)
        health->read_health(configmap, reading->indices, &reading->warning);
    return reading;
}

static void free_reading(void *read)
{
    struct reading *reading = read;

    quotas_text_free(reading->text);
    g_clear_error(&reading->failure);
    g_clear_pointer(&reading->indices, g_array_unref);
    g_free(reading->node);
    g_free(reading->warning);
    g_free(reading);
}

static void set_quotas(const struct kind_call *call, const struct reading *reading)
{
    named_in(call)->quotas = call->generation;
    if (reading->text && quotas_swap(call->store->quotas, reading->text))
        store_note_quotas(call->store);
    store_notify_all(call->store);
    if (reading->text)
        return;
    struct object_fault *fault =
        object_fault(call->faults, "quotas cannot be understood; those before them count",
                     g_strdup(reading->failure->message));
    fault->fields[0] = LOG_TEXT("why", fault->text);
    fault->counted = true;
}

static void set_unhealthy(const struct kind_call *call, const struct reading *reading)
{
    ledger_set_unhealthy(call->store->ledger, reading->node,
                         (const int32_t *)(void *)reading->indices->data, reading->indices->len);
    store_notify(call->store, reading->node, NULL);
}

static void set_health(const struct kind_call *call, struct reading *reading)
{
    set_unhealthy(call, reading);
    g_hash_table_insert(named_in(call)->health, g_strdup(reading->node),
                        GUINT_TO_POINTER(call->generation));
    if (!reading->warning)
        return;
    struct object_fault *fault = object_fault(call->faults, "unhealthy cards cannot be understood",
                                              g_steal_pointer(&reading->warning));
    fault->fields[0] = LOG_TEXT("node", reading->node);
    fault->fields[1] = LOG_TEXT("why", fault->text);
    fault->counted = true;
}

static void apply(const struct kind_call *call, const void *view)
{
    struct reading *reading = call->read;

    if (reading->quotas)
        set_quotas(call, reading);
    if (reading->health)
        set_health(call, reading);
}

static void forget(const struct kind_call *call, const struct object_name *name)
{
    const struct reading *reading = call->read;

    if (reading->quotas)
        set_quotas(call, reading);
    if (!reading->health)
        return;
    set_unhealthy(call, reading);
    g_hash_table_remove(named_in(call)->health, reading->node);
}

static bool drop_quotas(struct quotas *quotas)
{
    struct quotas_text *none = quotas_text_read(NULL, NULL);
    const bool changed = quotas_swap(quotas, none);

    quotas_text_free(none);
    return changed;
}

static void sweep(const struct kind_call *call)
{
    GHashTableIter iter;
    gpointer name, generation;

    if (named_in(call)->quotas != call->generation && drop_quotas(call->store->quotas))
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
    KIND_NAME("configmap"), .feed = "configmaps",   .resource = "configmaps",  .kind = "ConfigMap",
    .api = "/api/v1",       .optional = true,       KIND_OF_VIEW(configmap),   .within = within,
    .concerns = concerns,   .read = read_configmap, .free_read = free_reading, .apply = apply,
    .remove = forget,       .sweep = sweep,         .free = named_free,
};
