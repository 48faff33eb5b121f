/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ResourceQuotas of which a namespace has too many, by namespace: their names, and what they limit, so that one of
 * them can take the place of another that goes. Guarded by the store's lock.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Names for each namespace; with more, it is closed until a list has fewer. */
#define LEFT_OUT_MAX 64

/* For g_hash_table_unref. */
GHashTable *left_out_new(void);
void left_out_copy(GHashTable *copy, GHashTable *from);

/* It says that; the limits are referenced. `keys`: what it limits, constant texts, up to NULL. Whether one of them is
 * new of the namespace. */
struct left_out {
    const char *ns, *name;
    uint32_t generation;
    GArray *limits;
};
bool left_out_add(GHashTable *spaces, const struct left_out *quota, const char *const *keys);
/* The first of the namespace by name, as it was added; false: it has none whose name is known. The name, for g_free,
 * and the limits are the caller's. */
bool left_out_take(GHashTable *spaces, const char *ns, char **ret_name, struct left_out *ret_quota);
/* The names of namespaces that have any; for g_strfreev. */
char **left_out_spaces(GHashTable *spaces);
/* It is gone, limits nothing any more, or is kept. Whether the namespace has none any more. */
bool left_out_remove(GHashTable *spaces, const char *ns, const char *name);
/* Forgets those of other generations. Whether any namespace has none any more. */
bool left_out_sweep(GHashTable *spaces, uint32_t generation);

/* Whether one of them limits, or has limited, that; NULL: nothing. */
bool left_out_has(GHashTable *spaces, const char *ns, const char *key);
