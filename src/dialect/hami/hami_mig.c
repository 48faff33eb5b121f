/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cards in MIG mode, as HAMi's plugin of each version cuts them.
 *
 * Since v2.10 the plugin registers the profiles of each card and where instances of them may be, and
 * makes exactly the instance that an annotation of the pod names, or fails the pod. Before, it knew a
 * list of templates for each model, "so many instances of these sizes"; a pod's device names the
 * template and the instance in it, "UUID[template-instance]", and the plugin cuts the whole card
 * anew when that is another template than the card has. The instance it takes by number from NVML
 * (nvmlDeviceGetMigDeviceHandleByIndex, else `nvidia-smi -L`), which promises no order of different
 * sizes: templates with several are used only where the administrator says the order.
 *
 * Volcano's vGPU does the same, but that templates have names: "UUID[group1-0]".
 *
 * Sources:
 *  - Project-HAMi/HAMi@v2.10.0:pkg/device/nvidia/mig_allocations.go, mig_topology.go, and
 *    pkg/device-plugin/nvidiadevice/nvinternal/plugin/migmgr.go;
 *  - Project-HAMi/HAMi@v2.9.0:charts/hami/templates/scheduler/device-configmap.yaml
 *    (knownMigGeometries), back to v2.5.3;
 *  - Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/util/util.go (ExtractMigTemplatesFromUUID,
 *    GetMigUUIDFromIndex).
 */
#include "dialect/hami/hami_mig.h"

#include "core/fail.h"
#include "dialect/warning.h"

#include <stdlib.h>
#include <string.h>

/* Layout 0 has the places that NVML says; layout n is the n-th template, whose instances are places
 * of one slice. */
#define TEMPLATES_MAX 32

/* --- what the plugin registers --------------------------------------------------------------- */

struct said_place {
    int64_t start, size;
};

static const struct json_field place_fields[] = {
    JSON_FIELD_INT64(struct said_place, start, "start", 0),
    JSON_FIELD_INT64(struct said_place, size, "size", 0),
    JSON_FIELD_END,
};

struct said_profile {
    const char *name;
    int64_t mib, core;
    const cJSON *places;
};

static const struct json_field profile_fields[] = {
    JSON_FIELD_STRING(struct said_profile, name, "name", JSON_REQUIRED),
    JSON_FIELD_INT64(struct said_profile, mib, "memoryMB", 0),
    JSON_FIELD_INT64(struct said_profile, core, "core", 0),
    JSON_FIELD_ARRAY(struct said_profile, places, "placements", 0),
    JSON_FIELD_END,
};

static bool is_place(const struct said_place *said)
{
    return said->start >= 0 && said->size > 0 && said->start < MIG_SLICES_MAX &&
           said->size <= MIG_SLICES_MAX - said->start;
}

static bool read_profile(struct json_arena *arena, const cJSON *item, struct mig_profile *profile,
                         GError **error)
{
    struct said_profile said = {0};
    const cJSON *place;

    if (!json_decode(arena, item, profile_fields, &said, error))
        return false;
    bool sane = strlen(said.name) < sizeof profile->name && said.mib > 0 &&
                said.mib <= AMOUNT_BYTES_MAX / MIB && said.core >= 0 && said.core <= 100 &&
                cJSON_GetArraySize(said.places) <= MIG_PLACES_MAX;
    const cJSON *places = sane ? said.places : NULL;
    cJSON_ArrayForEach(place, places)
    {
        struct said_place one = {0};
        if (!json_decode(arena, place, place_fields, &one, error))
            return false;
        sane = sane && is_place(&one);
        profile->places[profile->n_places++] =
            (struct mig_place){0, (uint8_t)one.start, (uint8_t)one.size};
    }
    if (!sane)
        return fail_with(error, GPULEDGER_ERROR_RANGE,
                         "MIG profile '%.64s' has an amount or a place that no card has",
                         said.name);
    g_strlcpy(profile->name, said.name, sizeof profile->name);
    profile->memory = said.mib * MIB;
    profile->core = (int32_t)said.core * (CORE_WHOLE / 100);
    return true;
}

