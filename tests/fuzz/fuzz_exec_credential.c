/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a credential command writes is refused with a message, or gives a token, or a
 * certificate with its key.
 */
#include "target.h"

#include "kube/exec_credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exec_credential credential = {0};
    g_autoptr(GError) error = NULL;
    const bool ok = exec_credential_decode("client.authentication.k8s.io/v1", (const char *)data,
                                           size, &credential, &error);

    FUZZ_CHECK(ok == !error);
    FUZZ_CHECK(!ok || credential.token || credential.cert_pem);
    FUZZ_CHECK(!credential.cert_pem == !credential.key_pem);
    FUZZ_CHECK(!credential.token || *credential.token);
    exec_credential_clear(&credential);
    return 0;
}
