/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/reclaim/reclaim_preview.h"

#include "base/printable.h"
#include "explain/reclaim/reclaim_ground.h"

#define NAMED_MAX 8 /* pods in the sentence; JSON has all */

/* As many pods without a place as the group lacks; NULL: it has too few. `ret_wait_ms`: until the pod has
 * waited for long enough. Free with g_strfreev. */
static char **list_pods(struct store *store, const char *uid, int64_t *ret_wait_ms)
{
    const char *const alone[] = {uid, NULL};
    const int64_t delay_ms = store_options(store)->reclaim_delay_ms;
    struct gang_row row;
    struct moment moment;
    char **uids = NULL;

    store_decide(store, &moment);
    const int64_t since_ms = store_waiting_since(store, uid);
    const bool grouped = gangs_judge(store_gangs(store), uid, moment.now_ms) != GANG_NONE &&
                         gangs_tell(store_gangs(store), uid, &row);
    if (grouped)
        uids = gangs_without(store_gangs(store), uid);
    store_unlock(store);
    *ret_wait_ms = since_ms == 0 ? delay_ms : MAX(since_ms + delay_ms - moment.now_ms, 0);
    if (!grouped)
        return g_strdupv((char **)alone);
    const guint have = row.bound + row.held, n = uids ? g_strv_length(uids) : 0;
    const guint lacks = row.min > have ? row.min - have : 1;
    for (guint i = lacks; i < n; i++)
        g_clear_pointer(&uids[i], g_free);
    if (n < lacks)
        g_clear_pointer(&uids, g_strfreev);
    return uids;
}

static struct reclaim_plan *make_plan(struct store *store, const struct reclaim_pod *asked,
                                      char *const *uids)
{
    const guint n = uids ? g_strv_length((char **)uids) : 1;
    g_autofree struct pod_view *views = g_new0(struct pod_view, n);
    g_autofree struct reclaim_pod *pods = g_new0(struct reclaim_pod, n);
    g_autoptr(reclaim_ground) ground = reclaim_ground_new(store, NULL, NULL);

    /* Placed in the meantime, or by its claim. */
    if (asked->view->uid && ledger_get(store_ledger(ground->copy), asked->view->uid))
        return NULL;
    pods[0] = *asked;
    for (guint i = 1; i < n; i++) {
        if (!reclaim_ground_pod(ground, uids[i], &views[i], &pods[i]))
            return NULL;
    }
    return reclaim_plan_make(ground, pods, n);
}

struct reclaim_preview *reclaim_preview_find(struct store *store, const struct pod_view *pod,
                                             const struct request *request)
{
    const struct reclaim_pod asked = {pod, request};
    g_auto(GStrv) uids = NULL;
    int64_t wait_ms = store_options(store)->reclaim_delay_ms;

    if (!store_options(store)->reclaim)
        return NULL;
    if (pod->uid && !(uids = list_pods(store, pod->uid, &wait_ms)))
        return NULL;
    struct reclaim_plan *plan = make_plan(store, &asked, uids);
    if (!plan)
        return NULL;
    struct reclaim_preview *preview = g_new(struct reclaim_preview, 1);
    *preview = (struct reclaim_preview){plan, wait_ms, uids ? g_strv_length(uids) : 1};
    return preview;
}

void reclaim_preview_free(struct reclaim_preview *preview)
{
    if (!preview)
        return;
    reclaim_plan_free(preview->plan);
    g_free(preview);
}

void reclaim_preview_encode(struct json_writer *writer, const struct reclaim_preview *preview)
{
    json_key(writer, "reclaim");
    if (!preview) {
        json_null(writer);
        return;
    }
    json_begin_object(writer);
    json_key_string(writer, "answer", reclaim_code(preview->plan->answer));
    json_key_string(writer, "text", reclaim_text(preview->plan->answer));
    json_key_int(writer, "waitsSeconds", (preview->wait_ms + 999) / 1000);
    json_key_int(writer, "podsTogether", preview->n_pods);
    json_key_array(writer, "pods");
    for (guint i = 0; i < preview->plan->ends->len; i++) {
        const struct reclaim_end *end = &g_array_index(preview->plan->ends, struct reclaim_end, i);
        json_begin_object(writer);
        json_key_string(writer, "namespace", end->ns);
        json_key_string(writer, "name", end->name);
        json_key_string(writer, "node", end->node);
        json_key_int(writer, "gpuThousandths", end->gpus);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

void reclaim_preview_write(GString *text, const struct reclaim_preview *preview)
{
    int64_t gpus = 0;

    if (!preview)
        return;
    const GArray *ends = preview->plan->ends;
    if (preview->plan->answer != RECLAIM_FOUND) {
        printable_append(text, "\nNobody gives back lent quota for it: %s.\n",
                         reclaim_text(preview->plan->answer));
        return;
    }
    for (guint i = 0; i < ends->len; i++)
        gpus += g_array_index(ends, struct reclaim_end, i).gpus;
    g_string_append(text, "\nIts namespace is within its quota's min. ");
    if (preview->wait_ms > 0)
        printable_append(text, "It waits %" G_GINT64_FORMAT " s, then %.10g cards",
                         (preview->wait_ms + 999) / 1000, (double)gpus / 1000);
    else
        printable_append(text, "%.10g cards", (double)gpus / 1000);
    printable_append(text, " are given back%s, by the end of ",
                     preview->n_pods > 1 ? " to its group" : "");
    for (guint i = 0; i < ends->len && i < NAMED_MAX; i++) {
        const struct reclaim_end *end = &g_array_index(ends, struct reclaim_end, i);
        printable_append(text, "%s%s/%s on %s", i ? ", " : "", end->ns, end->name, end->node);
    }
    if (ends->len > NAMED_MAX)
        printable_append(text, " and %u more", ends->len - NAMED_MAX);
    g_string_append(text, ".\n");
}
