/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The gate of quotas, for what explains them, takes back what they lend, and preempts. */
#include "gate/gate.h"
#include "quota/elastic/sparing.h"
#include "quota/quotas.h"

extern const struct gate gate_quotas;

/* What the quotas of the pod leave it, also where the question leaves limits out; NULL: there is no limit. */
static inline const struct quota_room *quotas_gate_room(const struct gates *gates)
{
    return gates_left(gates, &gate_quotas);
}

/* Which pods do not end for the pod because quotas guarantee what they hold; NULL: no pod. Until the question ends. */
static inline struct elastic_sparing *quotas_gate_sparing(const struct gates *gates,
                                                          struct ledger *ledger)
{
    const struct quota_room *room = quotas_gate_room(gates);

    return room ? elastic_sparing_new(quota_room_elastic(room), ledger) : NULL;
}
