/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The limits by model of quota/quotas.h, as their text says them. */
#include <glib.h>

/* Of one namespace. */
struct space_limits {
    GHashTable *models; /* model -> GPUs, as share_amounts.h has them, an int64_t * */
    GHashTable *pools;  /* a set; empty: any */
};

/* Namespace -> struct space_limits *: none, and as the text says; NULL, with an error: it cannot be read. */
GHashTable *space_limits_new(void);
GHashTable *space_limits_read(const char *text, GError **error);
