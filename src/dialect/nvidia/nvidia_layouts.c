/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/nvidia/nvidia_layouts.h"

#include "core/fail.h"
#include "dialect/digits.h"
#include "dialect/nvidia/nvidia.h"

#include <math.h>
#include <string.h>

/* Source: NVIDIA/mig-parted@0.15:deployments/systemd/config-default.yaml;
 * NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md (labels) */
#define NO_MIG "disabled"
#define GPU "nvidia.com/gpu"
#define INSTANCES_MAX 64

static void clear_layout(gpointer data)
{
    g_free(((struct mig_layout *)data)->name);
}

GArray *mig_layouts_new(void)
{
    GArray *layouts = g_array_new(FALSE, TRUE, sizeof(struct mig_layout));

    g_array_set_clear_func(layouts, clear_layout);
    return layouts;
}

/* --- the card ------------------------------------------------------------------------------------ */

static double profile_gib(const char *name)
{
    const char *memory = strstr(name, "g.");

    return memory ? g_ascii_strtod(memory + 2, NULL) : 0;
}

double mig_device_gib(const struct mig_card *card, const char *resource)
{
    if (g_str_equal(resource, GPU))
        return card->gib;
    return g_str_has_prefix(resource, NVIDIA_MIG_PREFIX) ? profile_gib(resource) : 0;
}

/* "NVIDIA-A100-SXM4-40GB". */
static double product_gib(const char *product)
{
    const char *end = g_strrstr(product, "GB");
    const char *digits = end;

    while (digits && digits > product && g_ascii_isdigit(digits[-1]))
        digits--;
    return digits && digits < end ? g_ascii_strtod(digits, NULL) : 0;
}

bool mig_card_read(const struct string_pairs *labels, struct mig_card *ret_card)
{
    const char *product = string_pairs_get(labels, GPU ".product");
    const char *memory = string_pairs_get(labels, GPU ".memory");
    const double gib = memory ? g_ascii_strtod(memory, NULL) / 1024 : 0;

    if (product && strstr(product, "-MIG-"))
        return false;
    ret_card->quarters = product && (strstr(product, "A30") || strstr(product, "RTX-PRO"));
    ret_card->gib = gib >= 1 ? gib : product ? product_gib(product) : 0;
    return ret_card->gib >= 1;
}

const char *mig_layout_of(const struct string_pairs *labels)
{
    return string_pairs_get(labels, "nvidia.com/mig.config");
}

bool mig_is_guest(const struct string_pairs *labels)
{
    return g_strcmp0(string_pairs_get(labels, "nvidia.com/vgpu.present"), "true") == 0;
}

int64_t mig_count_cards(const struct string_pairs *labels, const struct mode_value *now)
{
    const char *text = string_pairs_get(labels, GPU ".count");
    int64_t n = 0;

    for (size_t i = 0; now && i < now->n_profiles; i++) {
        g_autofree char *key =
            g_strconcat(NVIDIA_MIG_PREFIX, now->profiles[i].profile, ".count", NULL);
        const char *count = string_pairs_get(labels, key);
        int64_t instances;
        if (count && now->profiles[i].n > 0 && digits_parse(count, NVIDIA_DEVICES_MAX, &instances))
            n = MAX(n, instances / now->profiles[i].n);
    }
    return n > 0 || (text && digits_parse(text, NVIDIA_DEVICES_MAX, &n)) ? n : 0;
}

int64_t mig_devices_of(const struct mode_value *value, const char *resource)
{
    const bool whole = g_str_equal(resource, GPU);
    const char *profile = whole ? NO_MIG
                          : g_str_has_prefix(resource, NVIDIA_MIG_PREFIX)
                              ? resource + strlen(NVIDIA_MIG_PREFIX)
                              : "";

    for (size_t i = 0; i < value->n_profiles; i++) {
        if (g_str_equal(value->profiles[i].profile, profile))
            return whole ? 1 : value->profiles[i].n;
    }
    return 0;
}

/* --- what a configuration offers ------------------------------------------------------------------ */

static bool fits(const struct mig_card *card, double gib)
{
    return gib < card->gib * 1.03 + 1; /* names are rounded */
}

