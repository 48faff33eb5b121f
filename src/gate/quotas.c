/* SPDX-License-Identifier: Apache-2.0 */
/* What quotas of all kinds (quota/quotas.h) leave a pod of. */
#include "gate/quotas.h"

#include "quota/quota_relief.h"

GATE_ROW(quotas, 80);

static void *measure(const void *self, const struct gate_who *who)
{
    const struct gate_ground *ground = self;

    return quotas_room(ground->quotas, ground->ledger, who->pod, who->request);
}

static void free_left(void *left)
{
    quota_room_free(left);
}

static enum reason refuse(const void *left, const struct node *node,
                          const struct placement *placement)
{
    return quota_room_refuse(left, node, placement);
}

static void take(void *left, struct allocation *taken)
{
    quota_room_take(left, taken);
}

static uint64_t number(const void *left, const struct node *node, const struct placement *placement)
{
    return quota_room_number(left, node, placement);
}

static bool judge(void *left, uint64_t number, enum reason *ret_reason)
{
    return quota_room_judge(left, number, ret_reason);
}

static void *relieve(const void *left, const struct node *node, int64_t priority)
{
    return quota_relief_new(left, node, priority);
}

static bool suffices(const void *relief, const struct node *node)
{
    return quota_relief_suffices(relief, node);
}

static void free_relief(void *relief)
{
    quota_relief_free(relief);
}

static bool is_of_cluster(const void *left)
{
    return quota_room_elastic(left) != NULL;
}

static const struct gate_limit limit = {
    .measure = measure,
    .free = free_left,
    .refuse = refuse,
    .take = take,
    .number = number,
    .judge = judge,
    .relieve = relieve,
    .suffices = suffices,
    .free_relief = free_relief,
    .is_of_cluster = is_of_cluster,
};

const struct gate gate_quotas = {
    .name = "quotas",
    .left_out =
        GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                    GATE_LEFT_OUT("places of older pods are chosen within their quotas")),
    .limit = &limit,
};
