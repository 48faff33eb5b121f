/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which MIG profile a container gets that asks for memory: kube-scheduler and kubelet know profiles by
 * name only, so it is chosen before the pod exists. The smallest that is enough and of which an
 * instance is free on some node, else the smallest that is enough: that one is waited for. A profile
 * is as large as its name says, 10gb being 10Gi: people write what they read.
 */
#include "app/extender.h"

/* POST /admission/mig: an AdmissionReview and its answer. Changes nothing. False: it cannot be answered,
 * and nothing is appended. */
bool extender_admit_mig(struct extender *extender, const char *body, size_t length, GString *reply,
                        GError **error);
