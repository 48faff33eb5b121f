/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Values of nvidia.com/mig.config that a configuration of mig-manager offers for the cards of a
 * node, and what each makes of a card.
 *
 * Source: NVIDIA/mig-parted@0.15:deployments/systemd/config-default.yaml: "mig-configs", by name a
 * list of {devices, device-filter, mig-enabled, mig-devices}. A device-filter names PCI device ids,
 * which no label of a node tells; the sizes of profiles tell of which cards they are. Pure.
 */
#include "dialect/nvidia/nvidia_modes.h"

#include <cjson/cJSON.h>
#include <glib.h>

#define MIG_LAYOUTS_MAX 128

struct mig_layout {
    char *name;
    struct mode_value value;
};

/* As labels tell: memory of a card, and whether its smallest instance is a quarter (A30, RTX PRO) instead
 * of an eighth. */
struct mig_card {
    double gib;
    bool quarters;
};

/* False: neither label nor product tells how much memory a card has, or instances are called cards. */
bool mig_card_read(const struct string_pairs *labels, struct mig_card *ret_card);

/* GiB of one device of that resource; 0: it is neither a whole card nor an instance. */
double mig_device_gib(const struct mig_card *card, const char *resource);

/* So many devices of that resource each card then has. */
int64_t mig_devices_of(const struct mode_value *value, const char *resource);

/* Whether such a card can be cut so: its profiles are of its sizes, and fit on it. Whole cards can. */
bool mig_card_suits(const struct mig_card *card, const struct mode_value *value);

/* What the node is cut into, as its label says, or NULL. */
const char *mig_layout_of(const struct string_pairs *labels);

/* By the instances that GPU Feature Discovery has counted, if what is made of a card is known (or NULL), or
 * by its count of cards; 0: no label tells. */
int64_t mig_count_cards(const struct string_pairs *labels, const struct mode_value *now);

/* As nvidia_is_vgpu_guest. */
bool mig_is_guest(const struct string_pairs *labels);

/* Those in which all cards are cut alike, and as this card can be. Array of struct mig_layout, the
 * caller's; NULL, with an error: it is not such a configuration. */
GArray *mig_layouts_read(const cJSON *tree, const struct mig_card *card, GError **error);
GArray *mig_layouts_new(void);
