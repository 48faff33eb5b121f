/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What store_pods.c and the files of this folder share: pods, as the watch, a list or a GET shows them. */
#include "store/store_state.h"

/* Under the lock, all but the last: in which quota a pod counts stays as it is once it was seen bound. */
void store_note_choice(struct store *store, const struct pod_view *pod);
/* What its label no longer says of that; NULL: it does. For g_free. */
char *store_tell_choice(const struct store *store, const struct pod_view *pod);

/* It is pending no longer. */
void store_forget_pending(struct store *store, const char *uid);
void store_set_rules(struct store *store, const char *uid, struct pod_rules *take_rules);

/* A pod without a node. */
void store_apply_pending(struct store *store, const struct pod_view *pod);
