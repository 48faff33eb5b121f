/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The seal on a grant: an annotation of the pod, written in its Binding, with what was granted and a
 * MAC over it. Whoever may patch the pod may take it away, or put another one there, but cannot make
 * one; so what a sealed pod holds is known after a restart whatever else its annotations say.
 *
 *   gpuledger.io/seal: v1:KEYID:MAC:{"booking":{"uid":…,"node":…,"dialect":…,"shares":[…]}}
 *
 * `struct seals` has the keys as they are now, behind a lock of its own that is held for no longer
 * than a look takes; it may be taken with the store's. Any thread.
 */
#include "store/seals/keyring.h"

#include <gpuledger/dialect.h>

#define SEAL_ANNOTATION "gpuledger.io/seal"
#define SEAL_MAX ((size_t)64 << 10) /* longer ones are none */

/* What is believed of a pod of which nothing was known. */
enum trust {
    TRUST_ANNOTATIONS, /* what they say: there is no key, its Binding was seen, or it is adopted */
    TRUST_SEAL,
    TRUST_NOTHING, /* it has no seal, and nobody has seen where it was bound */
};

struct seals;

struct seals *seals_new(void);
/* Of those who only look at a cluster: nothing is sealed with its keys. */
struct seals *seals_new_checking(void);
void seals_free(struct seals *seals);

/* The keys from now on, and back: a copy. */
void seals_set(struct seals *seals, struct keyring *take_keyring);
struct keyring *seals_keyring(struct seals *seals);

/* Whether grants are sealed. NULL is fine. */
bool seals_sign(const struct seals *seals);
/* Whether a seal was read while there was no key to check any with. */
bool seals_unchecked(struct seals *seals);

/* Pods that have no seal are to be believed, and sealed. */
bool seals_adopt(struct seals *seals);

/* What is to be sealed of a booking, or of a pod that the ledger has confirmed, which is on a node: the
 * facts; NULL: it cannot be said. Free with g_free. */
char *seal_describe(const struct allocation *allocation);

/* The annotation's value; NULL: there is no key, or no facts, or nothing is sealed. Free with g_free. */
char *seals_make(struct seals *seals, const char *facts);

/* What was sealed of the pod, as `known` for dialect_continue, and by which key; NULL: it has no seal
 * that one of the keys has made for this pod on the node that it is on. `seals` NULL: what stands in
 * it is believed, as a record says that it was. Free with allocation_free. */
struct allocation *seals_read(struct seals *seals, const struct pod_view *pod,
                              const struct classes *classes, char ret_key[KEYRING_ID_SIZE]);

/* Nobody knows where the pod is: it holds what its containers ask for, in whatever dialect the node
 * serves, on every card that it may be on. Takes what its annotations say. */
struct allocation *seal_distrust(struct allocation *take_told, const struct pod_view *pod,
                                 const struct dialect_options *options);

/* Before the two are compared: cards are called as the fresh reading of the pod calls them, by number
 * or by UUID, so that the node need not be known yet. */
void seal_call_cards(struct allocation *sealed, const struct allocation *fresh);
