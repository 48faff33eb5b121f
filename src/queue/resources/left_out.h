/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ResourceQuotas of which a namespace has too many to be kept, by namespace: their names and what they limit.
 * Guarded by the store's lock.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Names for each namespace; with more, it is closed until a list has fewer. */
#define LEFT_OUT_MAX 64

/* For g_hash_table_unref. */
GHashTable *left_out_new(void);
void left_out_copy(GHashTable *copy, GHashTable *from);

/* It limits that, a constant text. Whether that is new of the namespace. */
bool left_out_add(GHashTable *spaces, const char *ns, const char *name, uint32_t generation,
                  const char *key);
/* It is gone, limits nothing any more, or is kept. Whether the namespace has none any more. */
bool left_out_remove(GHashTable *spaces, const char *ns, const char *name);
/* Forgets those of other generations. Whether any namespace has none any more. */
bool left_out_sweep(GHashTable *spaces, uint32_t generation);

/* Whether one of them limits, or has limited, that. */
bool left_out_has(GHashTable *spaces, const char *ns, const char *key);
