/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is to be done next with a node that is switched: a function of the calendar, the time, and what
 * the API server shows of the node. Nothing else is remembered, so whoever takes over goes on from there.
 *
 *   announced   gpuledger.io/switch says what and when; the ledger admits nobody who outlasts it
 *   draining    the time has come: the taint is there, and pods with GPUs are evicted. If some of them
 *               outlast that, the switch is given up: nothing was changed, and the node is as before
 *   setting     nobody is there any more: the label has the new value; until plugin, kubelet and labels
 *               are of one mind about it the node gives nothing
 *   other,      mig-manager has failed, or not answered in time: the label has another value for a while,
 *   again       and then the new one again, since it acts on changes alone
 *   back        it did not come about in time: the label has the old value again
 *   stuck       the same, and all that can be done is done: the taint stays until somebody looks
 *
 * How many holders a card takes (mode.h) is set at the end of "draining", in the same step that gives the node
 * back; and if they become more, at once, since nobody has to end.
 *
 * A taint without any annotation is nobody's: somebody has to look.
 *
 * done: taint and annotations go, and gpuledger.io/switched says what and when. Each phase but the last
 * ends in time. Pure.
 */
#include "base/metrics.h"
#include "switch/calendar.h"
#include "wire/switch_mark.h"

#define SWITCH_DONE_KEY "gpuledger.io/switched"
#define SWITCH_TAINT "gpuledger.io/switching"

enum switch_phase {
    SWITCH_NONE,
    SWITCH_DRAINING,
    SWITCH_SETTING,
    SWITCH_OTHER,
    SWITCH_AGAIN,
    SWITCH_BACK,
    SWITCH_STUCK,
    SWITCH_PHASES,
};
extern const char *const switch_phases[SWITCH_PHASES]; /* "none", "draining", … */

/* What the annotation gpuledger.io/switch-state says: PHASE@TIME/OLD. */
struct switch_state {
    enum switch_phase phase;
    int64_t since_s;
    char from[SWITCH_VALUE_MAX + 1]; /* what the label was before; "": there was none */
};
bool switch_state_parse(const char *text, struct switch_state *ret_state);
char *switch_state_format(const struct switch_state *state); /* free with g_free */

/* What "auto" means for the node, by whoever can tell. */
struct switch_advice {
    bool stays;  /* nothing serves more than what the node is cut into */
    char *value; /* else what does; NULL: that is not known */
};

struct switch_sight {
    int64_t now_s;
    const struct node_view *node;
    const struct calendar *calendar; /* NULL: none */
    const char *replicas; /* as --nvidia-config-replicas; asked where there is no calendar */
    struct switch_limits limits;
    guint
        n_holders; /* pods there that have a GPU, or are on their way; of slots, those that have to go */
    bool counts_cards; /* who is on which card is known, since gpuledger chooses it */
    const struct switch_advice *advice; /* NULL: nobody was asked */
};

/* Why slots of a node cannot be switched, if they cannot. */
extern const char switch_uncounted[];

/* Whether the next step depends on that. */
bool switch_wants_advice(const struct switch_sight *sight);

/* What the node is to be. Of a member that is not `set` nothing changes. */
struct switch_word {
    bool set;
    char *text; /* NULL: it goes */
};

struct switch_step {
    enum switch_event event;
    bool writes; /* these, at once: */
    struct switch_word mark, state, done;
    struct switch_word label; /* of `mode` */
    bool clears_state;        /* the node side's own label goes, so that it is known to be new */
    bool taint;               /* whether it is there afterwards */

    const struct node_mode *mode; /* NULL: nothing is switched, or nobody knows the label */
    enum switch_phase phase;      /* in which it is, before the step */
    bool drains;                  /* pods with GPUs are to go */
    bool stuck;                   /* somebody has to look */
    const char *waits;            /* what for, a constant; NULL: for nothing */
};

void switch_step_find(const struct switch_sight *sight, struct switch_step *ret_step);
void switch_step_clear(struct switch_step *step);
