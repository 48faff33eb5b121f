/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gates: rules beside the cards that may keep a pod from a node. A gate is one folder or file and one row,
 * `const struct gate gate_NAME` with a line GATE_ROW(NAME, POSITION); the build makes the table of them, and gates are
 * asked in its order. The feasibility question (store/feasibility.h) asks the table for every verb and every reader, so
 * none of them names a rule.
 *
 * A gate reads the part (gate/part.h) that its row names, and the node. Hooks answer 0, no objection, or 1 and the
 * place of the reason in the gate's own list. A hook that is NULL has nothing to do. All hooks are called under the
 * lock of the store that the part is of, and none changes it.
 */
#include "gate/part.h"

#include <gpuledger/reason.h>

struct placement;
struct what_if;

#define GATE_ROW(name, position) extern const struct gate gate_##name
#define GATES_MAX 32 /* a bit each of a node's marks (ledger_mark) */

/* Which asks. simulate sends filter, prioritize and bind what kube-scheduler sends. */
enum gate_asker {
    GATE_BY_NOBODY, /* a question that has not said it; not allowed */
    GATE_BY_FILTER,
    GATE_BY_PRIORITIZE,
    GATE_BY_BIND,
    GATE_BY_WAKE,
    GATE_BY_PREEMPT,
    GATE_BY_PREVIEW, /* of what preempt would do */
    GATE_BY_EXPLAIN, /* its remedies and filter-dryrun included */
    GATE_BY_FIT,
    GATE_BY_RECLAIM,
    GATE_BY_PLACES, /* of a group's pods, and the nodes that are kept for one */
    GATE_BY_TRIAL, /* where a pod would come to on a copy: relocation, and what comes of an explanation */
    GATE_BY_ARRIVALS, /* for an older pod, to which a node may have to be left */
    GATE_ASKERS_N
};

/* A row says for each whether it asks the gate or why not. There is no default: with one missing it does not compile. */
#define ASKED NULL
#define GATE_LEFT_OUT(why) (why)
#define GATE_ASKERS(filter, prioritize, bind, wake, preempt, preview, explain, fit, reclaim,       \
                    places, trial, arrivals)                                                       \
    {"no asker", filter, prioritize, bind,   wake,  preempt, preview,                              \
     explain,    fit,    reclaim,    places, trial, arrivals}

/* Of a question, as the gates see it. */
struct gate_who {
    enum gate_asker asker;
    const struct pod_view *pod; /* NULL: of another pod than the call's */
    const char *uid, *ns;       /* never NULL; "": not known */
    int64_t priority;
    const struct request *request;
    int64_t now_ns, now_ms;
};

/* What of the store the parts do not have, for gates without one. */
struct gate_ground {
    struct ledger *ledger;
    const struct quotas *quotas;
    const struct gangs *gangs;
    const struct nominations *nominations;
};

enum gate_scope {
    GATE_MARKED, /* it may object on nodes with its mark (struct part_base), and where `concerns` says so */
    GATE_ALL,  /* on any */
    GATE_IDLE, /* on none, of this pod */
};

/* When `shut` is asked. */
enum gate_turn {
    GATE_BEFORE_CARDS,
    GATE_AFTER_CARDS, /* so that the cards' reason comes first */
    GATE_LAST,        /* after quotas and the order of arrival */
};

struct gate_reason {
    const char *code, *text; /* as in struct reason_info */
    bool resolvable;
};

/* Of a gate that limits amounts, which pods that terminate give back. */
struct gate_limit {
    /* What is left for the pod; NULL: there is no limit for it. Borrows the request. */
    void *(*measure)(const void *self, const struct gate_who *who);
    void (*free)(void *left);
    /* REASON_NONE: it suffices on the node, as the cards have placed the pod there; `placement` NULL: on its largest
     * cards. */
    enum reason (*refuse)(const void *left, const struct node *node,
                          const struct placement *placement);
    /* The allocation was made since; it may be the pod's. */
    void (*take)(void *left, struct allocation *taken);
    /* Stands for what the pod would count on the node, for another call; 0: for nothing. And the answer by it; false:
     * it is forgotten. */
    uint64_t (*number)(const void *left, const struct node *node,
                       const struct placement *placement);
    bool (*judge)(void *left, uint64_t number, enum reason *ret_reason);
    /* It does not suffice on the node: what pods there of a lower priority have to give back. NULL: all that they have
     * does not help. Borrows nothing. And whether enough of them have gone. */
    void *(*relieve)(const void *left, const struct node *node, int64_t priority);
    bool (*suffices)(const void *relief, const struct node *node);
    void (*free_relief)(void *relief);
    /* Pods of any namespace may give back what is left, not only those of the pod's own. */
    bool (*is_of_cluster)(const void *left);
};

struct gate {
    const char *name;
    const struct part *
        part; /* whose state the hooks get; if it is off, so is the gate. NULL: struct gate_ground */
    const struct gate_reason *reasons; /* ends with a row without code */
    enum gate_turn turn;
    /* Why it is not asked by each of them: GATE_ASKERS. Those that are left out find it silent. */
    const char *left_out[GATE_ASKERS_N];