struct mig_profiles *hami_mig_read_profiles(struct json_arena *arena, const cJSON *list,
                                            GError **error)
{
    const int n = cJSON_GetArraySize(list);
    const cJSON *item;
    int32_t i = 0;

    if (n > MIG_PROFILES_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "it names %d MIG profiles of a card; there may be %d", n, MIG_PROFILES_MAX);
        return NULL;
    }
    struct mig_profiles *profiles = mig_profiles_new(n);
    cJSON_ArrayForEach(item, list)
    {
        if (read_profile(arena, item, &profiles->items[i++], error))
            continue;
        mig_profiles_unref(profiles);
        return NULL;
    }
    return profiles;
}

/* --- templates ------------------------------------------------------------------------------- */

/* "1g.5gb", "1g.10gb.me": slices of compute, memory, and what else there is to it. */
static bool is_profile_name(const char *name)
{
    const char *at = name + strspn(name, "0123456789");

    if (at == name || !g_str_has_prefix(at, "g.") || !g_ascii_isdigit(at[2]))
        return false;
    for (at += 2; *at; at++) {
        if (!g_ascii_isalnum(*at) && *at != '.' && *at != '-')
            return false;
    }
    return true;
}

/* "7x1g.5gb:5120": so many instances of a name and of so many MiB, counted on from `start`. */
static bool read_size(const char *text, uint8_t layout, int32_t start, struct mig_profile *profile)
{
    char *end = NULL;
    const long count = g_ascii_isdigit(*text) ? strtol(text, &end, 10) : 0;

    if (count < 1 || count > MIG_PLACES_MAX - start)
        return false;
    const char *name = end + 1, *colon = strchr(text, ':');
    gint64 mib;

    if (*end != 'x' || !colon || colon <= name ||
        (size_t)(colon - name) >= sizeof profile->name ||
        !g_ascii_string_to_signed(colon + 1, 10, 1, AMOUNT_BYTES_MAX / MIB, &mib, NULL))
        return false;
    memcpy(profile->name, name, (size_t)(colon - name));
    if (!is_profile_name(profile->name))
        return false;
    profile->memory = mib * MIB;
    profile->n_places = (int32_t)count;
    for (int32_t i = 0; i < profile->n_places; i++)
        profile->places[i] = (struct mig_place){layout, (uint8_t)(start + i), 1};
    return true;
}

/* One template: its sizes with '+' between, in the order in which the driver counts. Appends to the
 * profiles. */
static bool read_template(const char *text, uint8_t layout, struct mig_profiles *profiles)
{
    g_auto(GStrv) sizes = g_strsplit(text, "+", -1);
    int32_t start = 0;

    for (char **size = sizes; *size; size++) {
        struct mig_profile *profile = &profiles->items[profiles->n];
        if (!read_size(g_strstrip(*size), layout, start, profile))
            return false;
        start += profile->n_places;
        profiles->n++;
    }
    return start > 0;
}

static long slices_of(const struct mig_profile *profile)
{
    return CLAMP(strtol(profile->name, NULL, 10), 0, MIG_SLICES_MAX);
}

/* How much of something the instances of a template have together; templates of NVML's places are
 * each one place. */
static int64_t sum_layout(const struct mig_profiles *profiles, const struct mig_profile *of,
                          int64_t (*amount)(const struct mig_profile *profile))
{
    const uint8_t layout = of->n_places > 0 ? of->places[0].layout : 0;
    int64_t sum = 0;

    if (layout == 0)
        return amount(of);
    for (int32_t i = 0; i < profiles->n; i++) {
        const struct mig_profile *profile = &profiles->items[i];
        if (profile->places[0].layout == layout)
            sum += amount(profile) * profile->n_places;
    }
    return sum;
}

static int64_t slices_amount(const struct mig_profile *profile)
{
    return slices_of(profile);
}

static int64_t memory_amount(const struct mig_profile *profile)
{
    return profile->memory;
}

