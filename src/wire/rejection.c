/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kubelet writes into the status of a pod that it rejects. Sources: pkg/kubelet/lifecycle
 * (predicate.go: "OutOf" and the resource), cm/devicemanager and cm/topologymanager, 1.20 to 1.36.
 */
#include "wire/rejection.h"

#include <string.h>

const char *const rejection_names[REJECTION_N] = {
    [REJECTION_ADMISSION] = "admission",
    [REJECTION_TOPOLOGY] = "topology",
    [REJECTION_RESOURCE] = "resource",
};

/* What gRPC says where nobody, or nobody who knows, has answered. */
static const char *const unanswered[] = {"Unavailable", "DeadlineExceeded", "Canceled",
                                         "Unimplemented"};

/* "Allocate failed due to rpc error: code = Unknown desc = ..., which is unexpected" */
static bool plugin_refused(const char *message)
{
    static const char start[] = "rpc error: code = ";
    const char *at = message ? strstr(message, start) : NULL;

    for (size_t i = 0; at && i < G_N_ELEMENTS(unanswered); i++) {
        if (g_str_has_prefix(at + strlen(start), unanswered[i]))
            return false;
    }
    return at;
}

bool rejection_read(const struct pod_view *pod, struct rejection *ret_rejection)
{
    static const struct {
        const char *reason;
        bool prefix;
        enum rejection_kind kind;
    } reasons[] = {
        {"UnexpectedAdmissionError", false, REJECTION_ADMISSION},
        {"TopologyAffinityError", false, REJECTION_TOPOLOGY},
        {"OutOf", true, REJECTION_RESOURCE},
    };

    if (g_strcmp0(pod->phase, "Failed") != 0 || !pod->status_reason)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++) {
        if (reasons[i].prefix ? !g_str_has_prefix(pod->status_reason, reasons[i].reason)
                              : !g_str_equal(pod->status_reason, reasons[i].reason))
            continue;
        *ret_rejection = (struct rejection){
            reasons[i].kind,
            reasons[i].kind == REJECTION_ADMISSION && plugin_refused(pod->status_message)};
        return true;
    }
    return false;
}
