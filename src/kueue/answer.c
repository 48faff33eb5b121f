/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/answer.h"

#include "core/constraints.h"
#include "store/amounts.h"

#include <gpuledger/reason.h>
#include <string.h>

#define PENDING "Pending"
#define READY "Ready"
#define RETRY "Retry"
#define REASONS_MAX 4 /* told of in one sentence */

/* Cut so that no character is. */
struct answer answer_of(enum kueue_result result, char *take_message)
{
    char *text = g_utf8_make_valid(take_message, -1);

    g_free(take_message);
    if (strlen(text) > ANSWER_MESSAGE_MAX)
        *g_utf8_find_prev_char(text, text + ANSWER_MESSAGE_MAX + 1) = '\0';
    return (struct answer){result, text};
}

bool answer_lets_in(const struct answer *answer)
{
    return answer->result == KUEUE_RESULT_READY || answer->result == KUEUE_RESULT_NO_GPU;
}

/* --- sentences ------------------------------------------------------------------------------ */

/* The card that is closest to taking the pod, by what it lacks. */
static const struct explained_card *closest_card(const struct explained_node *node)
{
    const struct explained_card *best = NULL;

    for (guint i = 0; node->cards && i < node->cards->len; i++) {
        const struct explained_card *card = &g_array_index(node->cards, struct explained_card, i);
        if (card->reason == node->reason &&
            (!best || card->memory_free > best->memory_free ||
             (card->memory_free == best->memory_free && card->core_free > best->core_free)))
            best = card;
    }
    return best;
}

static void tell_card(GString *text, const struct explained_node *node)
{
    const struct explained_card *card = closest_card(node);

    g_string_append_printf(text, " (%s", node->name);
    if (card &&
        (node->reason == REASON_INSUFFICIENT_MEMORY || node->reason == REASON_CARD_TOO_SMALL)) {
        g_autofree char *wants = bytes_text(card->memory_wants);
        g_autofree char *left = bytes_text(card->memory_free);
        g_autofree char *all = bytes_text(card->memory);
        g_string_append_printf(text, ", card %d: wants %s, %s free of %s", card->index, wants, left,
                               all);
    } else if (card && node->reason == REASON_INSUFFICIENT_CORE) {
        g_string_append_printf(text, ", card %d: wants %g%% of the compute, %g%% free", card->index,
                               card->core_wants / 10.0, card->core_free / 10.0);
    }
    g_string_append_c(text, ')');
}

/* "; of 3 nodes 2 insufficient_memory (gpu-1, card 0: …), 1 taint (gpu-2)". */
static void tell_rest(GString *text, const struct explanation *rest)
{
    if (rest->groups->len == 0) {
        g_string_append(text, "; no node shares GPUs");
        return;
    }
    g_string_append_printf(text, "; one more: of %u nodes", rest->n_nodes);
    for (guint i = 0; i < rest->groups->len && i < REASONS_MAX; i++) {
        const struct explained_group *group =
            &g_array_index(rest->groups, struct explained_group, i);
        const struct explained_node *closest =
            &g_array_index(rest->nodes, struct explained_node, group->closest);
        g_string_append_printf(text, "%s%u %s", i > 0 ? ", " : " ", group->n,
                               group->reason == REASON_NONE ? barrier_code(group->barrier)
                                                            : reason_info(group->reason)->code);
        tell_card(text, closest);
    }
    if (rest->groups->len > REASONS_MAX)
        g_string_append(text, ", others for other reasons");
}

char *answer_refusal(const char *pod_set, const struct fit *fit, int64_t promised)
{
    GString *text = g_string_new(NULL);
    g_autofree char *overlooked = overlooked_tell(fit->overlooked);

    g_string_append_printf(
        text, "pod set '%s': %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " pods (%s) fit", pod_set,
        fit->fitting, fit->wanted, fit->asks);
    if (promised > 0)
        g_string_append_printf(
            text, " beside %" G_GINT64_FORMAT " pod%s of Workloads that were let in before",
            promised, promised == 1 ? "" : "s");
    if (fit->rest)
        tell_rest(text, fit->rest);
    if (overlooked)
        g_string_append_printf(text, "; not looked at: %s", overlooked);
    return g_string_free(text, FALSE);
}

