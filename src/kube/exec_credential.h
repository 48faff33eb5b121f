/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs the program that a kubeconfig names for credentials. Source of the protocol:
 * client.authentication.k8s.io/v1 and v1beta1 ExecCredential.
 */
#include "kube/kubeconfig.h"

#include <stdint.h>

#define EXEC_OUTPUT_MAX ((size_t)1 << 20)

/* What the program handed out; strings are owned, NULL where it gave none. */
struct exec_credential {
    char *token;
    char *cert_pem;
    char *key_pem;
    int64_t expires_us; /* Unix time; 0: never */
};

/* Blocks until the program has ended, at most `timeout_ms`; then it and what it started are
 * killed. The error (GPULEDGER_ERROR_DENIED, or _LIMIT for too much output) names the program and
 * quotes the first line that it complained with. Any thread. */
bool exec_credential_run(const struct kube_config *config, int64_t timeout_ms,
                         struct exec_credential *ret_credential, GError **error);

/* What it wrote: an ExecCredential of exactly that apiVersion. Same errors. */
bool exec_credential_decode(const char *api_version, const char *text, size_t length,
                            struct exec_credential *ret_credential, GError **error);

void exec_credential_clear(struct exec_credential *credential);
