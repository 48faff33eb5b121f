/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tokens, keys and passwords are wiped before their memory is given back.
 */
#include <glib.h>
#include <string.h>

/* NULL is fine. */
static inline void secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    g_free(secret);
}
