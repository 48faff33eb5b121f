/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Into which layout a node's cards should be cut: policy/layout_choice.h with what a store knows, the
 * devices of other nodes and the pods that were seen. Takes the store's lock, a few nodes at a time.
 */
#include "store/store.h"
#include "dialect/nvidia/nvidia_layouts.h"

struct layout_query {
    struct store *store;
    const char *node;
    const struct mig_card *card;
    const GArray *layouts; /* struct mig_layout */
};

/* What pods want. */
struct layout_expected {
    char *resource;
    double part;      /* of the sizes of all that is wanted, 0 to 1 */
    double elsewhere; /* devices that other nodes have */
};

struct layout_row {
    char *name;
    struct mode_value value;
    double serves; /* the part of the expected pods, by size, 0 to 1 */
    guint n_ended; /* pods that end for it */
    bool is;       /* the node is so now */
};

struct layout_advice {
    char *is; /* the label's value, or NULL */
    int64_t n_cards;
    uint64_t n_pods;  /* with GPUs, that it goes by */
    GArray *expected; /* struct layout_expected; the most first */
    GArray
        *rows;  /* struct layout_row, in the order of the layouts; the one that is now among them */
    guint best; /* of the rows */
};

/* Errors: there is no such node, it is a vGPU guest, how many cards it has is not known, nobody wants
 * devices of that kind. */
bool layout_advise(const struct layout_query *query, struct layout_advice *ret_advice,
                   GError **error);
void layout_advice_clear(struct layout_advice *advice);
typedef struct layout_advice layout_advice; /* for g_auto */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(layout_advice, layout_advice_clear)
