/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/guard/policy.h"

#include "core/opt_outs.h"
#include "dialect/marks/cordoned_cards.h"
#include "dialect/marks/node_marks.h"
#include "dialect/nvidia/nvidia_modes.h"
#include "store/seals/seals.h"
#include "switch/machine.h"
#include "verbs/wake.h"
#include "wire/claim.h"
#include "wire/plan_mark.h"
#include "wire/pod_group.h"

#include <gpuledger/dialect.h>
#include <string.h>

/* What the program writes whatever the dialect. */
static const char *const pod_keys[] = {POD_GROUP_BOUND, POD_GROUP_MIN, SEAL_ANNOTATION,
                                       WAKE_ANNOTATION, NULL};
static const char *const node_keys[] = {
    CLAIM_KEY,       CORDONED_CARDS_KEY, NODE_SLOTS_KEY,   PLAN_MARK,
    SWITCH_DONE_KEY, SWITCH_KEY,         SWITCH_STATE_KEY, NULL};

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add(GPtrArray *keys, const char *key)
{
    if (key && !g_ptr_array_find_with_equal_func(keys, key, g_str_equal, NULL))
        g_ptr_array_add(keys, (char *)key);
}

static void add_all(GPtrArray *keys, const char *const *more)
{
    for (; more && *more; more++)
        add(keys, *more);
}

GPtrArray *policy_pod_keys(void)
{
    GPtrArray *keys = g_ptr_array_new();

    add_all(keys, pod_keys);
    for (size_t i = 0; dialects[i]; i++)
        add_all(keys, dialects[i]->records);
    g_ptr_array_sort(keys, compare);
    return keys;
}

GPtrArray *policy_node_keys(void)
{
    GPtrArray *keys = g_ptr_array_new();

    add_all(keys, node_keys);
    for (size_t i = 0; dialects[i]; i++) {
        add(keys, dialects[i]->lock_key);
        add(keys, dialects[i]->cordon_key);
    }
    g_ptr_array_sort(keys, compare);
    return keys;
}

GPtrArray *policy_node_labels(void)
{
    GPtrArray *keys = g_ptr_array_new();

    for (size_t i = 0; i < NVIDIA_MODES_N; i++) {
        add(keys, nvidia_modes[i].label);
        add(keys, nvidia_modes[i].state);
    }
    g_ptr_array_sort(keys, compare);
    return keys;
}

GPtrArray *policy_opt_outs(void)
{
    GPtrArray *keys = g_ptr_array_new();

    for (const struct opt_out *one = opt_outs; one->key; one++)
        add(keys, one->key);
    g_ptr_array_sort(keys, compare);
    return keys;
}

void policy_write_list(GString *text, const char *name, const GPtrArray *keys,
                       enum policy_part part)
{
    const bool prefixes = part == POLICY_PREFIXES;
    const char *comma = "";

    g_string_append_printf(text, "    - name: %s\n      expression: >-\n        [", name);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        if (g_str_has_suffix(key, "*") != prefixes)
            continue;
        g_string_append_printf(text, "%s'%.*s'", comma, (int)(strlen(key) - prefixes), key);
        comma = ",\n        ";
    }
    g_string_append(text, "]\n");
}
