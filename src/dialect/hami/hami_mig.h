/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Cards in MIG mode under HAMi's plugin and Volcano's: what it registers of them, and what its
 * pods' annotations say about instances. Pure functions. */
#include "core/item_list.h"
#include "dialect/hami/hami.h"
#include "json/json.h"

#include <gpuledger/mig.h>

/* What HAMi's chart configures before v2.10, in the form of the option: templates of each model in
 * the order of its list; '-' are those with instances of different sizes. Volcano's ConfigMap
 * volcano-vgpu-device-config begins alike. Of an A100 with 80 GB these say 9728 and 40192, older
 * ones 10240 and 40960 of the same hardware: what it has is the smaller.
 * Source: Project-HAMi/HAMi@v2.9.0:charts/hami/templates/scheduler/device-configmap.yaml;
 * Project-HAMi/volcano-vgpu-device-plugin@v1.12.0:volcano-vgpu-device-plugin.yml */
#define HAMI_MIG_TEMPLATES                                                                         \
    "A30=4x1g.6gb:6144,2x2g.12gb:12288,1x4g.24gb:24576;"                                           \
    "A100-SXM4-40GB=7x1g.5gb:5120,-,2x3g.20gb:20480,1x7g.40gb:40960;"                              \
    "A100-40GB-PCIe=7x1g.5gb:5120,-,2x3g.20gb:20480,1x7g.40gb:40960;"                              \
    "A100-PCIE-40GB=7x1g.5gb:5120,-,2x3g.20gb:20480,1x7g.40gb:40960;"                              \
    "A100-SXM4-80GB=7x1g.10gb:9728,-,2x3g.40gb:40192,1x7g.79gb:80896;"                             \
    "A100-80GB-PCIe=7x1g.10gb:9728,-,2x3g.40gb:40192,1x7g.79gb:80896;"                             \
    "A100-PCIE-80GB=7x1g.10gb:9728,-,2x3g.40gb:40192,1x7g.79gb:80896"

/* The array "migProfiles" of one card's entry in the register. */
struct mig_profiles *hami_mig_read_profiles(struct json_arena *arena, const cJSON *list,
                                            GError **error);

/* "MODEL=TEMPLATE,…;…" */
extern const struct item_list hami_mig_templates_list;

/* The templates of a model in a table "MODEL=TEMPLATE,…;…", NULL or "" for the chart's; NULL: it is
 * not there. */
struct mig_profiles *hami_mig_find_templates(const char *table, const char *model,
                                             char **ret_warning);

/* A card's memory, at least as much as its instances are said to have together. */
int64_t hami_mig_memory(const struct mig_profiles *profiles, int64_t memory);

/* What follows the UUID of a device: "[TEMPLATE-INSTANCE]" or nothing. Templates are numbered from 0;
 * those that have names are `group` with a number from 1 behind it. */
struct mig_place hami_mig_read_index(const char *group, const char *brackets);
void hami_mig_write_index(const char *group, struct mig_place place, GString *text);

/* One instance in the annotation that the plugin reads since v2.10. */
struct hami_mig_entry {
    int32_t container, device; /* place in the text of the pod's devices, and in the container */
    uint64_t key;              /* card_key of the card's UUID */
    struct mig_place place;
};

void hami_mig_write(struct json_writer *writer, const struct hami_mig_entry *entry,
                    const char *uuid, const char *profile);

/* All of them; free with g_array_unref. None if there is no annotation, or a malformed one. */
GArray *hami_mig_read(const char *key, const struct pod_view *view, char **ret_warning);

/* The place of the instance of this container, device and card; none if nothing is said. */
struct mig_place hami_mig_lookup(const GArray *entries, const struct hami_mig_entry *wanted);
