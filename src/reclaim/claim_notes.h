/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Claims on a Node (wire/claim.h), written into its annotation and taken out of it; what others have written
 * there stays. One thread.
 */
#include "store/cluster.h"
#include "wire/claim.h"

/* Adds them in place of those of the same pods. False, with an error: it is not known to have been done. */
bool claim_notes_add(struct cluster *cluster, const char *node, const GPtrArray *claims,
                     GError **error);

/* Takes out that of the pod. A Node that is gone has none. */
bool claim_notes_remove(struct cluster *cluster, const char *node, const char *uid, GError **error);
/* Both at once. */
bool claim_notes_replace(struct cluster *cluster, const char *node, const char *uid,
                         const GPtrArray *claims, GError **error);