/* --- workloads ------------------------------------------------------------------------------ */

static const char *state_of(const struct answer *answer)
{
    return answer_lets_in(answer) ? READY : RETRY;
}

int64_t answer_pause_s(const struct answer *answer, int64_t retries)
{
    if (answer_lets_in(answer))
        return 0;
    if (answer->result == KUEUE_RESULT_UNREADABLE)
        return ANSWER_UNREADABLE_S;
    return MIN((int64_t)ANSWER_RETRY_S << CLAMP(retries, 0, 10), ANSWER_RETRY_MAX_S);
}

/* Free with g_free. */
static char *time_text(int64_t now_s)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(now_s);

    return time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ") : g_strdup("1970-01-01T00:00:00Z");
}

static void write_check(struct json_writer *writer, const struct told_workload *told,
                        const struct workload_check *check)
{
    const bool pending = g_str_equal(check->state, PENDING);
    const int64_t pause_s =
        pending ? answer_pause_s(told->answer, check->retries) : check->requeue_s;
    g_autofree char *now = time_text(told->now_s);

    json_begin_object(writer);
    json_key_string(writer, "name", check->name);
    json_key_string(writer, "state", pending ? state_of(told->answer) : check->state);
    json_key_string(writer, "message",
                    pending          ? told->answer->message
                    : check->message ? check->message
                                     : "");
    json_key_string(writer, "lastTransitionTime", pending || !check->since ? now : check->since);
    if (pause_s > 0)
        json_key_int(writer, "requeueAfterSeconds", pause_s);
    json_end_object(writer);
}

static void begin_body(struct json_writer *writer, const char *kind)
{
    json_begin_object(writer);
    json_key_string(writer, "apiVersion", KUEUE_API);
    json_key_string(writer, "kind", kind);
    json_key_object(writer, "metadata");
}

void answer_encode(struct json_writer *writer, const struct told_workload *told)
{
    const struct workload_view *workload = told->workload;

    begin_body(writer, "Workload");
    json_key_string(writer, "namespace", workload->ns);
    json_key_string(writer, "name", workload->name);
    json_key_string(writer, "uid", workload->uid);
    json_key_string(writer, "resourceVersion", workload->version);
    json_end_object(writer);
    json_key_object(writer, "status");
    json_key_array(writer, "admissionChecks");
    for (size_t i = 0; i < workload->n_checks; i++) {
        if (told->is_ours(workload->checks[i].name, told->data))
            write_check(writer, told, &workload->checks[i]);
    }
    json_end_array(writer);
    json_end_object(writer);
    json_end_object(writer);
}

/* --- admission checks ----------------------------------------------------------------------- */

bool check_condition_encode(struct json_writer *writer, const struct check_view *check,
                            int64_t now_s)
{
    const bool bad = check->parameters || check->unreadable;
    const char *status = bad ? "False" : "True";
    const char *reason = check->unreadable   ? "Unreadable"
                         : check->parameters ? "ParametersUnknown"
                                             : "Active";
    const char *message = check->unreadable ? check->unreadable
                          : check->parameters
                              ? "spec.parameters: this check has none; leave them out"
                              : "Workloads are answered by the cards of the cluster";
    /* What stands there is not known then: the same text again is no change to the API server. */
    const bool turned = !check->unreadable && g_strcmp0(check->status, status) != 0;
    g_autofree char *now = time_text(now_s);

    if (!turned && g_strcmp0(check->reason, reason) == 0 &&
        g_strcmp0(check->message, message) == 0 && check->observed == check->generation)
        return false;
    begin_body(writer, "AdmissionCheck");
    json_key_string(writer, "name", check->name);
    json_end_object(writer);
    json_key_object(writer, "status");
    json_key_array(writer, "conditions");
    json_begin_object(writer);
    json_key_string(writer, "type", "Active");
    json_key_string(writer, "status", status);
    json_key_string(writer, "reason", reason);
    json_key_string(writer, "message", message);
    json_key_int(writer, "observedGeneration", check->generation);
    json_key_string(writer, "lastTransitionTime", turned || !check->since ? now : check->since);
    json_end_object(writer);
    json_end_array(writer);
    json_end_object(writer);
    json_end_object(writer);
    return true;
}
