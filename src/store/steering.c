/* SPDX-License-Identifier: Apache-2.0 */
#include "store/steering.h"
#include "core/ledger.h"

static struct hint_about describe(const struct feasibility *question, const char *node,
                                  int64_t until_ms)
{
    return (struct hint_about){question->nominees.uid,      question->ns, node,
                               question->admission.request, until_ms,     false};
}

/* The pod will come there, after it was asked about. */
static void note_coming(const struct feasibility *question, const char *node, int64_t now_ms)
{
    struct hint_about about = describe(question, node, now_ms + HINT_LASTS_MS);

    if (question->late_ms > 0) {
        about.kept = true;
        about.until_ms = now_ms + question->late_ms;
        arrivals_note_kept(question->arrivals);
    }
    hints_note(question->hints, &about);
}

void steering_begin(struct steering *steering, struct feasibility *question, int64_t now_ms)
{
    *steering = (struct steering){.question = question, .now_ms = now_ms};
    hints_forget(question->hints, question->nominees.uid);
    const struct hint_about about = describe(question, NULL, now_ms + HINT_LASTS_MS);
    steering->hint = hints_note(question->hints, &about);
}

static void note_queue(struct steering *steering)
{
    const int32_t ahead = feasibility_ahead(steering->question);

    if (steering->n_at_once > 0)
        return;
    if (!steering->queues)
        steering->queues = g_array_new(FALSE, FALSE, sizeof ahead);
    g_array_append_val(steering->queues, ahead);
    steering->shortest = steering->queues->len == 1 ? ahead : MIN(steering->shortest, ahead);
}

static void note_at_once(struct steering *steering)
{
    steering->n_at_once++;
    g_clear_pointer(&steering->queues, g_array_unref);
}

enum reason steering_pass(struct steering *steering, const struct node *node, enum reason reason)
{
    if (node)
        hint_ask(steering->hint, steering->question->ledger, node_own(node)->place);
    if (reason != REASON_NONE)
        return reason;
    if (!feasibility_at_once(steering->question, NULL)) {
        if (steering->question->spoken_for)
            return REASON_SPOKEN_FOR;
        note_queue(steering);
        return REASON_OTHERS_COMING;
    }
    note_at_once(steering);
    return REASON_NONE;
}

void steering_recall(struct steering *steering, uint32_t place, enum reason reason)
{
    hint_ask(steering->hint, steering->question->ledger, place);
    if (reason == REASON_NONE)
        note_at_once(steering);
}

/* Whether the next of those that let the pod wait has one of the shortest queues. */
static bool is_shortest(const struct steering *steering, guint *index)
{
    return g_array_index(steering->queues, int32_t, (*index)++) == steering->shortest;
}

/* Of a single node that is left kube-scheduler does not ask how good it is. */
bool steering_end(struct steering *steering, const struct filter_args *args, enum reason *reasons)
{
    const char *left = NULL;
    guint n_waits = 0;
    size_t n = 0;

    for (size_t k = 0; k < args->n_names; k++) {
        const size_t i = steering->order ? steering->order[k] : k;
        if (reasons[i] == REASON_OTHERS_COMING && steering->queues &&
            is_shortest(steering, &n_waits))
            reasons[i] = REASON_NONE;
        if (reasons[i] != REASON_NONE)
            continue;
        left = args->names[i];
        n++;
    }
    g_clear_pointer(&steering->queues, g_array_unref);
    if (n == 1)
        steering_prefer(steering->question, left, steering->now_ms);
    else if (n == 0)
        hints_forget(steering->question->hints, steering->question->nominees.uid);
    return n > 0;
}

void steering_prefer(const struct feasibility *question, const char *node, int64_t now_ms)
{
    note_coming(question, node, now_ms);
}

/* NULL: there is none. */
static const struct node *find_other(struct feasibility *question, const struct hint *hint,
                                     const char *node)
{
    const GPtrArray *nodes = ledger_nodes(question->ledger);
    guint n_asked = 0;

    for (guint i = 0; i < nodes->len && n_asked < HINT_LOOKS_MAX; i++) {
        const struct node *other = nodes->pdata[i];
        if (!hint_has_asked(hint, node_own(other)->place) || g_str_equal(other->name, node))
            continue;
        n_asked++;
        if (feasibility_ask(question, other, NULL) == REASON_NONE && !question->waits &&
            feasibility_at_once(question, NULL))
            return other;
    }
    return NULL;
}

bool steering_turns(struct store *store, const struct feasibility_about *about, const char *node,
                    int64_t until_ms)
{
    struct hint *hint = hints_find(store_hints(store), about->pod->uid);
    const int64_t now_ms = about->moment->now_ms;
    const struct node *other = NULL;
    struct feasibility question;

    feasibility_init(&question, store, about);
    if (hint && now_ms >= hint->look_ms) {
        /* Whoever has waited may be nearly there. */
        if (hint->look_ms == 0 || !hints_end_soon(question.hints, node, now_ms))
            other = find_other(&question, hint, node);
        hint->look_ms = now_ms + HINT_LOOK_MS;
    }
    /* Others that wait are not sent there as well. */
    const struct hint_about coming = describe(&question, other ? other->name : node,
                                              other ? now_ms + HINT_LASTS_MS : until_ms);
    hints_note(question.hints, &coming)->waits = !other;
    feasibility_clear(&question);
    return other != NULL;
}
