/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger holds, pod by pod, as records have it. */
#include "store/booking.h"
#include "record/record.h"
#include "wire/share.h"

static void collect(struct allocation *allocation, void *data)
{
    g_ptr_array_add(data, allocation);
}

static gint compare_uids(gconstpointer a, gconstpointer b)
{
    return g_strcmp0((*(const struct allocation *const *)a)->uid,
                     (*(const struct allocation *const *)b)->uid);
}

static void encode(struct json_writer *writer, const struct allocation *allocation,
                   const struct elastic_quotas *quotas)
{
    const char *quota = quotas ? elastic_quotas_choice(quotas, allocation->uid) : NULL;

    json_begin_object(writer);
    json_key_string(writer, "uid", allocation->uid);
    json_key_string(writer, "node", allocation->node->name);
    if (allocation->dialect)
        json_key_string(writer, "dialect", allocation->dialect->name);
    json_key_int(writer, "state", allocation->state);
    json_key_int(writer, "amount", allocation->match_amount);
    if (allocation->work_class)
        json_key_string(writer, "class", allocation->work_class->name);
    if (quotas)
        json_key_string(writer, "quota", quota ? quota : "");
    if (allocation->waiting)
        json_key_bool(writer, "waiting", true);
    json_key_array(writer, "shares");
    for (uint32_t i = 0; i < allocation->n_shares; i++)
        share_encode(writer, &allocation->shares[i]);
    json_end_array(writer);
    json_end_object(writer);
}

/* By UID, so that it does not depend on what came first. */
static void encode_all(struct json_writer *writer, GPtrArray *allocations,
                       const struct elastic_quotas *quotas)
{
    g_ptr_array_sort(allocations, compare_uids);
    json_key_array(writer, "pods");
    for (guint i = 0; i < allocations->len; i++)
        encode(writer, allocations->pdata[i], quotas);
    json_end_array(writer);
}

void record_ledger_encode(struct json_writer *writer, const struct ledger *ledger,
                          const struct elastic_quotas *quotas)
{
    g_autoptr(GPtrArray) allocations = g_ptr_array_new();

    ledger_each(ledger, collect, allocations);
    json_begin_object(writer);
    encode_all(writer, allocations, quotas);
    json_end_object(writer);
}

void record_node_encode(struct json_writer *writer, const struct node *node,
                        const struct elastic_quotas *quotas)
{
    g_autoptr(GPtrArray) allocations = g_ptr_array_copy(node->allocations, NULL, NULL);

    json_begin_object(writer);
    json_key_string(writer, "node", node->name);
    encode_all(writer, allocations, quotas);
    json_end_object(writer);
}
