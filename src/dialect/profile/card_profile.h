/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What cards nodes have that are not there yet: those of a group that an autoscaler has scaled to zero.
 * Its template of such a node has labels and perhaps a count of GPUs, but nothing that a node side
 * writes. Who runs the cluster says it in --card-profiles, by label selector; each dialect says what its
 * node side would have told of such cards (struct dialect, write_profile), and the template is then
 * read like any node.
 *
 * For templates only. Whoever asks makes sure that no Node of the API server has the name: a node that
 * is there speaks for itself, and one whose plugin has not come yet has no cards. Pure functions.
 */
#include "core/item_list.h"
#include "json/json.h"

#include <gpuledger/dialect.h>

/* "SELECTOR: DIALECT, cards=N, memory=SIZE, slots=N, model=NAME; …" */
extern const struct item_list card_profiles_list;

/* Gives the template what the first profile says whose selector takes its labels. What the template
 * says itself stays as it is. False: no profile is for it. The arena holds what is added. */
bool card_profile_apply(const struct dialect_options *options, struct json_arena *arena,
                        struct node_view *template);
