/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the keys of seals are, as the options say.
 */
#include "verbs/keeper.h"
#include "cmd/backend.h"

struct keys;

/* NULL: the options name no place, and nothing is sealed. */
struct keys *keys_new(const struct config *config);
void keys_free(struct keys *keys);

/* NULL is fine; what they seal is known once keys_open has read them. */
struct seals *keys_seals(const struct keys *keys);

/* Reads them, and makes one if there is none; before anything else is read of the cluster. A saved one is
 * read as it is opened, so this is called before that, too, with `backend` NULL: for a file. An API
 * server that cannot be reached is waited for. */
bool keys_open(struct keys *keys, const struct config *config, const struct backend *backend,
               GError **error);

/* For commands that look at a cluster: seals are checked with the keys of that place, if the options name
 * one, and nothing is written there. */
struct keys *keys_new_checking(void);
/* Reads them once; as keys_open otherwise. */
bool keys_read(struct keys *keys, const struct config *config, const struct backend *backend,
               GError **error);
/* Says so, in a line for people, if pods had seals and there was no key. */
void keys_say_unchecked(const struct keys *keys);

/* Of the housekeeping: looks after the keys, and writes seals that are missing. NULL is fine. */
void keys_tend(struct keys *keys, struct store *store, struct cluster *cluster, bool serves);
