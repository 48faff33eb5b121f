/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cards that a vGPU plugin registers in an annotation of its Node.
 *
 * Sources of the encodings:
 *  - Project-HAMi/HAMi@v2.4.1:pkg/util (seven fields), v2.5.3 (nine);
 *  - Project-HAMi/HAMi@v2.10.0:pkg/device/devices.go, since v2.8.3 (JSON, whose empty members are
 *    left out: no "health" is unhealthy);
 *  - 4paradigm/k8s-vgpu-scheduler@da7d4ed:pkg/util/util.go (seven);
 *  - Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:pkg/plugin/register.go (six), and
 *    v1.9.4:pkg/plugin/vgpu/register.go (five).
 */
#include "core/fail.h"
#include "dialect/amounts.h"
#include "dialect/hami/hami_mig.h"
#include "dialect/warning.h"

#include <gpuledger/quantity.h>
#include <string.h>

struct entry {
    const char *uuid, *model, *mode;
    int64_t index, count, mib, core, numa;
    bool healthy;
    const cJSON *profiles; /* of MIG instances */
};

static const struct json_field entry_fields[] = {
    JSON_FIELD_STRING(struct entry, uuid, "id", JSON_REQUIRED),
    JSON_FIELD_INT64(struct entry, index, "index", 0),
    JSON_FIELD_INT64(struct entry, count, "count", 0),
    JSON_FIELD_INT64(struct entry, mib, "devmem", 0),
    JSON_FIELD_INT64(struct entry, core, "devcore", 0),
    JSON_FIELD_STRING(struct entry, model, "type", 0),
    JSON_FIELD_INT64(struct entry, numa, "numa", 0),
    JSON_FIELD_STRING(struct entry, mode, "mode", 0),
    JSON_FIELD_BOOL(struct entry, healthy, "health", 0),
    JSON_FIELD_ARRAY(struct entry, profiles, "migProfiles", 0),
    JSON_FIELD_END,
};

/* --- the forms with colons ------------------------------------------------------------------- */

/* Source: NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md */
#define LABEL_GUEST "nvidia.com/vgpu.present"
#define UUID_CHARACTERS                                                                            \
    G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_."

enum column { UUID, COUNT, MEMORY, CORE, MODEL, NUMA, HEALTH, INDEX, MODE };

static const enum column long_columns[] = {UUID, COUNT,  MEMORY, CORE, MODEL,
                                           NUMA, HEALTH, INDEX,  MODE};
static const enum column short_columns[] = {UUID, COUNT, MEMORY, MODEL, HEALTH, MODE};

static bool read_number(const char *text, int64_t *ret_value)
{
    return g_ascii_string_to_signed(text, 10, -1, AMOUNT_BYTES_MAX, ret_value, NULL);
}

static bool read_column(enum column column, const char *text, struct entry *entry)
{
    switch (column) {
    case UUID:
        entry->uuid = text;
        return *text != '\0';
    case COUNT:
        return read_number(text, &entry->count);
    case MEMORY:
        return read_number(text, &entry->mib);
    case CORE:
        return read_number(text, &entry->core);
    case MODEL:
        entry->model = text;
        return true;
    case NUMA:
        return read_number(text, &entry->numa);
    case HEALTH:
        entry->healthy = g_str_equal(text, "true");
        return true;
    case INDEX:
        return read_number(text, &entry->index);
    case MODE:
        entry->mode = text;
        return true;
    }
    return false;
}

/* How many fields a card has, by form: what is known, at least and at most. */
static bool has_shape(const struct vgpu *vgpu, guint n)
{
    if (vgpu->short_register)
        return n >= G_N_ELEMENTS(short_columns) - 1; /* the oldest have no mode */
    return n == G_N_ELEMENTS(long_columns) || n == G_N_ELEMENTS(long_columns) - 2;
}

