/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/machine.h"

#include "dialect/marks/node_marks.h"

#include <string.h>

#define STATE_MAX 256
/* A value that no configuration has: mig-manager looks for it, fails, and touches nothing. */
#define NO_VALUE "gpuledger-tries-again"
#define NO_LABEL "-" /* in gpuledger.io/switched: there was no label */

const char *const switch_phases[SWITCH_PHASES] = {"none",  "draining", "setting", "other",
                                                  "again", "back",     "stuck"};

/* --- words --------------------------------------------------------------------------------------- */

bool switch_state_parse(const char *text, struct switch_state *ret_state)
{
    struct switch_state state = {.phase = SWITCH_PHASES};
    const char *at = strchr(text, '@'), *slash = strrchr(text, '/');

    if (strnlen(text, STATE_MAX) == STATE_MAX || !at || !slash || slash < at ||
        (slash[1] && !switch_value_is_valid(slash + 1)))
        return false;
    for (unsigned i = SWITCH_DRAINING; i < SWITCH_PHASES; i++) {
        if (strlen(switch_phases[i]) == (size_t)(at - text) &&
            g_str_has_prefix(text, switch_phases[i]))
            state.phase = (enum switch_phase)i;
    }
    g_autofree char *time = g_strndup(at + 1, (gsize)(slash - at - 1));
    if (state.phase == SWITCH_PHASES || !switch_time_parse(time, &state.since_s))
        return false;
    g_strlcpy(state.from, slash + 1, sizeof state.from);
    *ret_state = state;
    return true;
}

char *switch_state_format(const struct switch_state *state)
{
    g_autofree char *time = switch_time_format(state->since_s);

    return g_strdup_printf("%s@%s/%s", switch_phases[state->phase], time, state->from);
}

void switch_step_clear(struct switch_step *step)
{
    g_free(step->mark.text);
    g_free(step->state.text);
    g_free(step->done.text);
    g_free(step->label.text);
    *step = (struct switch_step){0};
}

/* --- one look ------------------------------------------------------------------------------------ */

struct look {
    const struct switch_sight *sight;
    struct switch_step *step;
    bool announced;
    struct switch_mark mark;
    struct switch_state state;
    const char *current; /* the label's value, or NULL */
};

static const char *annotation(const struct look *look, const char *key)
{
    return string_pairs_get(&look->sight->node->annotations, key);
}

static bool is_tainted(const struct node_view *node)
{
    for (size_t i = 0; i < node->n_taints; i++) {
        if (g_strcmp0(node->taints[i].key, SWITCH_TAINT) == 0 &&
            g_strcmp0(node->taints[i].effect, "NoSchedule") == 0)
            return true;
    }
    return false;
}

static void begin_write(struct look *look, enum switch_event event)
{
    look->step->writes = true;
    look->step->event = event;
    look->step->taint = true;
}

static void set(struct switch_word *word, char *take_text)
{
    *word = (struct switch_word){true, take_text};
}

/* What the value makes of cards is not there yet; NULL: it is. */
static const char *lacks(const struct look *look, const char *value)
{
    const struct switch_sight *sight = look->sight;
    struct mode_value wanted;

    if (!calendar_value(sight->calendar, look->step->mode, value, sight->replicas, &wanted))
        return "nobody knows what the value makes of cards";
    if (switch_mode_is_slots(look->step->mode))
        return NULL;
    return nvidia_mode_lacks(look->step->mode, sight->node, &wanted);
}

static void enter(struct look *look, enum switch_phase phase, const char *from)
{
    struct switch_state state = {phase, look->sight->now_s, ""};

    g_strlcpy(state.from, from ? from : "", sizeof state.from);
    set(&look->step->state, switch_state_format(&state));
}

/* The label gets this value; NULL: it goes. */
static void set_label(struct look *look, const char *value)
{
    set(&look->step->label, g_strdup(value));
    look->step->clears_state = true;
}

/* The node is nobody's business any more; `value` is what it has been left with. */
static void leave(struct look *look, enum switch_event event, const char *value)
{
    struct switch_mark done = look->mark;

    begin_write(look, event);
    look->step->taint = false;
    set(&look->step->mark, NULL);
    set(&look->step->state, NULL);
    if (!look->step->mode)
        return;
    g_strlcpy(done.label, look->step->mode->label, sizeof done.label);
    g_strlcpy(done.value, value && *value ? value : NO_LABEL, sizeof done.value);
    done.at_s = look->sight->now_s;
    set(&look->step->done, switch_mark_format(&done));
}

const char switch_uncounted[] =
    "gpuledger chooses no cards there, so it can bound the holders of none";

