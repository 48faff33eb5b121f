/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What requests authenticate with, kept fresh: files of tokens and certificates are read again when they
 * have aged, credential commands run again when what they gave expires, both also when the API server
 * answered 401. What cannot be renewed is used for as long as it lasts.
 *
 * The API server judges a connection's certificate with each request, and a connection keeps its
 * certificate. So after a 401 the certificate's text is another, even if the certificate is not, and
 * no request with it goes over an old connection.
 *
 * Secrets are never logged nor put into an error, and are wiped when freed.
 * Threads: any. Files and commands are read and run without a lock; meanwhile other threads go on
 * with the old credential, and wait only when there is none.
 */
#include "kube/kubeconfig.h"

#include <stdint.h>

/* Never changes once handed out. NULL where it does not apply. */
struct credential {
    char *authorization; /* the header's value */
    char *cert_pem;      /* from the command, or of the configuration */
    char *key_pem;
};

struct credential *credential_ref(struct credential *credential);
void credential_unref(struct credential *credential);
typedef struct credential credential; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(credential, credential_unref)

/* Zero means the default. */
struct credentials_options {
    int64_t file_age_ms;     /* files are read again: 50 s, for tokens a minute less leeway */
    int64_t retry_ms;        /* between two attempts to renew: 5 s */
    int64_t exec_timeout_ms; /* 60 s */
};

struct credentials;

/* Borrows the configuration; options may be NULL. */
struct credentials *credentials_new(const struct kube_config *config,
                                    const struct credentials_options *options);
void credentials_free(struct credentials *credentials);

/* The credential of the moment, a reference. NULL with GPULEDGER_ERROR_CREDENTIALS if there never was
 * one, it has expired, or none can be had until `deadline_ms` (clock_ms). */
struct credential *credentials_get(struct credentials *credentials, int64_t deadline_ms,
                                   GError **error);

/* The API server did not accept this one (401), or its certificate and key do not match. True if the next credentials_get may give
 * another. */
bool credentials_reject(struct credentials *credentials, const struct credential *credential);
