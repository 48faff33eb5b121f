/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/conditions.h"

#include "core/fail.h"
#include "core/bytes.h"
#include "dialect/word_list.h"

#include <gpuledger/placement.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define VERSION_MAX 9999

static bool read_number(const char *text, guint64 max, int32_t *ret_value)
{
    guint64 value;

    if (!g_ascii_string_to_unsigned(text, 10, 0, max, &value, NULL))
        return false;
    *ret_value = (int32_t)value;
    return true;
}

/* A few bytes are a forgotten unit, not a wish. */
static bool read_memory_min(const char *text, struct terms *terms)
{
    int64_t bytes;

    if (!quantity_parse(text, &bytes, NULL) || bytes < MIB || bytes > AMOUNT_BYTES_MAX)
        return false;
    terms->memory_min = bytes;
    return true;
}

static bool read_memory_wanted(const char *text, struct terms *terms)
{
    int64_t bytes;

    if (!quantity_parse(text, &bytes, NULL) || bytes < MIB || bytes > AMOUNT_BYTES_MAX)
        return false;
    terms->memory_wanted = bytes;
    return true;
}

static bool read_models(const char *text, char ***models)
{
    g_auto(GStrv) items = g_strsplit(text, ",", -1);

    if (!*items)
        return false;
    for (char **item = items; *item; item++) {
        if (!*g_strstrip(*item))
            return false;
    }
    g_strfreev(*models);
    *models = g_steal_pointer(&items);
    return true;
}

static bool read_models_in(const char *text, struct terms *terms)
{
    return read_models(text, &terms->models);
}

static bool read_models_not(const char *text, struct terms *terms)
{
    return read_models(text, &terms->models_not);
}

static bool read_compute_min(const char *text, struct terms *terms)
{
    g_auto(GStrv) parts = g_strsplit(text, ".", 3);
    int32_t major, minor = 0;

    if (!*parts || g_strv_length(parts) > 2 || !read_number(parts[0], VERSION_MAX, &major) ||
        (parts[1] && !read_number(parts[1], 99, &minor)))
        return false;
    terms->compute_min = 100 * major + minor;
    return true;
}

static bool read_driver_min(const char *text, struct terms *terms)
{
    static const guint64 most[] = {DRIVER_MAJOR_MAX, DRIVER_MINOR_MAX, DRIVER_REVISION_MAX};
    g_auto(GStrv) parts = g_strsplit(text, ".", G_N_ELEMENTS(most) + 1);
    int32_t numbers[G_N_ELEMENTS(most)] = {0};

    if (!*parts || g_strv_length(parts) > G_N_ELEMENTS(most))
        return false;
    for (guint i = 0; parts[i]; i++) {
        if (!read_number(parts[i], most[i], &numbers[i]))
            return false;
    }
    terms->driver_min = DRIVER_VERSION(numbers[0], numbers[1], numbers[2]);
    return true;
}

static bool read_unshared(const char *text, struct terms *terms)
{
    terms->unshared = strcmp(text, "true") == 0;
    return terms->unshared || strcmp(text, "false") == 0;
}

static bool read_oversubscribe(const char *text, struct terms *terms)
{
    terms->oversubscribes = strcmp(text, "true") == 0;
    return terms->oversubscribes || strcmp(text, "false") == 0;
}

static bool read_isolation(const char *text, struct terms *terms)
{
    return isolation_find(text, &terms->isolation_min);
}

static bool read_containers(const char *text, struct terms *terms)
{
    if (strcmp(text, "same-card") == 0)
        terms->neighbours = NEIGHBOURS_SAME_CARD;
    else if (strcmp(text, "different-cards") == 0)
        terms->neighbours = NEIGHBOURS_DIFFERENT_CARDS;
    return terms->neighbours != NEIGHBOURS_ANY;
}

static bool read_policy(const char *text, struct terms *terms)
{
    terms->policy = policy_find(text);
    return terms->policy;
}

#define OVERSUBSCRIBE "gpuledger.io/oversubscribe"
#define WANTED "gpuledger.io/gpu-memory"

static const struct condition {
    const char *key;
    bool (*parse)(const char *text, struct terms *terms);
    const char *expected;
} conditions[] = {
    {"gpuledger.io/gpu-memory-min", read_memory_min, "an amount of memory, such as '10Gi'"},
    {WANTED, read_memory_wanted, "an amount of memory, such as '6Gi'"},
    {"gpuledger.io/gpu-models", read_models_in, "models with commas between, such as 'T4,A10'"},
    {"gpuledger.io/gpu-models-not", read_models_not,
     "models with commas between, such as 'T4,A10'"},
    {"gpuledger.io/gpu-compute-min", read_compute_min,
     "a CUDA compute capability, such as '8.0'"},
    {"gpuledger.io/gpu-driver-min", read_driver_min,
     "the major version of a driver, such as '535'"},
    {"gpuledger.io/gpu-unshared", read_unshared, "'true' or 'false'"},
    {OVERSUBSCRIBE, read_oversubscribe, "'true' or 'false'"},
    {"gpuledger.io/containers", read_containers, "'same-card' or 'different-cards'"},
    {"gpuledger.io/policy", read_policy, "a policy, such as 'binpack' or 'oc'"},
    {"gpuledger.io/isolation", read_isolation, "'none', 'hook', 'kernel' or 'hardware'"},
};

bool conditions_read(const struct pod_view *view, struct terms **terms, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(conditions); i++) {
        const struct condition *condition = &conditions[i];
        const char *text = string_pairs_get(&view->annotations, condition->key);
        if (!text)
            continue;
        if (!*terms)
            *terms = terms_new();
        if (!word_list_check(condition->key, text, error))
            return false;
        if (!condition->parse(text, *terms))
            return fail_with(error, GPULEDGER_ERROR_INVALID, "annotation '%s' is '%.64s': write %s",
                             condition->key, text, condition->expected);
    }
    return true;
}

void conditions_memory_wanted(const struct pod_view *view, struct terms **terms)
{
    const char *text = string_pairs_get(&view->annotations, WANTED);

    if (!text)
        return;
    if (!*terms)
        *terms = terms_new();
    read_memory_wanted(text, *terms);
}

bool conditions_oversubscribe(const struct pod_view *view)
{
    return g_strcmp0(string_pairs_get(&view->annotations, OVERSUBSCRIBE), "true") == 0;
}

bool conditions_say_oversubscribe(const struct pod_view *view)
{
    return string_pairs_get(&view->annotations, OVERSUBSCRIBE);
}