/* Of slots: the value is there, and the node as before in all else. */
static void settle(struct look *look)
{
    set_label(look, look->mark.value);
    leave(look, SWITCH_EVENT_DONE, look->mark.value);
}

/* --- before -------------------------------------------------------------------------------------- */

static void announce(struct look *look, const char *value, int64_t at_s)
{
    struct switch_mark mark = {.at_s = at_s};

    g_strlcpy(mark.label, look->step->mode->label, sizeof mark.label);
    g_strlcpy(mark.value, value, sizeof mark.value);
    begin_write(look, SWITCH_EVENT_ANNOUNCED);
    look->step->taint = is_tainted(look->sight->node);
    set(&look->step->mark, switch_mark_format(&mark));
}

/* Whether something was brought about, or tried, since then. */
static bool is_tried_since(const struct look *look, int64_t since_s)
{
    const char *text = annotation(look, SWITCH_DONE_KEY);
    struct switch_mark done;

    return text && switch_mark_parse(text, &done) && done.at_s >= since_s;
}

/* What the calendar wants the node to become, and when. */
struct due {
    const char *target; /* NULL: no switch is near */
    int64_t at_s;
    bool begun; /* its window has */
};

static bool is_auto(const char *target)
{
    return g_str_equal(target, CALENDAR_AUTO);
}

/* The window that begins next, in time; or the one that has begun while nobody looked, with the same
 * notice, if it lasts for longer. */
static struct due find_due(const struct look *look, const struct calendar_answer *answer)
{
    const struct switch_sight *sight = look->sight;
    const char *current = switch_mode_value(answer->mode, sight->node);
    const int64_t ready_s = sight->now_s + sight->limits.notice_s;

    if (answer->now && g_strcmp0(answer->now, current) != 0 &&
        !is_tried_since(look, answer->since_s) && ready_s < answer->until_s &&
        (!answer->next || ready_s < answer->next_s))
        return (struct due){answer->now, ready_s, true};
    if (answer->next && g_strcmp0(answer->next, current) != 0 && answer->next_s <= ready_s)
        return (struct due){answer->next, answer->next_s, false};
    return (struct due){NULL};
}

/* The node is what its window wants: nothing is looked for again before the next one. */
static void keep(struct look *look)
{
    const char *current = switch_mode_value(look->step->mode, look->sight->node);

    leave(look, SWITCH_EVENT_KEPT, current);
    look->step->taint = is_tainted(look->sight->node);
}

static void follow_advice(struct look *look, const struct due *due)
{
    const struct switch_advice *advice = look->sight->advice;

    if (!advice)
        look->step->waits = "an extender chooses its layout";
    else if (!advice->stays && !advice->value)
        look->step->waits = "which layout serves most is not known";
    else if (!advice->stays)
        announce(look, advice->value, due->at_s);
    else if (due->begun)
        keep(look);
    else
        look->step->waits = "no other layout serves more, so far";
}

static void ask_calendar(struct look *look)
{
    const struct switch_sight *sight = look->sight;
    struct calendar_answer answer;

    if (!sight->calendar ||
        !calendar_ask(sight->calendar, &sight->node->labels, sight->now_s, &answer))
        return;
    look->step->mode = answer.mode;
    look->step->waits = "no switch is near";
    if (answer.mode->recuts && nvidia_is_vgpu_guest(sight->node)) {
        look->step->waits = "it is a vGPU guest, which nobody can cut";
        return;
    }
    if (switch_mode_is_slots(answer.mode) && !sight->counts_cards) {
        look->step->waits = switch_uncounted;
        return;
    }
    const struct due due = find_due(look, &answer);
    if (due.target && is_auto(due.target))
        follow_advice(look, &due);
    else if (due.target)
        announce(look, due.target, due.at_s);
}

/* While nobody looked, another window has begun that wants something else. */
static bool is_outdated(const struct look *look)
{
    const struct switch_sight *sight = look->sight;
    struct calendar_answer answer;

    return sight->calendar &&
           calendar_ask(sight->calendar, &sight->node->labels, sight->now_s, &answer) &&
           answer.mode == look->step->mode && answer.now && answer.since_s > look->mark.at_s &&
           !g_str_equal(answer.now, look->mark.value);
}

/* Why it cannot be brought about, whoever ends; NULL: it can. */
static const char *impossible(const struct look *look)
{
    if (look->step->mode->recuts && nvidia_is_vgpu_guest(look->sight->node))
        return "it is a vGPU guest, which nobody can cut";
    if (!switch_mode_is_slots(look->step->mode))
        return NULL;
    return look->sight->counts_cards ? lacks(look, look->mark.value) : switch_uncounted;
}