/* The strings of the entries live in `strings`. */
static bool read_colons(const struct vgpu *vgpu, const char *text, GStringChunk *strings,
                        GArray *entries, GError **error)
{
    const enum column *columns = vgpu->short_register ? short_columns : long_columns;
    const guint n_columns = vgpu->short_register ? G_N_ELEMENTS(short_columns)
                                                 : G_N_ELEMENTS(long_columns);
    g_auto(GStrv) cards = g_strsplit(text, ":", NODE_CARDS_MAX + 2);

    for (char **card = cards; *card; card++) {
        if (!strchr(*card, ','))
            continue;
        g_auto(GStrv) fields = g_strsplit(*card, ",", 16);
        const guint n = g_strv_length(fields);
        struct entry entry = {.index = (int64_t)entries->len};
        bool sound = has_shape(vgpu, n);
        for (guint i = 0; sound && i < MIN(n, n_columns); i++)
            sound = read_column(columns[i], g_string_chunk_insert(strings, fields[i]), &entry);
        /* In the form without a mode the word says nothing: volcano-vgpu-device-plugin v1.9.0 to
         * v1.9.4 write false for all cards (pkg/plugin/vgpu/register.go compares with "healthy",
         * the word is "Healthy"). */
        entry.healthy |= vgpu->short_register && n == G_N_ELEMENTS(short_columns) - 1;
        if (!sound)
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "'%.64s' is not a card in any known form", *card);
        g_array_append_val(entries, entry);
    }
    return true;
}

static bool read_json(const char *text, struct json_arena *arena, GArray *entries, GError **error)
{
    const cJSON *item, *list = json_parse(arena, text, strlen(text), error);

    if (!list)
        return false;
    cJSON_ArrayForEach(item, list)
    {
        struct entry entry = {0};
        if (!json_decode(arena, item, entry_fields, &entry, error))
            return fail_within(error, "card %u: ", entries->len);
        g_array_append_val(entries, entry);
    }
    return true;
}

/* --- the node -------------------------------------------------------------------------------- */

/* The JSON form comes in any order. */
static gint by_index(gconstpointer a, gconstpointer b)
{
    const struct entry *one = a, *other = b;

    if (one->index != other->index)
        return one->index < other->index ? -1 : 1;
    return strcmp(one->uuid, other->uuid);
}

static bool check_entries(const GArray *entries, GError **error)
{
    if (entries->len == 0 || entries->len > NODE_CARDS_MAX)
        return fail_with(error, cards_error(entries->len),
                         "it names %u cards; there must be between 1 and %d", entries->len,
                         NODE_CARDS_MAX);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < entries->len; i++) {
        const struct entry *entry = &g_array_index(entries, struct entry, i);
        const bool sane = entry->count >= 0 && entry->count <= INT16_MAX && entry->mib >= 0 &&
                          entry->mib <= AMOUNT_BYTES_MAX / MIB && entry->core >= 0 &&
                          entry->core <= INT16_MAX && ABS(entry->numa) <= INT16_MAX;
        /* Pods' annotations carry it between commas, colons, semicolons and brackets. */
        const bool plain = entry->uuid[strspn(entry->uuid, UUID_CHARACTERS)] == '\0';
        if (!sane || !plain || !g_hash_table_add(seen, (gpointer)entry->uuid))
            return fail_with(error, GPULEDGER_ERROR_RANGE,
                             !sane ? "card '%.64s' has an amount that no card has"
                             : !plain
                                 ? "card '%.64s' has a UUID with other characters than letters, "
                                   "digits, '-', '_' and '.'"
                                 : "card '%.64s' is there twice",
                             entry->uuid);
    }
    return true;
}

static bool is_listed(char *const *list, const char *text)
{
    for (; list && *list; list++) {
        if (g_str_equal(g_strstrip(*list), text))
            return true;
    }
    return false;
}

