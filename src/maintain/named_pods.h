/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Pods that somebody names, each "NAMESPACE/NAME"; lists end with NULL, and NULL names all. */
#include "store/store.h"

bool named_pods_has(const char *const *names, const char *ns, const char *name);

/* False, with an error that names it: one of them holds no GPU. Takes the store's lock, a node at a time. */
bool named_pods_check(struct store *store, const char *const *names, GError **error);

/* A set of the UIDs of those that hold a GPU now. Takes the lock likewise; the caller's. */
GHashTable *named_pods_uids(struct store *store, const char *const *names);
