/* SPDX-License-Identifier: Apache-2.0 */
#include "store/shortfall.h"

#include "core/node_traits.h"

#include <gpuledger/dialect.h>

static int64_t lack(int64_t all, int64_t used, int64_t asked)
{
    return all > 0 ? MAX(asked - (all - used), 0) : INT64_MAX;
}

static int64_t measure(const struct node *node, const struct roster *roster,
                       const struct pod_facts_amount *asked)
{
    const int64_t used = roster_amount(roster, asked->resource);

    return used == INT64_MAX
               ? used
               : lack(node_traits_amount(node->traits, asked->resource), used, asked->thousandths);
}

void shortfall_measure(const struct node *node, const struct roster *roster,
                       const struct request *request, const struct pod_facts *asked,
                       int64_t ret_lacks[VICTIM_AMOUNTS_MAX])
{
    const struct host *host = &node->host, *used = &node->host_used;
    const struct host *own = &request->host;

    if (own->cpu > 0)
        *ret_lacks++ = lack(host->cpu, used->cpu, own->cpu);
    if (own->memory > 0)
        *ret_lacks++ = lack(host->memory, used->memory, own->memory);
    for (uint32_t i = 0; asked && i < asked->n_amounts; i++) {
        /* Of pods without GPUs only CPU and memory are kept. */
        const bool known = node->n_cpu_pods == 0 ||
                           dialect_reads(request->dialect, asked->amounts[i].resource);
        *ret_lacks++ = known ? measure(node, roster, &asked->amounts[i]) : INT64_MAX;
    }
    /* As many as are named are not owed where nobody says how many pods the node takes. */
    *ret_lacks = host->pods > 0 ? lack(host->pods, used->pods, own->pods) : 0;
}