/* The time has come. */
static void begin(struct look *look)
{
    const bool there = g_strcmp0(look->current, look->mark.value) == 0;

    if (is_outdated(look)) {
        begin_write(look, SWITCH_EVENT_WITHDRAWN);
        look->step->taint = is_tainted(look->sight->node);
        set(&look->step->mark, NULL);
    } else if (there && !lacks(look, look->mark.value)) {
        leave(look, SWITCH_EVENT_DONE, look->mark.value);
    } else if (impossible(look)) {
        look->step->waits = impossible(look);
        leave(look, SWITCH_EVENT_GIVEN_UP, look->current);
    } else if (switch_mode_is_slots(look->step->mode) &&
               !node_slots_shrink(look->current, look->mark.value)) {
        settle(look);
    } else {
        begin_write(look, SWITCH_EVENT_BEGUN);
        enter(look, SWITCH_DRAINING, look->current);
    }
}

/* --- under way ----------------------------------------------------------------------------------- */

static int64_t elapsed(const struct look *look)
{
    return look->sight->now_s - look->state.since_s;
}

static bool is_busy(const struct look *look)
{
    return look->step->mode->state &&
           nvidia_mode_state(look->step->mode, look->sight->node) == MODE_STATE_BUSY;
}

/* Something that was not this node's when it was seen: the old value comes back, if it is not there. */
static void go_back(struct look *look)
{
    begin_write(look, SWITCH_EVENT_ROLLED_BACK);
    set_label(look, *look->state.from ? look->state.from : NULL);
    enter(look, SWITCH_BACK, look->state.from);
}

/* Another value, of which mig-manager makes nothing new. */
static void try_again(struct look *look)
{
    const bool other = *look->state.from && !g_str_equal(look->state.from, look->mark.value);

    begin_write(look, SWITCH_EVENT_RETRIED);
    set_label(look, other ? look->state.from : NO_VALUE);
    enter(look, SWITCH_OTHER, look->state.from);
}

static void set_value(struct look *look, enum switch_phase phase)
{
    begin_write(look, SWITCH_EVENT_SET);
    set_label(look, look->mark.value);
    enter(look, phase, look->state.from);
}

static void drain(struct look *look)
{
    const bool late = elapsed(look) > look->sight->limits.drain_s;

    look->step->drains = look->sight->n_holders > 0 && !late;
    if (look->sight->n_holders > 0)
        look->step->waits = "pods with GPUs have yet to end, or may be on their way";
    else if (is_busy(look))
        look->step->waits = "mig-manager is at something else";
    else if (switch_mode_is_slots(look->step->mode))
        settle(look);
    else if (g_strcmp0(look->current, look->mark.value) == 0)
        try_again(look); /* as it has that value already, nobody acts on it */
    else
        set_value(look, SWITCH_SETTING);
    if (look->step->waits && late)
        leave(look, SWITCH_EVENT_GIVEN_UP, look->current);
}

/* Until the node agrees; `again`: it is the last try. */
static void await(struct look *look, bool again)
{
    const bool late = elapsed(look) > look->sight->limits.deadline_s;
    const bool retriggers = look->step->mode->state && !again;
    const bool failed = look->step->mode->state &&
                        nvidia_mode_state(look->step->mode, look->sight->node) == MODE_STATE_FAILED;

    look->step->waits = lacks(look, look->mark.value);
    if (!look->step->waits)
        leave(look, SWITCH_EVENT_DONE, look->mark.value);
    else if ((late || failed) && retriggers)
        try_again(look);
    else if (late || failed)
        go_back(look);
}

/* Until mig-manager has seen the other value, or will not. */
static void await_other(struct look *look)
{
    const enum mode_state state = nvidia_mode_state(look->step->mode, look->sight->node);

    if (state == MODE_STATE_DONE || state == MODE_STATE_FAILED ||
        elapsed(look) > look->sight->limits.deadline_s / 4)
        set_value(look, SWITCH_AGAIN);
    else
        look->step->waits = "mig-manager has yet to see that the label has changed";
}

static void await_old(struct look *look)
{
    const char *why = *look->state.from ? lacks(look, look->state.from) : NULL;

    look->step->stuck = true;
    look->step->waits = why ? why : "it is rolled back; somebody has to look";
    if (!why || elapsed(look) > look->sight->limits.deadline_s) {
        begin_write(look, SWITCH_EVENT_NONE);
        enter(look, SWITCH_STUCK, look->state.from);
    }
}

/* Somebody else has changed the label: nothing is known of what he wants. */
static bool is_meddled(const struct look *look)
{
    const enum switch_phase phase = look->state.phase;
    const char *old = *look->state.from ? look->state.from : NULL;

    if (phase == SWITCH_SETTING || phase == SWITCH_AGAIN)
        return g_strcmp0(look->current, look->mark.value) != 0;
    if (phase == SWITCH_DRAINING || phase == SWITCH_BACK)
        return g_strcmp0(look->current, old) != 0;
    return phase == SWITCH_OTHER && g_strcmp0(look->current, old) != 0 &&
           g_strcmp0(look->current, NO_VALUE) != 0;
}