/* An instance "3g.…" has 3 of as many slices of compute as the instances of any template have. */
static void share_out_core(struct mig_profiles *profiles)
{
    int64_t all = 1;

    for (int32_t i = 0; i < profiles->n; i++)
        all = MAX(all, sum_layout(profiles, &profiles->items[i], slices_amount));
    for (int32_t i = 0; i < profiles->n; i++)
        profiles->items[i].core =
            (int32_t)(slices_of(&profiles->items[i]) * 100 / all) * (CORE_WHOLE / 100);
}

static guint count_sizes(char *const *templates)
{
    guint n = 0;

    for (; *templates; templates++) {
        n++;
        for (const char *c = *templates; *c; c++)
            n += *c == '+';
    }
    return n;
}

/* The templates of a model in the order of the plugin's list; NULL: they cannot be read. */
static struct mig_profiles *read_templates(const char *text)
{
    g_auto(GStrv) templates = g_strsplit(text, ",", TEMPLATES_MAX + 1);
    const guint n = g_strv_length(templates), n_sizes = count_sizes(templates);

    if (n == 0 || n > TEMPLATES_MAX || n_sizes > MIG_PROFILES_MAX)
        return NULL;
    struct mig_profiles *profiles = mig_profiles_new((int32_t)n_sizes);
    profiles->n = 0;
    for (guint i = 0; i < n; i++) {
        if (g_str_equal(g_strstrip(templates[i]), "-"))
            continue;
        if (!read_template(templates[i], (uint8_t)(i + 1), profiles)) {
            mig_profiles_unref(profiles);
            return NULL;
        }
    }
    share_out_core(profiles);
    return profiles;
}

struct sought_model {
    const char *model; /* or NULL */
    bool found;
    struct mig_profiles *profiles;
};

/* "MODEL=TEMPLATE,…": the first row counts whose name is part of the model's. */
static bool read_model(const char *item, void *into)
{
    struct sought_model *sought = into;
    const char *sign = strchr(item, '=');

    if (!sign)
        return false;
    g_autofree char *name = g_strstrip(g_strndup(item, (gsize)(sign - item)));
    if (!*name || strpbrk(name, ",:"))
        return false;
    if (sought && (sought->found || !sought->model || !strstr(sought->model, name)))
        return true;
    struct mig_profiles *profiles = read_templates(sign + 1);
    if (sought) {
        sought->found = true;
        sought->profiles = profiles;
        return profiles;
    }
    const bool sound = profiles;
    if (profiles)
        mig_profiles_unref(profiles);
    return sound;
}

const struct item_list hami_mig_templates_list = {
    .form = "MODEL=TEMPLATE,... with templates like 7x1g.5gb:5120 (instances, name, MiB of each), "
            "'+' between the sizes of one, or '-'",
    .example = "A30=4x1g.6gb:6144,2x2g.12gb:12288;A100=7x1g.5gb:5120,-",
    .separator = ';',
    .sign = '=',
    .take = read_model,
};

struct mig_profiles *hami_mig_find_templates(const char *table, const char *model,
                                             char **ret_warning)
{
    struct sought_model sought = {.model = model};
    g_autoptr(GError) error = NULL;

    if (!item_list_read(&hami_mig_templates_list, table && *table ? table : HAMI_MIG_TEMPLATES,
                        &sought, &error))
        warn(ret_warning, g_strdup_printf("the MIG templates cannot be read: %s", error->message));
    return sought.profiles;
}

int64_t hami_mig_memory(const struct mig_profiles *profiles, int64_t memory)
{
    for (int32_t i = 0; i < profiles->n; i++)
        memory = MAX(memory, sum_layout(profiles, &profiles->items[i], memory_amount));
    return MIN(memory, AMOUNT_BYTES_MAX);
}

/* --- what a pod holds ------------------------------------------------------------------------ */

/* "UUID[2-0]" ends in the instance: the third template's first; so does "UUID[group3-0]". */
struct mig_place hami_mig_read_index(const char *group, const char *brackets)
{
    const struct mig_place none = {0};
    const char *number = brackets + 1 + (group ? strlen(group) : 0);
    char *end;
    long layout, start;

