/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/fit_group.h"

#include "explain/group_place.h"
#include "json/json.h"
#include "verbs/gang/gang_places.h"
#include "wire/pod_group.h"

struct fit_group *fit_group_new(struct store *store, const struct pod_view *pod)
{
    const struct pod_group_claim claim = pod_group_claim(pod);
    struct gang_row row = {.min = claim.min, .timeout_ms = claim.timeout_ms};

    if (!claim.name)
        return NULL;
    store_lock(store);
    const bool wanted = store_options(store)->gangs;
    if (wanted)
        gangs_tell_claimed(store_gangs(store), pod->ns ? pod->ns : "", &claim, &row);
    store_unlock(store);
    if (row.min == 0)
        row.min = claim.min;
    if (!wanted || row.whole || row.min == 1)
        return NULL;
    struct fit_group *group = g_new0(struct fit_group, 1);
    group->name = g_strdup(claim.name);
    group->lack = pod_group_claim_lack(pod);
    group->needs = row.min;
    group->timeout_ms = row.timeout_ms;
    group->there = row.there;
    group->uids = g_ptr_array_new_with_free_func(g_free);
    return group;
}

void fit_group_free(struct fit_group *group)
{
    if (!group)
        return;
    g_free(group->name);
    g_free(group->lack);
    g_ptr_array_unref(group->uids);
    g_free(group);
}

int64_t fit_group_lacks(const struct fit_group *group)
{
    return group->needs > group->there ? group->needs - group->there : 1;
}

void fit_group_await(struct fit_group *group, struct store *copy, const struct pod_view *pod,
                     int64_t n)
{
    for (int64_t i = 0; i < n && i < GANG_MEMBERS_MAX; i++) {
        char *uid = g_strdup_printf("fit-%" G_GINT64_FORMAT, i);
        struct pod_view view = *pod;
        view.uid = uid;
        view.node_name = NULL;
        store_apply_pod(copy, &view);
        g_ptr_array_add(group->uids, uid);
    }
}

bool fit_group_place(struct fit_group *group, struct store *copy, const struct pod_view *pod)
{
    g_autoptr(GPtrArray) without = g_ptr_array_new();
    const struct moment moment = {.now_ns = g_get_real_time() * 1000,
                                  .now_ms = g_get_monotonic_time() / 1000};
    struct pod_view nobody = *pod; /* each is looked at as it waits */
    uint32_t placed = 0;

    nobody.uid = "";
    for (guint i = 0; i < group->uids->len; i++) {
        if (!ledger_get(store_ledger(copy), group->uids->pdata[i]))
            g_ptr_array_add(without, group->uids->pdata[i]);
    }
    g_autofree bool *taken = g_new0(bool, without->len + 1);
    struct gang_places_query query = {
        .store = copy, .moment = &moment, .pod = &nobody, .timeout_ms = group->timeout_ms};
    group->cut = gang_places_take(&query, (const char *const *)without->pdata, without->len,
                                  taken) > GANG_WORK_MAX;
    group->late = query.late;
    for (guint i = 0; i < without->len; i++)
        placed += taken[i];
    group->fit += placed;
    return placed > 0;
}

enum reason fit_group_reason(const struct fit_group *group)
{
    if (group->needs == 0)
        return REASON_GANG_UNKNOWN;
    if (group->needs > GANG_MEMBERS_MAX)
        return REASON_GANG_CAPPED;
    if (group->there + group->uids->len < group->needs)
        return REASON_GANG_FEW;
    if (group->there + group->fit >= group->needs)
        return REASON_NONE;
    if (group->cut)
        return REASON_GANG_WORK;
    return group->late ? REASON_GANG_PLUGIN : REASON_GANG_NO_ROOM;
}

char *fit_group_tell(const struct fit_group *group)
{
    return group_place_tell(fit_group_reason(group), group->lack);
}

void fit_group_encode(struct json_writer *writer, const struct fit_group *group)
{
    if (!group) {
        json_null(writer);
        return;
    }
    const enum reason reason = fit_group_reason(group);
    g_autofree char *why = fit_group_tell(group);
    json_begin_object(writer);
    json_key_string(writer, "name", group->name);
    json_key_int(writer, "needs", group->needs);
    json_key_int(writer, "there", group->there);
    json_key_bool(writer, "comes", reason == REASON_NONE);
    json_key_string(writer, "reason", reason == REASON_NONE ? NULL : reason_info(reason)->code);
    json_key_string(writer, "text", why);
    json_end_object(writer);
}
