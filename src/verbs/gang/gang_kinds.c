/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/gang/gang_kinds.h"

#include "queue/pod_rules.h"

#define WORK_LIKE 4 /* to compare a pod with a kind */

static bool read_member(const struct gang_kinds *kinds, const char *uid,
                        struct gang_member_view *ret_member)
{
    const struct gang_places_query *query = kinds->query;
    const bool asked = g_str_equal(uid, query->pod->uid);

    *ret_member = (struct gang_member_view){
        .uid = uid,
        .rules = asked ? NULL : store_rules(query->store, uid),
        .request = asked ? query->request : store_pending(query->store, uid),
        .pod = {.uid = uid,
                .ns = query->pod->ns,
                .name = query->pod->name,
                .priority =
                    asked ? query->pod->priority : store_pending_priority(query->store, uid)},
    };
    if (!asked && ret_member->rules) {
        ret_member->pod.name = ret_member->rules->name;
        ret_member->pod.constraints = ret_member->rules->constraints;
    }
    /* Of whom it cannot be read where it may go there is no saying that it has a place. */
    return ret_member->request && !ledger_get(store_ledger(query->store), uid) &&
           (asked || (ret_member->rules && ret_member->rules->constraints));
}

static void init_kind(const struct gang_kinds *kinds, const struct gang_member_view *member,
                      struct gang_kind *kind)
{
    kind->request = member->request;
    kind->constraints = member->pod.constraints;
    kind->priority = member->pod.priority;
    kind->values = member->rules ? (uint64_t)constraints_size(kind->constraints) : 0;
    for (uint32_t i = 0; i < member->request->n_asks; i++) {
        const struct card_ask *ask = &member->request->asks[i];
        kind->size += ask->count * (ask->exclusive ? CORE_WHOLE : MAX(ask->core, 1));
    }
    feasibility_init(&kind->question, kinds->query->store,
                     &(struct feasibility_about){.asker = GATE_BY_PLACES,
                                                 .pod = &member->pod,
                                                 .request = member->request,
                                                 .moment = kinds->query->moment,
                                                 .of_many = true});
}

static bool is_like(struct gang_kinds *kinds, const struct gang_member_view *member,
                    const struct gang_kind *kind)
{
    kinds->work += WORK_LIKE;
    if (!kind->constraints || kind->priority != member->pod.priority ||
        !request_equal(kind->request, member->request))
        return false;
    kinds->work += kind->values / VALUES_PER_NODE;
    return constraints_equal(kind->constraints, member->pod.constraints);
}

/* Sets the member's kind. False: there are too many. */
static bool find_kind(struct gang_kinds *kinds, struct gang_member_view *member)
{
    const bool asked = member->rules == NULL;

    for (size_t i = 0; !asked && i < kinds->n; i++) {
        member->kind = &kinds->all[i];
        if (is_like(kinds, member, member->kind))
            return true;
    }
    kinds->asked |= asked; /* a kind of its own, beside those that count */
    if (kinds->n >= GANG_KINDS_MAX + (size_t)kinds->asked)
        return false;
    member->kind = &kinds->all[kinds->n++];
    init_kind(kinds, member, member->kind);
    return true;
}

GArray *gang_kinds_sort(struct gang_kinds *kinds, const char *const *uids, size_t n)
{
    GArray *members = g_array_new(FALSE, FALSE, sizeof(struct gang_member_view));

    for (size_t i = 0; i < n && !gang_kinds_are_spent(kinds); i++) {
        struct gang_member_view member;
        if (!read_member(kinds, uids[i], &member) || !find_kind(kinds, &member))
            continue;
        member.at = i;
        member.kind->n++;
        g_array_append_val(members, member);
    }
    return members;
}

void gang_kinds_clear(struct gang_kinds *kinds)
{
    for (size_t i = 0; i < kinds->n; i++)
        feasibility_clear(&kinds->all[i].question);
}
