/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listeners_section.h"

#include "core/section/rows.h"
#include "core/fail.h"

#include <string.h>

#define SETTINGS struct listeners_settings

/* PORT says nothing about the address, so that of the file stays, or what `alias_base` has. */
static bool alias_read_port(const struct option *option, const char *text, void *value,
                            GError **error)
{
    guint64 port;
    if (!g_ascii_string_to_unsigned(text, 10, 0, UINT16_MAX, &port, NULL))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'%s' is not valid, expected a port from 0 to 65535", text);
    ((struct address *)value)->port = (int32_t)port;
    return true;
}

/* clang-format off */
static const struct option rows[] = {
    {"listen", ADDRESS(scheduler, "127.0.0.1:39999"), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .alias = "PORT", .alias_help = "the port only, of all addresses", .read_alias = alias_read_port,
     .alias_base = "0.0.0.0:39999",
     .help = "Where kube-scheduler calls filter and bind: 0.0.0.0:39999 for one elsewhere. Port 0 takes any "
             "free one; the log says which."},
    {"ops-listen", ADDRESS(operations, "127.0.0.1:39998"),
     FOR(COMMAND_SERVE), .flags = OPTION_CAN_BE_OFF | OPTION_COMMON,
     .help = "Where probes, metrics and the views for people are served, or off."},
    {"admission", BOOL(admission, "false"), FOR(COMMAND_SERVE),
     .help = "Serve POST /admission/mig, a mutating admission webhook for pods that ask for "
             "gpuledger.io/mig-memory: they get the smallest MIG profile that is enough. The API "
             "server wants TLS; see manifests/overlays/admission."},
    {"max-connections", INT(max_connections, "N", "4096", 1, 65536), FOR(COMMAND_SERVE),
     .help = "Connections that --listen accepts at a time. Each costs a thread while it is open, "
             "and each bind that waits keeps one. Beyond that a newcomer takes the place of a "
             "connection that only waits: of a client that holds more than a quarter of all, else "
             "of one that never made a call, else of the one that waits longest."},
    {"max-body", SIZE(max_body, "64MiB", 1 << 16, 1 << 30), FOR(COMMAND_SERVE),
     .help = "The largest request that is read. 5,000 node names take 0.1 MiB, 5,000 whole nodes "
             "(nodeCacheCapable: false) about 40 MiB."},
    {"transfer-timeout", DURATION(transfer_timeout_ms, "30s", 100, 10 * MINUTE_MS),
     FOR(COMMAND_SERVE),
     .help = "How long a request may take to arrive, first byte to last, and its answer to be "
             "taken, on either listener. A TLS handshake has the same, at most 10s."},
    {"ops-token-file", PATH(operations_token_file, "FILE", ""), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "Ask callers of --ops-listen for the token in this file ('Authorization: Bearer "
             "TOKEN'), except for /healthz, /livez and /readyz, which without it name no reasons. It "
             "is read again when it changes; without the file, or a token in it, nobody is let "
             "in."},
    {"ops-hosts", LIST(operations_hosts, "NAME,...", "", item_list_names), FOR(COMMAND_SERVE),
     .help = "Without --ops-token-file, --ops-listen answers requests that name it by address, as "
             "localhost, or by one of these names. Any other name in Host may be that of a web page "
             "that has a browser read views."},
};
/* clang-format on */

static bool check(const struct settings *settings, GError **error)
{
    const struct listeners_settings *listeners = settings_of(settings, listeners);

    if (*listeners->operations_token_file && listeners->operations.port == ADDRESS_OFF)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'ops-token-file' is set, but 'ops-listen' is off; leave one of them out");
    if (listeners->scheduler.port > 0 && listeners->scheduler.port == listeners->operations.port &&
        strcmp(listeners->scheduler.host, listeners->operations.host) == 0) {
        g_autofree char *text = address_format(&listeners->scheduler);
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "'listen' and 'ops-listen' are both %s; give one of them another port",
                         text);
    }
    return true;
}

const struct section section_listeners = {
    .name = "listeners",
    .title = "Listening",
    ROWS(rows),
    .check = check,
};
