/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods by the seals that the API server has shown on them, and whose seal is still to be written: of
 * those who were bound by others, or before there was a key; whose node side has chosen the card since
 * the Binding; whose key is not the one that signs any more.
 *
 * Under the store's lock. verbs/sealer.h writes them.
 */
#include "store/seals/seals.h"

struct sealing;

struct sealing *sealing_new(void);
void sealing_free(struct sealing *sealing);

/* By which key the pod is sealed, NULL: by none; `complete`: nothing is to be added. */
void sealing_note(struct sealing *sealing, const char *uid, const char *key, bool complete);
void sealing_forget(struct sealing *sealing, const char *uid);

/* Pods sealed by that key; NULL: those whose seal is to be written. */
unsigned sealing_count(const struct sealing *sealing, const char *key);

/* Whether another key would take the place of one by which pods are sealed: of how many. */
unsigned sealing_count_in_the_way(const struct sealing *sealing, const struct keyring *keyring);

/* Whether every pod whose seal is to be written has been tried often enough to go on without it. */
bool sealing_has_tried(const struct sealing *sealing);

/* Whether the pod is one to be sealed. */
bool sealing_concerns(const struct allocation *allocation);

/* Another key signs from now on: all that others have sealed are to be sealed anew. NULL is ignored. */
void sealing_set_signer(struct sealing *sealing, const char *key);

struct sealed_pod {
    char *ns, *name, *uid;
    char *facts; /* what is to be sealed */
};
/* Pods whose seal is to be written now, some at a time; of struct sealed_pod. */
GArray *sealing_take_due(struct sealing *sealing, const struct ledger *ledger, int64_t now_ms);