/* Nothing can be started on a node whose plugin kubelet has lost. */
static bool is_served(const struct vgpu *vgpu, const struct node_view *view)
{
    const char *text = string_pairs_get(&view->allocatable, vgpu->count);
    int64_t devices;

    return text && quantity_parse(text, &devices, NULL) && devices > 0;
}

/* What is known of a card in MIG mode; false: how it is cut cannot be read. */
static bool read_mig(const struct node_view *view, const struct entry *entry, const char *table,
                     struct topology_card *card, char **ret_warning, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();

    /* A guest has what its host has cut, and cuts nothing itself. */
    if (g_strcmp0(string_pairs_get(&view->labels, LABEL_GUEST), "true") == 0) {
        warn(ret_warning, g_strdup_printf("card '%.64s' is registered in mode mig, but label '"
                                          LABEL_GUEST "' says that the node is a guest, whose cards "
                                          "are never cut: it takes no pods", entry->uuid));
        return true;
    }
    if (cJSON_GetArraySize(entry->profiles) > 0) {
        card->mig = hami_mig_read_profiles(arena, entry->profiles, error);
        if (!card->mig)
            return fail_within(error, "card '%.64s': ", entry->uuid);
    } else {
        card->mig = hami_mig_find_templates(table, entry->model, ret_warning);
    }
    if (card->mig)
        card->memory = hami_mig_memory(card->mig, card->memory);
    return true;
}

/* Percent. Volcano's plugin parses deviceMemoryScaling, and registers what the card has all the same
 * (Project-HAMi/volcano-vgpu-device-plugin@v1.11.0:pkg/plugin/vgpu/register.go). */
static int64_t scaling_of(const struct vgpu *vgpu, const struct dialect_options *options)
{
    return vgpu->short_register ? 100 : MAX(options->hami_memory_scaling, 100);
}

/* Most cards of a node are cut alike: what follows from that is worked out once. */
static void settle_mig(struct topology_card *card, const struct topology_card *before)
{
    const struct mig_profiles *like = before ? before->mig : NULL;

    if (!card->mig)
        return;
    if (!like || like->n != card->mig->n ||
        memcmp(like->items, card->mig->items, (size_t)like->n * sizeof like->items[0]) != 0) {
        mig_profiles_settle(card->mig);
        return;
    }
    mig_profiles_unref(card->mig);
    card->mig = mig_profiles_ref(before->mig);
}

/* Volcano's scheduler takes all modes but mig for hami-core
 * (volcano-sh/volcano@v1.15.1:pkg/scheduler/api/devices/nvidia/vgpu/utils.go). */
static const char *mode_of(const struct vgpu *vgpu, const struct entry *entry)
{
    const bool other = entry->mode && *entry->mode && !g_str_equal(entry->mode, VGPU_MODE_MIG);

    return vgpu->short_register && other ? VGPU_MODE_HOOK : entry->mode;
}

static void fill(const struct vgpu *vgpu, const struct node_view *view, const GArray *entries,
                 const struct dialect_options *options, struct topology *topology)
{
    const int64_t scaling = scaling_of(vgpu, options), told_mib = vgpu_told_mib(vgpu, options);
    const char *cordoned = vgpu->cordoned && !view->as_new
                               ? string_pairs_get(&view->annotations, vgpu->cordoned)
                               : NULL;
    g_auto(GStrv) cordon = cordoned ? g_strsplit(cordoned, ",", NODE_CARDS_MAX) : NULL;
    const bool served = is_served(vgpu, view);

    topology->dialect = vgpu->dialect;
    topology->memory_unit = MIB;
    topology->n_cards = (int32_t)entries->len;
    for (guint i = 0; i < entries->len; i++) {
        const struct entry *entry = &g_array_index(entries, struct entry, i);
        topology->cards[i] = (struct topology_card){
            .memory = MIN(entry->mib, AMOUNT_BYTES_MAX / MIB / told_mib) * told_mib * MIB,
            .physical = scaling > 100 ? (entry->mib * 100 + scaling - 1) / scaling * MIB
                                      : 0, /* what is registered was rounded down */
            .core = (int32_t)entry->core * (CORE_WHOLE / 100),
            .slots = (int32_t)entry->count,
            .numa = (int32_t)entry->numa,
            .unhealthy = !served || !(entry->healthy || view->as_new) || entry->count == 0,
            .closure = is_listed(cordon, entry->uuid) ? CLOSURE_CORDON : CLOSURE_NONE,
            .uuid = topology_keep(topology, entry->uuid),
            .model = topology_keep(topology, entry->model),
            .mode = topology_keep(topology, mode_of(vgpu, entry)),
        };
    }
}

