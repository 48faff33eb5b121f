/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A CA of our own, for `gpuledger certs`: ECDSA keys on P-256, certificates that say what they are
 * for and nothing else. All texts are PEM; private keys among them are for secret_free.
 *
 * One thread at a time.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define AUTHORITY_DAYS 3650

struct authority;

/* Errors of all are GPULEDGER_ERROR_INVALID. */
struct authority *authority_make(const char *name, GError **error);
struct authority *authority_read(const char *certificate, const char *key, GError **error);
void authority_free(struct authority *authority);
typedef struct authority authority; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(authority, authority_free)

/* Its own; free the key with secret_free. */
char *authority_certificate(const struct authority *authority);
char *authority_key(const struct authority *authority);

struct certificate_wish {
    const char *name;         /* the common name */
    const char *const *names; /* of a server: DNS names, numeric addresses; NULL: of a client */
    unsigned days;            /* but not longer than the CA itself */
};

bool authority_sign(const struct authority *authority, const struct certificate_wish *wish,
                    char **ret_certificate, char **ret_key, GError **error);

/* Whether a certificate is what authority_sign would make for the wish, with its own key, and a
 * third of its life is left. */
bool authority_has_signed(const struct authority *authority, const struct certificate_wish *wish,
                          const char *certificate, const char *key);

/* When a certificate ends, as "2027-01-31", or NULL. Free with g_free. */
char *certificate_end(const char *certificate);
