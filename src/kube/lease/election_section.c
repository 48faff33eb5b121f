/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease/election_section.h"

#include "core/section/rows.h"

#define SETTINGS struct election_settings

/* clang-format off */
static const struct option rows[] = {
    {"leader-elect", BOOL(on, "false"), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "Serve only while holding a Lease, so that several replicas may run: one answers "
             "kube-scheduler, the others follow the cluster and stand by. Needs the verbs get, "
             "create and update on leases of the group coordination.k8s.io."},
    {"lease-name", TEXT(lease, "NAME", "gpuledger"), FOR(COMMAND_SERVE),
     .help = "The Lease. All that book cards of one cluster must share it."},
    {"lease-namespace", NAMESPACE(ns, "kube-system"),
     FOR(COMMAND_SERVE),
     .help = "Where it is."},
    {"lease-duration", DURATION(duration_ms, "15s", 3000, 10 * MINUTE_MS),
     FOR(COMMAND_SERVE),
     .help = "For how long the others wait for a holder that does not renew it, in whole seconds. "
             "The holder itself stops binding when it could not renew it for two thirds of this."},
    {"lease-identity", TEXT(identity, "NAME", ""), FOR(COMMAND_SERVE),
     .help = "The holder's name in the Lease, to which every replica adds something random of its "
             "own, so that replicas may share one. Without it: the host's name, which is a pod's."},
    {"pod-name", TEXT(pod_name, "NAME", ""), FOR(COMMAND_SERVE), .flags = OPTION_COMMON,
     .help = "The pod that this runs in, in the Lease's namespace: while it serves it has the "
             "label gpuledger.io/holder=true, for a Service to select. Needs the verb patch on "
             "pods. Without it the Service has to go by readiness alone. A single replica, without a "
             "Lease, knows by it whether its successor is there: from then on it binds nothing."},
};
/* clang-format on */

const struct section section_election = {
    .name = "election",
    .title = "Several replicas",
    ROWS(rows),
};
