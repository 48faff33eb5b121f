/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Labels of a node by which people choose what NVIDIA's node side makes of its cards, and how that says
 * that it has obeyed. Pure functions.
 *
 *  - nvidia.com/device-plugin.config: plugin, GPU Feature Discovery and MPS daemon are started
 *    again. What kubelet reports changes some seconds later, labels up to a minute later. Nothing
 *    says that it is done (NVIDIA/k8s-device-plugin@v0.20.0:README.md,
 *    cmd/gpu-feature-discovery/main.go).
 *  - nvidia.com/mig.config: only a change of it is acted on. nvidia.com/mig.config.state says how
 *    far it is; meanwhile the labels nvidia.com/gpu.deploy.… are "paused-for-mig-change". It may
 *    stay pending for ever (NVIDIA/mig-parted@0.15:pkg/mig/reconfigure; 0.14 too).
 */
#include <gpuledger/object.h>

struct node_mode {
    const char *label;
    const char *state; /* a label in which the node side says how far it is; NULL: it does not */
    bool recuts;       /* the cards themselves are cut anew: nobody may be there */
};

#define NVIDIA_MODES_N 2
extern const struct node_mode nvidia_modes[NVIDIA_MODES_N];

/* By the label, or by what follows its slash; NULL: there is none. */
const struct node_mode *nvidia_mode_find(const char *name);

#define MODE_PROFILES_MAX 16

/* So many instances of a profile on each card. */
struct mode_instances {
    char profile[32]; /* "1g.5gb" */
    int32_t n;
};

/* What a value of the label makes of the cards. */
struct mode_value {
    int64_t replicas; /* of a card, for the plugin's configuration; 0: not known */
    size_t n_profiles;
    struct mode_instances profiles[MODE_PROFILES_MAX]; /* for mig-manager's; none: not known */
};

/* The value itself says it: "all-1g.5gb", "all-disabled". How many instances a card then has is not
 * known: n is 0. False: it does not. */
bool nvidia_mode_guess(const struct node_mode *mode, const char *value,
                       struct mode_value *ret_value);

/* Cards are not cut. */
bool nvidia_mode_is_whole(const struct mode_value *value);

enum mode_state {
    MODE_STATE_NONE, /* it says nothing, or has yet to notice the change */
    MODE_STATE_BUSY, /* it is at it */
    MODE_STATE_FAILED,
    MODE_STATE_DONE,
};
enum mode_state nvidia_mode_state(const struct node_mode *mode, const struct node_view *node);

/* NULL: all that the node says of its cards is of one mind, and of that of the value. Else what is not
 * there yet, a constant. */
const char *nvidia_mode_lacks(const struct node_mode *mode, const struct node_view *node,
                              const struct mode_value *value);

/* A virtual machine with a part of a card, which nobody can cut from inside. */
bool nvidia_is_vgpu_guest(const struct node_view *node);
