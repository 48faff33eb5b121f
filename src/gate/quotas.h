/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The gate of quotas, for what explains them and takes back what they lend. */
#include "gate/gate.h"
#include "quota/quotas.h"

extern const struct gate gate_quotas;

/* What the quotas of the pod leave it, also where the question leaves limits out; NULL: there is no limit. */
static inline const struct quota_room *quotas_gate_room(const struct gates *gates)
{
    return gates_left(gates, &gate_quotas);
}
