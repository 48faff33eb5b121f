/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/nvidia/nvidia_modes.h"

#include "dialect/digits.h"
#include "dialect/nvidia/nvidia.h"

#include <glib.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define GPU "nvidia.com/gpu"
/* Source: NVIDIA/mig-parted@0.15:pkg/mig/reconfigure/clients.go */
#define PAUSED "paused-for-mig-change"
/* Source: NVIDIA/mig-parted@0.15:deployments/systemd/config-default.yaml */
#define ALL "all-"
#define NO_MIG "disabled"

/* Source: NVIDIA/k8s-device-plugin@v0.20.0:README.md; NVIDIA/mig-parted@0.15:pkg/mig/reconfigure */
const struct node_mode nvidia_modes[NVIDIA_MODES_N] = {
    {.label = "nvidia.com/device-plugin.config"},
    {.label = "nvidia.com/mig.config", .state = "nvidia.com/mig.config.state", .recuts = true},
};

const struct node_mode *nvidia_mode_find(const char *name)
{
    for (size_t i = 0; i < NVIDIA_MODES_N; i++) {
        if (g_str_equal(name, nvidia_modes[i].label) ||
            g_str_equal(name, strchr(nvidia_modes[i].label, '/') + 1))
            return &nvidia_modes[i];
    }
    return NULL;
}

bool nvidia_mode_guess(const struct node_mode *mode, const char *value,
                       struct mode_value *ret_value)
{
    const char *rest = value + strlen(ALL);

    if (!mode->recuts || !g_str_has_prefix(value, ALL) || !*rest ||
        strlen(rest) >= sizeof ret_value->profiles[0].profile)
        return false;
    *ret_value = (struct mode_value){.n_profiles = 1};
    g_strlcpy(ret_value->profiles[0].profile, rest, sizeof ret_value->profiles[0].profile);
    return g_str_equal(rest, NO_MIG) || (g_ascii_isdigit(*rest) && strstr(rest, "g."));
}

bool nvidia_mode_is_whole(const struct mode_value *value)
{
    return value->n_profiles == 1 && g_str_equal(value->profiles[0].profile, NO_MIG);
}

enum mode_state nvidia_mode_state(const struct node_mode *mode, const struct node_view *node)
{
    const char *state = mode->state ? string_pairs_get(&node->labels, mode->state) : NULL;

    if (!state)
        return MODE_STATE_NONE;
    if (g_str_equal(state, "success"))
        return MODE_STATE_DONE;
    return g_str_equal(state, "failed") ? MODE_STATE_FAILED : MODE_STATE_BUSY;
}

/* Source: NVIDIA/k8s-device-plugin@v0.20.0:docs/gpu-feature-discovery/README.md */
bool nvidia_is_vgpu_guest(const struct node_view *node)
{
    return g_strcmp0(string_pairs_get(&node->labels, "nvidia.com/vgpu.present"), "true") == 0;
}

/* --- what kubelet reports ----------------------------------------------------------------------- */

/* Of one resource: what the plugin has registered, and how much of that works. */
struct reported {
    int64_t capacity, allocatable;
};

static bool read_reported(const struct node_view *node, const char *resource,
                          struct reported *ret_reported)
{
    const char *capacity = string_pairs_get(&node->capacity, resource);
    const char *allocatable = string_pairs_get(&node->allocatable, resource);

    *ret_reported = (struct reported){0};
    return (!capacity || quantity_parse(capacity, &ret_reported->capacity, NULL)) &&
           (!allocatable || quantity_parse(allocatable, &ret_reported->allocatable, NULL));
}

static int64_t label_number(const struct node_view *node, const char *resource, const char *what)
{
    g_autofree char *key = g_strconcat(resource, ".", what, NULL);
    const char *text = string_pairs_get(&node->labels, key);
    int64_t number = 0;

    return text && digits_parse(text, NVIDIA_DEVICES_MAX, &number) ? number : 0;
}

/* A card may be lost, a part of one may not. */
static bool is_whole(const struct reported *reported, int64_t expected, int64_t step)
{
    return reported->capacity == expected && reported->allocatable > 0 &&
           reported->allocatable <= expected && reported->allocatable % step == 0;
}

/* --- the plugin's configuration ------------------------------------------------------------------ */

static const char *lacks_labels(const struct node_view *node, int64_t replicas, bool renamed)
{
    static const char late[] = "the labels of GPU Feature Discovery are of another configuration";
    const char *product = string_pairs_get(&node->labels, GPU ".product");
    const char *strategy = string_pairs_get(&node->labels, GPU ".sharing-strategy");
    const int64_t told = label_number(node, GPU, "replicas");
    const bool alone = replicas == 1;
    const bool marked = product && g_str_has_suffix(product, "-SHARED");

    if (alone ? told > 1 : told != replicas)
        return late;
    if (strategy && alone != g_str_equal(strategy, "none"))
        return late;
    return product && !renamed && marked == alone ? late : NULL;
}

