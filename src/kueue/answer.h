/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is said of a Workload, and how: the message, and the bodies of server-side applies to the status of
 * Workloads and AdmissionChecks. Sentences name no other tenant's pods. Pure.
 */
#include "kueue/workload.h"

#include "base/metrics.h"
#include "explain/fit.h"

#define ANSWER_MESSAGE_MAX 1024 /* bytes */
#define ANSWER_RETRY_S 5        /* the first pause; it doubles */
#define ANSWER_RETRY_MAX_S 60
#define ANSWER_UNREADABLE_S 300 /* of what only a change of the Workload can help */

struct answer {
    enum kueue_result result; /* KUEUE_RESULT_READY, _NO_GPU, _RETRY or _UNREADABLE */
    char *message;            /* free with g_free */
};

/* Takes the message, and cuts it: a part of it may be a tenant's. */
struct answer answer_of(enum kueue_result result, char *take_message);

bool answer_lets_in(const struct answer *answer);

/* "pod set 'main': 2 of 4 pods (…) fit; …". */
char *answer_refusal(const char *pod_set, const struct fit *fit, int64_t promised);

/* For how long Kueue leaves it alone, by how often it has been sent back; 0: it is let in. */
int64_t answer_pause_s(const struct answer *answer, int64_t retries);

/* The answer for all checks of the Workload that `is_ours` names; those that are not Pending stay as they
 * are, since what is not applied again is taken away. */
struct told_workload {
    const struct workload_view *workload;
    const struct answer *answer;
    bool (*is_ours)(const char *check, void *data);
    void *data;
    int64_t now_s;
};
void answer_encode(struct json_writer *writer, const struct told_workload *told);

/* The condition Active, as it should be of one of our AdmissionChecks; false: it is so. */
bool check_condition_encode(struct json_writer *writer, const struct check_view *check,
                            int64_t now_s);