static void go_on(struct look *look)
{
    if (is_meddled(look)) {
        look->step->stuck = true;
        look->step->waits = "somebody else has changed the label";
        begin_write(look, SWITCH_EVENT_NONE);
        enter(look, SWITCH_STUCK, look->state.from);
        return;
    }
    switch (look->state.phase) {
    case SWITCH_DRAINING:
        drain(look);
        break;
    case SWITCH_SETTING:
        await(look, false);
        break;
    case SWITCH_OTHER:
        await_other(look);
        break;
    case SWITCH_AGAIN:
        await(look, true);
        break;
    case SWITCH_BACK:
        await_old(look);
        break;
    case SWITCH_STUCK:
        look->step->stuck = true;
        look->step->waits = "it is rolled back; somebody has to look";
        break;
    case SWITCH_NONE:
    case SWITCH_PHASES:
        break;
    }
    /* Somebody has taken the taint away while others might come. */
    if (!look->step->writes && look->state.phase != SWITCH_STUCK && !is_tainted(look->sight->node))
        begin_write(look, SWITCH_EVENT_NONE);
}

/* The announcement has been taken away while it was under way: the node is given back once all is of one
 * mind. */
static void give_back(struct look *look)
{
    for (size_t i = 0; i < NVIDIA_MODES_N && look->state.phase != SWITCH_DRAINING; i++) {
        const char *value = string_pairs_get(&look->sight->node->labels, nvidia_modes[i].label);
        struct mode_value known;
        if (!value || !calendar_value(look->sight->calendar, &nvidia_modes[i], value,
                                      look->sight->replicas, &known))
            continue;
        const char *why = nvidia_mode_lacks(&nvidia_modes[i], look->sight->node, &known);
        look->step->waits = look->step->waits ? look->step->waits : why;
    }
    look->step->stuck = look->step->waits != NULL;
    if (!look->step->waits)
        leave(look, SWITCH_EVENT_WITHDRAWN, NULL);
}

/* --- the whole ----------------------------------------------------------------------------------- */

bool switch_wants_advice(const struct switch_sight *sight)
{
    const struct look look = {.sight = sight};
    struct calendar_answer answer;

    if (!sight->calendar || annotation(&look, SWITCH_KEY) || annotation(&look, SWITCH_STATE_KEY) ||
        !calendar_ask(sight->calendar, &sight->node->labels, sight->now_s, &answer) ||
        nvidia_is_vgpu_guest(sight->node))
        return false;
    const struct due due = find_due(&look, &answer);
    return due.target && is_auto(due.target);
}

void switch_step_find(const struct switch_sight *sight, struct switch_step *ret_step)
{
    struct look look = {.sight = sight, .step = ret_step};

    *ret_step = (struct switch_step){0};
    const char *mark = annotation(&look, SWITCH_KEY);
    const char *state = annotation(&look, SWITCH_STATE_KEY);
    look.announced = mark && switch_mark_parse(mark, &look.mark);
    if ((mark && !look.announced) || (state && !switch_state_parse(state, &look.state))) {
        ret_step->stuck = true;
        ret_step->waits = "its annotation cannot be read";
        return;
    }
    ret_step->phase = look.state.phase;
    /* The clock was set back: so long nobody was waited for. */
    look.state.since_s = MIN(look.state.since_s, sight->now_s);
    if (!mark && !state) {
        ask_calendar(&look);
        if (!ret_step->writes && is_tainted(sight->node)) {
            ret_step->stuck = true;
            ret_step->waits = "nothing says any more why it has the taint " SWITCH_TAINT
                              "; somebody has to look, and take it away";
        }
        return;
    }
    if (!mark) {
        give_back(&look);
        return;
    }
    ret_step->mode = switch_mode_find(look.mark.label);
    if (!ret_step->mode || !g_str_equal(ret_step->mode->label, look.mark.label)) {
        ret_step->mode = NULL;
        ret_step->stuck = true;
        ret_step->waits = "nobody knows the label that is to be changed";
        return;
    }
    look.current = switch_mode_value(ret_step->mode, sight->node);
    if (look.current && *look.current && !switch_value_is_valid(look.current)) {
        ret_step->stuck =
            true; /* no API server lets it be; what was there could not be noted down */
        ret_step->waits = "its label has a value that no label can have";
        return;
    }
    if (state)
        go_on(&look);
    else if (sight->now_s >= look.mark.at_s)
        begin(&look);
    else
        ret_step->waits = "its time has not come";
}
