/* SPDX-License-Identifier: Apache-2.0 */
#include "options/certs_section.h"

#include "core/section/rows.h"
#include "http/authority.h"

#define SETTINGS struct certs_settings
#define CERTS FOR(COMMAND_CERTS), .flags = OPTION_FLAG_ONLY

/* clang-format off */
static const struct option rows[] = {
    {"folder", PATH(folder, "FOLDER", "gpuledger-tls"), CERTS,
     .help = "Where all of it is kept for the next time, readable by its owner only. The key of the "
             "CA is nowhere else: whoever has it may bind pods. With --folder= nothing is kept, and "
             "the next time makes another CA."},
    {"namespace", NAMESPACE(ns, "kube-system"), CERTS,
     .help = "Where the extender and its Services are."},
    {"clients", LIST(clients, "NAME,...", "kube-scheduler", item_list_names), CERTS,
     .help = "Who gets a certificate to call --listen with, each in a Secret gpuledger-NAME of its "
             "own. Name the same ones in --tls-client-names of serve."},
    {"hosts", LIST(hosts, "HOST,...", "", item_list_names), CERTS,
     .help = "By which further names or addresses the extender is called, beside those of its "
             "Services and of this machine."},
    {"days", INT(days, "N", "365", 1, AUTHORITY_DAYS), CERTS,
     .help = "How long new certificates are good. Those of which a third of the time is left are "
             "kept. The CA lasts ten years."},
    {"renew", BOOL(renew, "false"), CERTS,
     .help = "Make certificates and token anew although they are good; the CA stays."},
};
/* clang-format on */

const struct section section_certs = {
    .name = "certs",
    .title = "Making certificates",
    ROWS(rows),
};
