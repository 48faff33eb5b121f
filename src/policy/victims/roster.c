/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims/roster.h"

#include "policy/victims/may_end.h"

#include <stdlib.h>
#include <string.h>

/* --- kinds ---------------------------------------------------------------------------------- */

/* Kinds that are found again: the latest with a hash. Who has another one is of a new kind. */
#define FOUND_AGAIN 512

static bool holds_one_share(const struct allocation *allocation)
{
    const struct share *share = &allocation->shares[0];

    return allocation->n_shares == 1 && !share->device && !share->init && share->place.size == 0 &&
           !allocation->waiting;
}

static bool hold_same(const struct allocation *one, const struct allocation *other)
{
    const struct share *its = &one->shares[0], *others = &other->shares[0];

    return its->card == others->card && its->key == others->key && its->core == others->core &&
           its->exclusive == others->exclusive && its->memory.value == others->memory.value &&
           its->memory.kind == others->memory.kind && its->dialect == others->dialect &&
           one->dialect == other->dialect && one->work_class == other->work_class &&
           one->oversubscribes == other->oversubscribes && one->distrust == other->distrust;
}

static bool is_of_kind(const struct seat_kind *kind, const struct allocation *allocation)
{
    return hold_same(kind->example, allocation) && kind->facts == allocation->facts &&
           host_equal(&kind->host, &allocation->host);
}

bool seat_kinds_hold_same(const struct seat_kind *one, const struct seat_kind *other)
{
    return one->alike && other->alike && hold_same(one->example, other->example);
}

static uint32_t hash_kind(const struct allocation *allocation)
{
    const struct share *share = &allocation->shares[0];
    const uint64_t parts[] = {(uint64_t)share->card, (uint64_t)share->memory.value,
                              (uint64_t)share->core, (uint64_t)allocation->host.cpu,
                              (uint64_t)(uintptr_t)allocation->facts};
    uint64_t hash = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        hash = (hash ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) % FOUND_AGAIN;
}

static void find_kinds(struct roster *roster)
{
    uint32_t latest[FOUND_AGAIN] = {0}; /* counted from 1 */

    for (uint32_t i = 0; i < roster->n; i++) {
        struct seat *seat = &roster->seats[i];
        const bool alike = holds_one_share(seat->allocation);
        uint32_t *known = alike ? &latest[hash_kind(seat->allocation)] : NULL;
        if (known && *known > 0 && is_of_kind(&roster->kinds[*known - 1], seat->allocation)) {
            seat->kind = *known - 1;
            roster->kinds[seat->kind].n++;
            continue;
        }
        seat->kind = roster->n_kinds++;
        roster->kinds[seat->kind] = (struct seat_kind){seat->allocation, seat->allocation->facts,
                                                       seat->allocation->host, 1, alike};
        if (known)
            *known = seat->kind + 1;
    }
    roster->kinds = g_renew(struct seat_kind, roster->kinds, MAX(roster->n_kinds, 1));
}

/* --- seats ---------------------------------------------------------------------------------- */

int64_t allocation_start(const struct allocation *allocation)
{
    return allocation->started_s > 0 ? allocation->started_s : INT64_MAX;
}

int seat_compare_age(const struct seat *one, const struct seat *other)
{
    if (one->started_s != other->started_s)
        return one->started_s < other->started_s ? -1 : 1;
    return (one->created_s > other->created_s) - (one->created_s < other->created_s);
}

static int compare_seats(const void *a, const void *b)
{
    const struct seat *one = a, *other = b;

    if (one->terminating != other->terminating)
        return other->terminating ? -1 : 1;
    if (one->order != other->order)
        return one->order > other->order ? -1 : 1;
    if (one->priority != other->priority)
        return one->priority > other->priority ? -1 : 1;
    const int age = seat_compare_age(one, other);
    return age != 0 ? age : strcmp(one->allocation->uid, other->allocation->uid);
}

static int16_t only_card(const struct allocation *allocation)
{
    const struct share *share = &allocation->shares[0];

    return allocation->n_shares == 1 && !share->device ? (int16_t)share->card : SEVERAL_CARDS;
}

static struct seat make_seat(struct allocation *allocation, guint place)
{
    return (struct seat){
        .allocation = allocation,
        .priority = allocation->priority,
        .created_s = allocation->created_s,
        .started_s = allocation_start(allocation),
        .order =
            (int8_t)(allocation->work_class ? allocation->work_class->victims : VICTIMS_NORMAL),
        .card = only_card(allocation),
        .place = place,
        .uid_hash = g_str_hash(allocation->uid),
        .terminating = allocation->terminating,
        .confirmed = allocation->state == ALLOCATION_CONFIRMED,
        .unit = allocation->facts && allocation->facts->ties & POD_TIE_UNIT,
        .stays = allocation->facts && may_end_not(ENDER_PREEMPTION, false, allocation->facts->ties),
    };
}

/* Who is chosen is named, one after the other. */
static void copy_uids(struct roster *roster)
{
    size_t size = 0;

    for (uint32_t i = 0; i < roster->n; i++)
        size += strlen(roster->seats[i].allocation->uid) + 1;
    char *at = roster->uids = g_malloc(MAX(size, 1));
    for (uint32_t i = 0; i < roster->n; i++) {
        roster->seats[i].uid = at;
        at = g_stpcpy(at, roster->seats[i].allocation->uid) + 1;
    }
}

struct roster *roster_new(const struct what_if *what_if)
{
    const GPtrArray *all = what_if->node->allocations;
    struct roster *roster = g_new0(struct roster, 1);

    roster->n = all->len;
    roster->seats = g_new(struct seat, MAX(all->len, 1));
    roster->kinds = g_new(struct seat_kind, MAX(all->len, 1));
    for (guint i = 0; i < all->len; i++)
        roster->seats[i] = make_seat(all->pdata[i], i);
    qsort(roster->seats, roster->n, sizeof *roster->seats, compare_seats);
    find_kinds(roster);
    copy_uids(roster);
    return roster;
}

void roster_free(struct roster *roster)
{
    if (!roster)
        return;
    g_free(roster->seats);
    g_free(roster->kinds);
    g_free(roster->uids);
    g_free(roster);
}

int64_t roster_amount(const struct roster *roster, const char *resource)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < roster->n_kinds; i++) {
        const struct seat_kind *kind = &roster->kinds[i];
        if (!kind->facts)
            return INT64_MAX;
        sum += kind->n * pod_facts_amount(kind->facts, resource);
    }
    return sum;
}
