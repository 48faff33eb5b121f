/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls_section.h"

#include "core/section/rows.h"
#include "core/fail.h"
#include "http/listeners_section.h"

#define SETTINGS struct tls_settings

/* clang-format off */
static const struct option rows[] = {
    {"tls-cert", PATH(certificate, "FILE", ""), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "Serve --listen over TLS (1.2 or later) with this certificate, in PEM form, followed "
             "by those that signed it. The file is read again within a second of a change, and on "
             "SIGHUP; connections that are open stay."},
    {"tls-key", PATH(key, "FILE", ""), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "The private key of --tls-cert, in PEM form and not encrypted."},
    {"tls-client-ca", PATH(client_ca, "FILE", ""), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "Turn away clients of --listen without a certificate that one of these CAs signed, "
             "in PEM form. Whoever has one may bind pods: use a CA that signs for nobody else, or "
             "say which names may. The certificate must be for clients (extendedKeyUsage "
             "clientAuth)."},
    {"tls-client-names", LIST(client_names, "NAME,...", "", item_list_names),
     FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "Of those certificates take only the ones with one of these names, exactly, as common "
             "name or as DNS name."},
    {"ops-tls", BOOL(operations, "false"), FOR(COMMAND_SERVE),
     .help = "Serve --ops-listen over TLS as well, with the certificate of --tls-cert. Clients need "
             "none there: they show the token of --ops-token-file."},
};
/* clang-format on */

static bool check(const struct settings *settings, GError **error)
{
    const struct tls_settings *tls = settings_of(settings, tls);

    if (!*tls->certificate != !*tls->key) {
        bool has_cert = *tls->certificate;
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is set without '%s'; TLS needs both a certificate and its key",
                         has_cert ? "tls-cert" : "tls-key", has_cert ? "tls-key" : "tls-cert");
    }
    if (*tls->client_ca && !*tls->certificate)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'tls-client-ca' is set without 'tls-cert' and 'tls-key'; clients show "
                         "certificates only over TLS");
    if (*tls->client_names && !*tls->client_ca)
        return fail_with(
            error, GPULEDGER_ERROR_INVALID,
            "'tls-client-names' is set without 'tls-client-ca'; a name proves nothing unless "
            "somebody has signed it");
    if (tls->operations && !*tls->certificate)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'ops-tls' is set without 'tls-cert' and 'tls-key'; TLS needs both");
    if (tls->operations && settings_of(settings, listeners)->operations.port == ADDRESS_OFF)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'ops-tls' is set, but 'ops-listen' is off; leave one of them out");
    return true;
}

const struct section section_tls = {
    .name = "tls",
    .title = "TLS",
    ROWS(rows),
    .check = check,
};
