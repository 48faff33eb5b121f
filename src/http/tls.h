/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a listener shows its clients, and whom it believes: certificate, key and, optionally, the
 * CAs of client certificates and the names in them, read from PEM files and read again when they
 * change. A client's certificate must be for clients (extendedKeyUsage clientAuth), in so many
 * words. Every handshake
 * uses what was current when its connection was opened; connections keep what they began with.
 *
 * TLS 1.2 and 1.3, ephemeral keys only, no renegotiation, no session tickets.
 *
 * Keys live in GnuTLS and nowhere else; nothing here writes any part of one. Any thread.
 */
#include <glib.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>

/* For MHD_OPTION_HTTPS_PRIORITIES. */
#define TLS_PRIORITIES                                                                             \
    "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:%SERVER_PRECEDENCE"

struct tls_files {
    const char *certificate; /* the server's own first, then what signed it */
    const char *key;         /* not encrypted */
    const char *client_ca;   /* "": clients need no certificate */
    /* One of these must be the certificate's common name or one of its DNS names, exactly; with
     * commas between them. "": any name will do. */
    const char *client_names;
};

struct tls;
struct tls_identity;

/* Reads the files. Errors are GPULEDGER_ERROR_IO, _LIMIT or _INVALID and name the option and the
 * file. `files` is copied. */
struct tls *tls_new(const struct tls_files *files, GError **error);
void tls_free(struct tls *tls);

/* Reads the files again and takes what is new. What cannot be used is logged, once, and leaves
 * things as they are; the next call tries again. */
void tls_refresh(struct tls *tls);

/* What a session keeps; to be kept for as long as it. */
struct tls_session {
    struct tls_identity *identity; /* NULL: none has begun */
};

/* Prepares a session that has not begun its handshake. `ret_kept` is the session's pointer from now
 * on (gnutls_session_get_ptr). */
void tls_begin(struct tls *tls, gnutls_session_t session, struct tls_session *ret_kept);
void tls_end(struct tls_session *kept);
