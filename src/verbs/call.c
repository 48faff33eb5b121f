/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/call.h"
#include "base/longest.h"

#include <gpuledger/error.h>

void call_begin(struct call *call, struct extender *extender, enum verb verb)
{
    const int64_t now_us = g_get_monotonic_time();

    *call = (struct call){
        .extender = extender, .verb = verb, .start_us = now_us, .since_us = now_us};
}

void call_phase(struct call *call, enum phase phase)
{
    const int64_t now_us = g_get_monotonic_time();

    metrics_observe(call->verb, phase, now_us - call->since_us);
    call->since_us = now_us;
}

bool call_check_ready(const struct call *call, GError **error)
{
    const struct extender *extender = call->extender;

    if (leadership_term(extender->leadership) == 0) {
        leadership_set_error(error);
        return false;
    }
    return store_check_synced(extender->store, error);
}

bool call_read(struct call *call, struct json_arena *arena, const char *body, size_t length,
               GError **error)
{
    const struct pod_view *pod = &call->args.pod;

    call->body = body;
    call->length = length;
    if (!call_check_ready(call, error) ||
        !filter_args_parse(arena, body, length, &call->args, error))
        return false;
    if (pod->uid && *pod->uid)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "field 'Pod.metadata.uid' is missing: the ledger knows pods by their UID");
    return false;
}

void call_end(struct call *call, const GString *reply, const GError *failure)
{
    if (g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID) ||
        g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE) ||
        g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT))
        metrics_count(COUNTER_REQUESTS_BAD, call->verb);
    observer_tell(store_observer(call->extender->store),
                  &(struct observation){OBSERVED_CALL, call->moment.number, .call = call,
                                        .reply = reply});
    call_phase(call, PHASE_ENCODE);
    metrics_observe(call->verb, PHASE_TOTAL, call->since_us - call->start_us);
    longest_note(call->verb, call->since_us - call->start_us, call->since_us);
}