static const char *lacks_replicas(const struct node_view *node, int64_t replicas)
{
    const int64_t count = label_number(node, GPU, "count");
    struct reported plain, renamed;

    if (count == 0)
        return "no label says how many cards the node has";
    if (replicas == 0)
        return "nobody knows how many devices the configuration makes of a card";
    if (!read_reported(node, GPU, &plain) || !read_reported(node, GPU ".shared", &renamed))
        return "what kubelet reports cannot be read";
    const bool is_renamed = renamed.capacity > 0;
    if (is_renamed && (plain.capacity > 0 || replicas == 1))
        return "kubelet reports devices of the former configuration";
    if (!is_whole(is_renamed ? &renamed : &plain, count * replicas, replicas))
        return "kubelet reports another number of devices";
    return lacks_labels(node, replicas, is_renamed);
}

/* --- MIG ------------------------------------------------------------------------------------------ */

static const char *lacks_clients(const struct node_view *node)
{
    for (size_t i = 0; i < node->labels.n; i++) {
        const struct string_pair *label = &node->labels.items[i];
        if (g_str_has_prefix(label->key, "nvidia.com/gpu.deploy.") &&
            g_str_equal(label->value, PAUSED))
            return "mig-manager has yet to let the plugin and others come back";
    }
    return NULL;
}

static const struct mode_instances *find_profile(const struct mode_value *value, const char *name)
{
    for (size_t i = 0; i < value->n_profiles; i++) {
        if (g_str_equal(value->profiles[i].profile, name))
            return &value->profiles[i];
    }
    return NULL;
}

/* How many cards are cut so, as a resource tells; 0: none, or not like that. */
static int64_t cards_of(const struct reported *reported, const struct mode_instances *profile)
{
    if (reported->capacity == 0 || reported->allocatable == 0)
        return 0;
    if (profile->n == 0)
        return 1;
    return reported->capacity % profile->n == 0 ? reported->capacity / profile->n : 0;
}

/* Instances under names of their own: those of the value, and of no other. */
static const char *lacks_instances(const struct node_view *node, const struct mode_value *value)
{
    static const char other[] = "kubelet reports other MIG instances";
    struct reported reported;
    int64_t cards = 0;
    size_t n = 0;

    for (size_t i = 0; i < node->capacity.n; i++) {
        const char *resource = node->capacity.items[i].key;
        if (!g_str_has_prefix(resource, NVIDIA_MIG_PREFIX))
            continue;
        if (!read_reported(node, resource, &reported))
            return "what kubelet reports cannot be read";
        if (reported.capacity == 0)
            continue;
        const struct mode_instances *profile =
            find_profile(value, resource + strlen(NVIDIA_MIG_PREFIX));
        const int64_t these = profile ? cards_of(&reported, profile) : 0;
        if (these == 0 || (cards > 0 && these != cards))
            return other;
        cards = these;
        n++;
        if (label_number(node, resource, "count") *
                MAX(label_number(node, resource, "replicas"), 1) !=
            reported.capacity)
            return "the labels of GPU Feature Discovery tell of other MIG instances";
    }
    return n == value->n_profiles ? NULL : other;
}

/* With the strategy "single" instances are called cards: the product's name tells. */
static const char *lacks_single(const struct node_view *node, const struct mode_value *value)
{
    const char *product = string_pairs_get(&node->labels, GPU ".product");
    const char *mark = product ? strstr(product, "-MIG-") : NULL;
    struct reported reported;

    if (value->n_profiles != 1 || !mark ||
        !g_str_has_prefix(mark + strlen("-MIG-"), value->profiles[0].profile))
        return "the labels of GPU Feature Discovery tell of other MIG instances";
    if (!read_reported(node, GPU, &reported) || cards_of(&reported, &value->profiles[0]) == 0 ||
        label_number(node, GPU, "count") * MAX(label_number(node, GPU, "replicas"), 1) !=
            reported.capacity)
        return "kubelet reports other MIG instances";
    return NULL;
}

static bool has_instances(const struct node_view *node)
{
    struct reported reported;

    for (size_t i = 0; i < node->capacity.n; i++) {
        const char *resource = node->capacity.items[i].key;
        if (g_str_has_prefix(resource, NVIDIA_MIG_PREFIX) &&
            (!read_reported(node, resource, &reported) || reported.capacity > 0))
            return true;
    }
    return false;
}

static const char *lacks_cards(const struct node_view *node)
{
    const char *product = string_pairs_get(&node->labels, GPU ".product");
    struct reported reported;

    if (has_instances(node) || (product && strstr(product, "-MIG-")))
        return "kubelet reports other MIG instances";
    if (!read_reported(node, GPU, &reported) || reported.allocatable == 0)
        return "kubelet reports no cards yet";
    return label_number(node, GPU, "count") * MAX(label_number(node, GPU, "replicas"), 1) ==
                   reported.capacity
               ? NULL
               : "the labels of GPU Feature Discovery tell of another number of cards";
}

static const char *lacks_layout(const struct node_view *node, const struct mode_value *value)
{
    if (value->n_profiles == 0)
        return "nobody knows which MIG instances the configuration makes";
    if (nvidia_mode_is_whole(value))
        return lacks_cards(node);
    return has_instances(node) ? lacks_instances(node, value) : lacks_single(node, value);
}

const char *nvidia_mode_lacks(const struct node_mode *mode, const struct node_view *node,
                              const struct mode_value *value)
{
    if (!mode->recuts)
        return lacks_replicas(node, value->replicas);
    if (nvidia_mode_state(mode, node) != MODE_STATE_DONE)
        return "mig-manager has not said that it is done";
    const char *lacks = lacks_clients(node);
    return lacks ? lacks : lacks_layout(node, value);
}
