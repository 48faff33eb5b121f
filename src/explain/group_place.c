/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/group_place.h"

#include "base/printable.h"
#include "core/constraints.h"
#include "verbs/gang/gang_places.h"
#include "wire/pod_group.h"

static const enum reason reasons[] = {
    [GANG_UNKNOWN] = REASON_GANG_UNKNOWN, [GANG_FEW] = REASON_GANG_FEW,
    [GANG_BUSY] = REASON_GANG_BUSY,       [GANG_BACKOFF] = REASON_GANG_BACKOFF,
    [GANG_CAPPED] = REASON_GANG_CAPPED,   [GANG_SPENT] = REASON_GANG_WORK,
};

/* How many of the pods without a place would find one, the given one among them; and why no more. */
static uint32_t count_fitting(struct store *copy, const struct pod_view *pod,
                              const struct request *request, const char *const *uids,
                              int64_t timeout_ms, enum reason *ret_lack)
{
    const guint n = g_strv_length((char **)uids);
    g_autofree bool *taken = g_new0(bool, n + 1);
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    struct moment moment;
    const GPtrArray *nodes = ledger_nodes(store_decide(copy, &moment));
    uint32_t fit = 0;

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present && constraints_check(pod->constraints, node) == BARRIER_NONE)
            g_ptr_array_add(names, (gpointer)node->name);
    }
    struct gang_places_query query = {
        copy, &moment, pod, request, (const char *const *)names->pdata, names->len, timeout_ms};
    const bool cut = gang_places_take(&query, uids, n, taken) > GANG_WORK_MAX;
    *ret_lack = cut ? REASON_GANG_WORK : query.late ? REASON_GANG_PLUGIN : REASON_GANG_NO_ROOM;
    for (guint i = 0; i < n; i++)
        fit += taken[i];
    store_unlock(copy);
    return fit;
}

char *group_place_tell(enum reason reason, const char *lack)
{
    if (reason == REASON_NONE)
        return NULL;
    return g_strjoin(": ", reason_info(reason)->text, reason == REASON_GANG_UNKNOWN ? lack : NULL,
                     NULL);
}

struct group_place *group_place_find(struct store *store, struct store *copy,
                                     const struct pod_view *pod, const struct request *request)
{
    struct gang_row row;
    struct moment moment;

    if (!pod->uid)
        return NULL;
    store_decide(store, &moment);
    const enum gang_answer answer = gangs_judge(store_gangs(store), pod->uid, moment.now_ms);
    g_auto(GStrv) without =
        answer == GANG_NONE ? NULL : gangs_without(store_gangs(store), pod->uid);
    if (answer == GANG_NONE || !gangs_tell(store_gangs(store), pod->uid, &row)) {
        store_unlock(store);
        return NULL;
    }
    struct group_place *group = g_new(struct group_place, 1);
    *group = (struct group_place){
        .ns = g_strdup(row.ns),
        .name = g_strdup(row.name),
        .reason = answer == GANG_YES ? REASON_NONE : reasons[answer],
        .needs = row.min,
        .known = row.known,
        .held = row.held,
        .bound = row.bound,
        .half = row.half,
        .behind = row.behind,
        .says_least = row.says_least,
        .room_nodes = row.room_nodes,
        .room_for_s =
            row.room_nodes > 0 ? MAX(row.room_until_ms - moment.now_ms + 999, 0) / 1000 : 0,
        .fit = row.bound + row.held,
    };
    store_unlock(store);
    enum reason lack = REASON_GANG_NO_ROOM;
    if (request && copy)
        group->fit +=
            count_fitting(copy, pod, request, (const char *const *)without, row.timeout_ms, &lack);
    if (group->reason == REASON_NONE && group->fit < group->needs)
        group->reason = lack;
    g_autofree char *claim_lack = pod_group_claim_lack(pod);
    group->text = group_place_tell(group->reason, claim_lack);
    return group;
}

void group_place_free(struct group_place *group)
{
    if (!group)
        return;
    g_free(group->ns);
    g_free(group->name);
    g_free(group->text);
    g_free(group);
}

void group_place_encode(struct json_writer *writer, const struct group_place *group)
{
    json_key(writer, "group");
    if (!group) {
        json_null(writer);
        return;
    }
    json_begin_object(writer);
    json_key_string(writer, "name", group->name);
    json_key_string(writer, "reason",
                    group->reason == REASON_NONE ? NULL : reason_info(group->reason)->code);
    json_key_string(writer, "text", group->text);
    json_key_int(writer, "needs", group->needs);
    json_key_int(writer, "known", group->known);
    json_key_int(writer, "fit", group->fit);
    json_key_int(writer, "held", group->held);
    json_key_int(writer, "bound", group->bound);
    json_key_bool(writer, "half", group->half);
    json_key_int(writer, "behind", group->behind);
    json_key_int(writer, "saysLeast", group->says_least);
    json_key_int(writer, "roomNodes", group->room_nodes);
    json_key_int(writer, "roomForSeconds", group->room_for_s);
    json_end_object(writer);
}

void group_place_write(GString *text, const struct group_place *group)
{
    if (!group)
        return;
    printable_append(text, "\nGROUP       %s/%s", group->ns, group->name);
    if (group->needs > 0)
        printable_append(text, " needs %u pods together", group->needs);
    printable_append(text, ": %u known, %u fit, %u with a place, %u bound%s\n", group->known,
                     group->fit, group->held, group->bound, group->half ? "; it is half" : "");
    if (group->text)
        printable_append(text, "            %s\n", group->text);
    if (group->behind > 0)
        printable_append(text,
                         "            %u of its pods wait in bind: their nodes' GPU plugins serve "
                         "other pods\n",
                         group->behind);
    if (group->says_least > 0)
        printable_append(text,
                         "            Its pods say different numbers, from %u to %u: the largest "
                         "counts\n",
                         group->says_least, group->needs);
    if (group->room_nodes > 0)
        printable_append(
            text, "            %u nodes are kept for it, for %" G_GINT64_FORMAT " s at most\n",
            group->room_nodes, group->room_for_s);
    g_string_append(text,
                    "            kube-scheduler ends nobody to make room for it: it does not ask "
                    "extenders about groups\n");
}
