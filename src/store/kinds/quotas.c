/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuotas and ElasticQuotas. */
#include "quota/elastic/elastic_quotas.h"
#include "quota/resource_quotas.h"
#include "store/kinds/kind.h"
#include "store/store_state.h"
#include "wire/resource_quota.h"

KIND_ROW(resource_quotas, 4);
KIND_ROW(elastic_quotas, 5);

/* ResourceQuotas may have what ElasticQuotas say, too. */
static bool wanted(const struct store_options *options)
{
    return options->resource_quotas || options->elastic_quotas;
}

static bool elastic_wanted(const struct store_options *options)
{
    return options->elastic_quotas;
}

KIND_VIEW(resource_quota);

static bool decode_elastic(struct json_arena *arena, const cJSON *object, void *ret_view,
                           GError **error)
{
    return elastic_quota_view_decode(arena, object, ret_view, error);
}

static void report_failure(struct object_faults *faults, const GError *failure)
{
    struct object_fault *fault =
        object_fault(faults,
                     "a quota cannot be kept: what it said before counts, or pods that ask for "
                     "what it limits wait",
                     g_strdup(failure->message));

    fault->fields[0] = LOG_TEXT("why", fault->text);
    fault->counted = true;
}

static void report_faults(struct object_faults *faults, const struct resource_quota_view *quota,
                          guint n)
{
    struct object_fault *fault = object_fault(
        faults, "quotas do not count as they say: see 'gpuledger quotas' and docs/quotas.md",
        g_strdup_printf("%s/%s", quota->ns, quota->name));

    fault->fields[0] = LOG_NUMBER("quotas", n);
    fault->fields[1] = LOG_TEXT("since", fault->text);
    fault->limited = true;
}

/* What one says. */
struct reading {
    struct resource_limits *limits; /* NULL: those are not asked for */
    struct elastic_limits *elastic;
};

static void *read_quota(const struct store *store, const struct object_name *name, const void *view)
{
    const struct resource_quota_view *quota = view;
    struct reading *reading = g_new0(struct reading, 1);

    if (quota && store->options.resource_quotas && !quota->elastic)
        reading->limits = resource_limits_read(quotas_resources(store->quotas), quota);
    if (quota && store->options.elastic_quotas)
        reading->elastic = elastic_limits_read(quota);
    return reading;
}

static void free_reading(void *read)
{
    struct reading *reading = read;

    resource_limits_free(reading->limits);
    elastic_limits_free(reading->elastic);
    g_free(reading);
}

static void apply(const struct kind_call *call, const void *view)
{
    const struct resource_quota_view *quota = view;
    const struct reading *reading = call->read;
    struct store *store = call->store;
    struct elastic_quotas *elastic = quotas_elastic(store->quotas);
    const guint before = elastic_quotas_n_faults(elastic);
    g_autoptr(GError) failure = NULL;
    bool changed = false, elastic_changed = false;

    if (reading->limits)
        resource_quotas_set(quotas_resources(store->quotas), reading->limits, call->generation,
                            &changed, &failure);
    if (reading->elastic)
        elastic_quotas_set(elastic, quota, reading->elastic, call->generation, &elastic_changed,
                           failure ? NULL : &failure);
    if (changed || elastic_changed)
        store_note_quotas(store);
    if (failure)
        report_failure(call->faults, failure);
    if (elastic_quotas_n_faults(elastic) > before)
        report_faults(call->faults, quota, elastic_quotas_n_faults(elastic));
}

static void forget_any(struct store *store, const struct object_name *name, bool elastic)
{
    if (!elastic)
        resource_quotas_remove(quotas_resources(store->quotas), name->ns, name->name);
    elastic_quotas_remove(quotas_elastic(store->quotas),
                          &(struct resource_quota_view){name->ns, name->name, elastic});
    store_note_quotas(store);
}

static void forget(const struct kind_call *call, const struct object_name *name)
{
    forget_any(call->store, name, false);
}

static void forget_elastic(const struct kind_call *call, const struct object_name *name)
{
    forget_any(call->store, name, true);
}

static void sweep(const struct kind_call *call)
{
    struct quotas *quotas = call->store->quotas;
    const bool changed = resource_quotas_sweep(quotas_resources(quotas), call->generation);

    if (elastic_quotas_sweep(quotas_elastic(quotas), false, call->generation) || changed)
        store_note_quotas(call->store);
}

static void sweep_elastic(const struct kind_call *call)
{
    if (elastic_quotas_sweep(quotas_elastic(call->store->quotas), true, call->generation))
        store_note_quotas(call->store);
}

const struct kind kind_resource_quotas = {
    KIND_NAME("resourcequota"),
    .feed = "resourcequotas",
    .resource = "resourcequotas",
    .kind = "ResourceQuota",
    .api = "/api/v1",
    .optional = true,
    .wanted = wanted,
    KIND_OF_VIEW(resource_quota),
    .read = read_quota,
    .free_read = free_reading,
    .apply = apply,
    .remove = forget,
    .sweep = sweep,
};

const struct kind kind_elastic_quotas = {
    KIND_NAME("elasticquota"),
    .feed = "elasticquotas",
    .resource = "elasticquotas",
    .kind = "ElasticQuota",
    .api = "/apis/scheduling.x-k8s.io/v1alpha1",
    .older_api = "/apis/scheduling.sigs.k8s.io/v1alpha1",
    .optional = true,
    .wanted = elastic_wanted,
    .size = sizeof(struct resource_quota_view),
    .decode = decode_elastic,
    .encode = resource_quota_encode,
    .read = read_quota,
    .free_read = free_reading,
    .apply = apply,
    .remove = forget_elastic,
    .sweep = sweep_elastic,
};
