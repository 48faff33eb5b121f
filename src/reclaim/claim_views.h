/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What Nodes show of claims: the annotation of wire/claim.h, for people. Nothing is decided by it. What a Node shows is
 * compared with what there is, so that it comes right whatever was missed; what somebody else writes there is
 * written over, once a minute at most.
 */
#include "store/cluster.h"
#include "wire/claim_sheet.h"

struct claim_views;

/* Borrows both. */
struct claim_views *claim_views_new(struct store *store, struct cluster *cluster);
void claim_views_free(struct claim_views *views);

/* Writes a few that differ. Monotonic time. */
void claim_views_show(struct claim_views *views, const struct claim_sheet *sheet, int64_t now_ms);