bool vgpu_read_topology(const struct vgpu *vgpu, const struct node_view *view,
                        const struct dialect_options *options, struct topology *ret_topology,
                        char **ret_warning, GError **error)
{
    const char *text = string_pairs_get(&view->annotations, vgpu->registered);

    if (!text)
        return false;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GArray) entries = g_array_new(FALSE, TRUE, sizeof(struct entry));
    GStringChunk *strings = g_string_chunk_new(1024);
    const bool read = *text == '[' ? read_json(text, arena, entries, error)
                                   : read_colons(vgpu, text, strings, entries, error);
    bool sound = read && check_entries(entries, error);

    if (sound) {
        g_array_sort(entries, by_index);
        fill(vgpu, view, entries, options, ret_topology);
        ret_topology->links = vgpu_read_links(vgpu, view, ret_topology, ret_warning);
    }
    for (guint i = 0; sound && i < entries->len; i++) {
        const struct entry *entry = &g_array_index(entries, struct entry, i);
        struct topology_card *card = &ret_topology->cards[i];
        if (vgpu->mig && g_strcmp0(entry->mode, VGPU_MODE_MIG) == 0)
            sound = read_mig(view, entry, options->hami_mig_templates, card, ret_warning, error);
        settle_mig(card, i > 0 ? card - 1 : NULL);
        card->unhealthy |= !card->mig && g_strcmp0(entry->mode, VGPU_MODE_MIG) == 0;
    }
    if (!sound) {
        g_prefix_error(error, "node '%s': annotation '%s': ", view->name, vgpu->registered);
    }
    g_string_chunk_free(strings);
    return sound;
}

/* deviceSplitCount. Source: Project-HAMi/HAMi@v2.10.0:charts/hami/values.yaml */
#define SLOTS_BY_DEFAULT 10

/* In the forms with colons, which say as much of such cards as the JSON of newer plugins. */
bool vgpu_write_profile(const struct vgpu *vgpu, const struct card_profile *profile,
                        const struct dialect_options *options, struct profile_words *words)
{
    const int64_t slots = profile->slots ? profile->slots : SLOTS_BY_DEFAULT;
    const int64_t mib =
        profile->memory / MIB * scaling_of(vgpu, options) / 100 / vgpu_told_mib(vgpu, options);
    const char *model = profile->model ? profile->model : "";
    GString *text;

    if (mib == 0 || slots > INT16_MAX || strpbrk(model, ":"))
        return false;
    text = g_string_new(NULL);
    for (int64_t i = 0; i < profile->cards; i++) {
        g_string_append_printf(text, "GPU-to-come-%d,%d,%" G_GINT64_FORMAT, (int)i, (int)slots,
                               mib);
        if (vgpu->short_register)
            g_string_append_printf(text, ",%s,true,hami-core:", model);
        else if (vgpu->mode)
            g_string_append_printf(text, ",100,%s,0,true,%d,hami-core:", model, (int)i);
        else
            g_string_append_printf(text, ",100,%s,0,true:", model);
    }
    profile_words_add(words, WORD_ANNOTATION, vgpu->registered, g_string_free(text, FALSE));
    profile_words_amount(words, vgpu->count, profile->cards * slots);
    return true;
}
