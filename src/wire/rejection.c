/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kubelet writes into the status of a pod that it rejects. Sources: pkg/kubelet/lifecycle
 * (predicate.go: "OutOf" and the resource), cm/devicemanager (manager.go: devicesToAllocate),
 * cm/cpumanager (policy_static.go), cm/memorymanager and cm/topologymanager, 1.20 to 1.36.
 */
#include "wire/rejection.h"

#include <gpuledger/dialect.h>
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
    static const char start[] = "rpc error: ", code[] = "code = ";
    const char *at = message ? strstr(message, start) : NULL;
    const char *word = at ? strstr(at, code) : NULL;

    for (size_t i = 0; word && i < G_N_ELEMENTS(unanswered); i++) {
        if (g_str_has_prefix(word + strlen(code), unanswered[i]))
            return false;
    }
    return at;
}

static bool is_of_gpus(const char *resource)
{
    for (size_t i = 0; dialects[i]; i++) {
        if (dialect_reads(dialects[i], resource))
            return true;
    }
    return false;
}

/* What kubelet writes before the resource whose plugin had no devices to give. */
static const char *const before_resource[] = {
    "cannot allocate unhealthy devices ",
    "requested number of devices unavailable for ",
};
/* What its managers of CPU and memory write. */
static const char *const of_host[] = {"not enough cpus available", "[memorymanager]"};

/* Another resource's failure than a GPU's. An error by gRPC does not say whose it is. */
static bool is_of_others(const char *message)
{
    for (size_t i = 0; message && i < G_N_ELEMENTS(of_host); i++) {
        if (strstr(message, of_host[i]))
            return true;
    }
    for (size_t i = 0; message && i < G_N_ELEMENTS(before_resource); i++) {
        const char *at = strstr(message, before_resource[i]);
        if (!at)
            continue;
        at += strlen(before_resource[i]);
        g_autofree char *resource = g_strndup(at, strcspn(at, ", "));
        if (g_str_has_suffix(resource, "."))
            resource[strlen(resource) - 1] = '\0';
        return !is_of_gpus(resource);
    }
    return false;
}

bool rejection_read(const struct pod_view *pod, struct rejection *ret_rejection)
{
    static const char out_of[] = "OutOf";
    const char *reason = pod->status_reason, *message = pod->status_message;

    if (g_strcmp0(pod->phase, "Failed") != 0 || !reason)
        return false;
    if (g_str_equal(reason, "UnexpectedAdmissionError") && !is_of_others(message))
        *ret_rejection = (struct rejection){REJECTION_ADMISSION, plugin_refused(message)};
    else if (g_str_equal(reason, "TopologyAffinityError"))
        *ret_rejection = (struct rejection){REJECTION_TOPOLOGY, false};
    else if (g_str_has_prefix(reason, out_of) && is_of_gpus(reason + strlen(out_of)))
        *ret_rejection = (struct rejection){REJECTION_RESOURCE, false};
    else
        return false;
    return true;
}