    if (*brackets != '[' || (group && !g_str_has_prefix(brackets + 1, group)) ||
        !g_ascii_isdigit(*number))
        return none;
    layout = strtol(number, &end, 10) + (group ? 0 : 1);
    if (*end != '-' || !g_ascii_isdigit(end[1]))
        return none;
    start = strtol(end + 1, &end, 10);
    if (strcmp(end, "]") != 0 || layout < 1 || layout > TEMPLATES_MAX || start >= MIG_SLICES_MAX)
        return none;
    return (struct mig_place){(uint8_t)layout, (uint8_t)start, 1};
}

void hami_mig_write_index(const char *group, struct mig_place place, GString *text)
{
    if (place.layout > 0)
        g_string_append_printf(text, "[%s%d-%d]", group ? group : "",
                               place.layout - (group ? 0 : 1), place.start);
}

void hami_mig_write(struct json_writer *writer, const struct hami_mig_entry *entry,
                    const char *uuid, const char *profile)
{
    json_begin_object(writer);
    json_key_int(writer, "containerIndex", entry->container);
    json_key_int(writer, "deviceIndex", entry->device);
    json_key_string(writer, "gpuUUID", uuid);
    json_key_string(writer, "profile", profile);
    json_key_object(writer, "placement");
    json_key_int(writer, "start", entry->place.start);
    json_key_int(writer, "size", entry->place.size);
    json_end_object(writer);
    json_end_object(writer);
}

struct said_entry {
    int64_t container, device;
    const char *uuid, *profile;
    struct said_place place;
};

static const struct json_field allocation_fields[] = {
    JSON_FIELD_INT64(struct said_entry, container, "containerIndex", 0),
    JSON_FIELD_INT64(struct said_entry, device, "deviceIndex", 0),
    JSON_FIELD_STRING(struct said_entry, uuid, "gpuUUID", JSON_REQUIRED),
    JSON_FIELD_STRING(struct said_entry, profile, "profile", JSON_REQUIRED),
    JSON_FIELD_INT64(struct said_entry, place.start, "placement.start", 0),
    JSON_FIELD_INT64(struct said_entry, place.size, "placement.size", 0),
    JSON_FIELD_END,
};

static bool read_entries(struct json_arena *arena, const char *text, GArray *entries,
                         GError **error)
{
    const cJSON *item, *list = json_parse(arena, text, strlen(text), error);

    if (!list)
        return false;
    cJSON_ArrayForEach(item, list)
    {
        struct said_entry said = {0};
        if (!json_decode(arena, item, allocation_fields, &said, error))
            return false;
        if (!is_place(&said.place))
            return fail_with(error, GPULEDGER_ERROR_RANGE, "entry %u has a place that no card has",
                             entries->len);
        const struct hami_mig_entry entry = {
            .container = (int32_t)CLAMP(said.container, -1, INT32_MAX),
            .device = (int32_t)CLAMP(said.device, -1, INT32_MAX),
            .key = card_key(said.uuid),
            .place = {0, (uint8_t)said.place.start, (uint8_t)said.place.size},
        };
        g_array_append_val(entries, entry);
    }
    return true;
}

GArray *hami_mig_read(const char *key, const struct pod_view *view, char **ret_warning)
{
    const char *text = key ? string_pairs_get(&view->annotations, key) : NULL;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    GArray *entries = g_array_new(FALSE, FALSE, sizeof(struct hami_mig_entry));

    if (text && *text && !read_entries(arena, text, entries, &error)) {
        warn(ret_warning, g_strdup_printf("annotation '%s' cannot be read: %s", key,
                                          error->message));
        g_array_set_size(entries, 0);
    }
    return entries;
}

struct mig_place hami_mig_lookup(const GArray *entries, const struct hami_mig_entry *wanted)
{
    for (guint i = 0; i < entries->len; i++) {
        const struct hami_mig_entry *entry = &g_array_index(entries, struct hami_mig_entry, i);
        if (entry->container == wanted->container && entry->device == wanted->device &&
            entry->key == wanted->key)
            return entry->place;
    }
    return (struct mig_place){0};
}