    /* Once for a pod. NULL: GATE_MARKED. */
    enum gate_scope (*begin)(const void *self, const struct gate_who *who);
    /* Whether the gate may object on the node, by fields of it that change its version. */
    bool (*concerns)(const struct node *node);
    /* The node is closed to the pod, whatever pods on it terminate. Also asked for other pods than the call's. */
    unsigned (*shut)(const void *self, const struct gate_who *who, const struct node *node);
    /* After the cards have taken the pod: `seen` without what the pod may not use, to be asked again, and seen so
     * from then on. Where the cards refuse it then, the reason is the gate's first. NULL: it may use all.
     * `node` is as the ledger has it, `seen` with what earlier gates have changed. */
    struct what_if *(*narrow)(const void *self, const struct gate_who *who, const struct node *node,
                              const struct node *seen);
    const struct gate_limit *limit; /* asked after all `shut` but the last and `narrow`; or NULL */
    /* A sentence with names and numbers, for people. */
    void (*message)(const void *self, const struct gate_who *who, const struct node *node,
                    GString *text);
};

/* In order of position; ends with NULL. */
extern const struct gate *const gates_table[];

/* Makes the gates' reasons known to reason_info; the first call counts. */
void gates_register(void);

/* The number of the reason that a hook of the gate has answered, among those of reason_info. Also by code; REASON_NONE:
 * there is none. Any thread. */
enum reason gate_reason(const struct gate *gate, unsigned answer);
enum reason gate_reason_find(const char *code);
/* Whose reason it is, or NULL: the cards'. */
const struct gate *gate_of_reason(enum reason reason);

/* Its place in the table, which is its bit in marks. */
unsigned gate_bit(const struct gate *gate);
/* The bit of the first gate that reads the part; one that marks nodes has a part of its own. */
unsigned gate_bit_of(const struct part *part);

/* --- for one pod ---------------------------------------------------------------------------------- */

/* The gates that matter for one pod, a bit each. */
struct gates {
    const void *selves[GATES_MAX]; /* of their parts, in the order of the table */
    void *left[GATES_MAX];         /* of limits, whether or not they are asked */
    struct gate_who who;
    uint32_t all;       /* asked of every node */
    uint32_t marked;    /* asked of nodes with their mark */
    uint32_t by_fields; /* asked of nodes that concern them */
    uint32_t limits;    /* those that limit amounts, and are asked */
};

/* Borrows the parts, the ground, and the strings of `who`. `without_limits`: they are measured, and not asked. */
void gates_begin(struct gates *gates, const struct part_set *parts,
                 const struct gate_ground *ground, const struct gate_who *who, bool without_limits);
void gates_end(struct gates *gates);

/* Which have to be asked of the node, which is of a ledger, or NULL. */
uint32_t gates_of(const struct gates *gates, const struct node *node);

/* The first objection of those in `todo` whose turn it is. */
enum reason gates_shut(const struct gates *gates, uint32_t todo, const struct node *node,
                       enum gate_turn turn);
/* The first one of all of them to another pod, as if it asked. */
enum reason gates_shut_out(const struct gates *gates, const struct gate_who *other,
                           const struct node *node);

/* The next one in `todo`, which loses its bit, that narrows the node; `ret_gate` says which. NULL: there is none. */
struct what_if *gates_narrow(const struct gates *gates, uint32_t *todo, const struct node *node,
                             const struct node *seen, const struct gate **ret_gate);

/* What limits say, as gate_limit's `refuse`. */
enum reason gates_refuse(const struct gates *gates, const struct node *node,
                         const struct placement *placement);
/* What is left by that gate's limit; NULL: there is none. */
const void *gates_left(const struct gates *gates, const struct gate *gate);
/* The allocation was made since gates_begin. */
void gates_take(struct gates *gates, struct allocation *taken);
/* As those of gate_limit. */
uint64_t gates_number(const struct gates *gates, const struct node *node,
                      const struct placement *placement);
bool gates_judge(struct gates *gates, uint64_t number, enum reason *ret_reason);
/* Whether room may have come since then, by ledger_freed, on nodes where nothing has changed. */
bool gates_freed(const struct gates *gates, const struct ledger *ledger, uint64_t since);

/* What limits lack on a node, for pods there to give back: gate_limit's. The first reason for which none of them
 * helps; REASON_NONE: `ret_relief` is it, NULL if nothing is lacking. */
struct gates_relief;
enum reason gates_relieve(const struct gates *gates, const struct node *node,
                          const struct node *seen, struct gates_relief **ret_relief);
bool gates_suffice(const struct gates_relief *relief, const struct node *node); /* NULL: true */
void gates_relief_free(struct gates_relief *relief); /* NULL is ignored */

/* For who asks what would be if pods on the node terminated: the first objection that stays, else REASON_NONE; then
 * `ret_left` is the node, as it is seen, without what the pod may not use, or NULL: it may use all. */
enum reason gates_open(const struct gates *gates, const struct node *node, const struct node *seen,
                       struct what_if **ret_left);

/* A sentence about a reason that is a gate's; false: it has none. */
bool gates_message(const struct gates *gates, enum reason reason, const struct node *node,
                   GString *text);