/* Slices of memory that an instance of so many slices of compute may have. */
static bool has_size(const struct mig_card *card, const char *profile)
{
    static const struct {
        bool quarters;
        int compute;
        double parts[2]; /* of the card */
    } sizes[] = {
        {false, 1, {1.0 / 8, 1.0 / 4}}, {false, 2, {1.0 / 4, 0}}, {false, 3, {1.0 / 2, 0}},
        {false, 4, {1.0 / 2, 0}},       {false, 7, {1, 0}},       {true, 1, {1.0 / 4, 0}},
        {true, 2, {1.0 / 2, 0}},        {true, 4, {1, 0}},
    };
    const int compute = g_ascii_digit_value(profile[0]);
    const double gib = profile_gib(profile);

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (size_t j = 0; sizes[i].quarters == card->quarters && sizes[i].compute == compute &&
                           j < G_N_ELEMENTS(sizes[i].parts);
             j++) {
            /* Names are rounded, and the driver keeps some of the memory. */
            const double part = sizes[i].parts[j] * card->gib;
            if (part > 0 && fabs(gib - part) < 0.5 + part * 0.012)
                return true;
        }
    }
    return false;
}

bool mig_card_suits(const struct mig_card *card, const struct mode_value *value)
{
    double gib = 0;

    for (size_t i = 0; i < value->n_profiles; i++) {
        const struct mode_instances *instances = &value->profiles[i];
        if (instances->n > 0 && !has_size(card, instances->profile))
            return false;
        gib += instances->n * profile_gib(instances->profile);
    }
    return fits(card, gib);
}

static bool read_profile(const cJSON *item, const struct mig_card *card, struct mode_value *value)
{
    struct mode_instances *instances = &value->profiles[value->n_profiles];

    if (value->n_profiles == MODE_PROFILES_MAX || strlen(item->string) < 4 ||
        item->string[1] != 'g' ||
        g_strlcpy(instances->profile, item->string, sizeof instances->profile) >=
            sizeof instances->profile ||
        !cJSON_IsNumber(item) || item->valuedouble < 1 || item->valuedouble > INSTANCES_MAX ||
        !has_size(card, item->string))
        return false;
    g_strdelimit(instances->profile, "+", '.'); /* as the plugin calls its resource */
    instances->n = (int32_t)item->valuedouble;
    value->n_profiles++;
    return true;
}

/* What an entry makes of all cards; false: it is for others, for some of them, or not known. */
static bool read_entry(const cJSON *entry, const struct mig_card *card,
                       struct mode_value *ret_value)
{
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(entry, "devices");
    const cJSON *enabled = cJSON_GetObjectItemCaseSensitive(entry, "mig-enabled");
    const cJSON *profiles = cJSON_GetObjectItemCaseSensitive(entry, "mig-devices");
    double gib = 0;
    const cJSON *profile;

    *ret_value = (struct mode_value){0};
    if (!cJSON_IsString(devices) || !g_str_equal(devices->valuestring, "all"))
        return false;
    if (cJSON_IsFalse(enabled)) {
        ret_value->n_profiles = 1;
        g_strlcpy(ret_value->profiles[0].profile, NO_MIG, sizeof ret_value->profiles[0].profile);
        return true;
    }
    cJSON_ArrayForEach (profile, profiles) {
        if (!read_profile(profile, card, ret_value))
            return false;
        gib += profile->valuedouble * profile_gib(profile->string);
    }
    return ret_value->n_profiles > 0 && fits(card, gib);
}

/* How much of the card it gives: of entries for several cards the one that suits gives the most. */
static double size_of(const struct mode_value *value)
{
    double gib = 0;

    for (size_t i = 0; i < value->n_profiles; i++)
        gib += value->profiles[i].n * profile_gib(value->profiles[i].profile);
    return gib;
}

static bool read_layout(const cJSON *item, const struct mig_card *card,
                        struct mode_value *ret_value)
{
    const int n = cJSON_GetArraySize(item);
    const cJSON *entry;
    bool found = false;

    cJSON_ArrayForEach (entry, item) {
        struct mode_value value;
        const bool filtered = cJSON_HasObjectItem(entry, "device-filter");
        if (!filtered && n > 1)
            return false; /* cards are cut in different ways */
        if (!read_entry(entry, card, &value) || (found && size_of(&value) <= size_of(ret_value)))
            continue;
        found = true;
        *ret_value = value;
    }
    return found;
}

GArray *mig_layouts_read(const cJSON *tree, const struct mig_card *card, GError **error)
{
    const cJSON *configs = cJSON_GetObjectItemCaseSensitive(tree, "mig-configs");
    GArray *layouts = mig_layouts_new();
    const cJSON *item;

    cJSON_ArrayForEach (item, configs) {
        struct mig_layout layout = {.name = NULL};
        if (!item->string || layouts->len == MIG_LAYOUTS_MAX)
            break;
        if (!read_layout(item, card, &layout.value))
            continue;
        layout.name = g_strdup(item->string);
        g_array_append_val(layouts, layout);
    }
    if (layouts->len == 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "none of its 'mig-configs' cuts all cards of the node alike");
        g_clear_pointer(&layouts, g_array_unref);
    }
    return layouts;
}
