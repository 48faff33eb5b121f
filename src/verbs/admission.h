/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which MIG profile a container gets that asks for memory: kube-scheduler and kubelet know profiles by
 * name only, so it is chosen before the pod exists, for all its containers together
 * (verbs/instances.h).
 */
#include "verbs/extender.h"

/* POST /admission/mig: an AdmissionReview and its answer. Changes nothing. False: it cannot be answered,
 * and nothing is appended. */
bool extender_admit_mig(struct extender *extender, const char *body, size_t length, GString *reply,
                        GError **error);
