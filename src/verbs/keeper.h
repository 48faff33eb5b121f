/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who looks after the keys of seals: they are kept in a file or a Secret (struct key_storage), which
 * several replicas read; whoever writes names the version that is replaced, so that the first one
 * counts.
 *
 *  - An empty storage is filled: at the start with a new key, later with those that are in use.
 *  - What is there is read again from time to time; what cannot be read changes nothing.
 *  - The replica that serves writes down that pods have been adopted, makes a new key when one is asked
 *    for, and drops a key by which nothing is sealed any more.
 *
 * One thread at a time.
 */
#include "store/cluster.h"

struct key_storage;

struct key_storage_ops {
    /* The text, "" if it is empty, and its version; free both. NULL, with an error. */
    char *(*read)(struct key_storage *storage, char **ret_version, GError **error);
    /* OUTCOME_CONFLICT: it has another version by now. */
    enum outcome (*write)(struct key_storage *storage, const char *text, const char *version,
                          GError **error);
    void (*release)(struct key_storage *storage);
};

/* Implementations embed this as their first member. */
struct key_storage {
    const struct key_storage_ops *ops;
    const char *title; /* for people */
};

/* How often what is there is read again: more often than a new key begins to sign. */
#define KEEPER_EVERY_MS 20000

struct keeper;

/* Takes the storage; borrows the rest. Reads it, and fills it if it is empty. */
struct keeper *keeper_new(struct key_storage *take_storage, struct seals *seals, GError **error);
void keeper_free(struct keeper *keeper);

/* Looks at once; `serves` as below. */
void keeper_look(struct keeper *keeper, struct store *store, bool serves);

/* From time to time; `serves`: no other replica does. */
void keeper_run(struct keeper *keeper, struct store *store, bool serves);
