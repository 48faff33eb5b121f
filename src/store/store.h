/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger and the pods that wait, behind the program's one mutex. Fed by lists and watches,
 * read and changed by the verbs. No function here does I/O; none keeps the lock after returning,
 * but for the lock/unlock pair that the verbs use.
 *
 * Rules for what a feed says (they make replay equal to incremental):
 *  - a pod with a node, not terminal, of some dialect: it holds what its containers ask for, on the
 *    cards that it was bound to. Those are our booking's, or, of a pod that is new to us, those that
 *    its annotations name. What these say later does not move it (dialect_continue);
 *  - of a pod without a node what it asks for now is what counts, nothing if that cannot be read;
 *  - a pod without a node never releases a reservation: the event may be older than the Binding. A list
 *    is not older than what was confirmed before it began, unless the API server was set back to a
 *    backup: then a GET decides;
 *  - a deleted or terminal pod releases everything, whatever its state;
 *  - after a full list, what the list did not name goes, but for allocations that the watch has
 *    not confirmed yet: those are settled by asking the API server about the pod.
 */
#include "queue/arrivals/arrivals.h"
#include "queue/budgets.h"
#include "queue/clearings.h"
#include "gang/gangs.h"
#include "queue/hints.h"
#include "queue/nominees.h"
#include "queue/strays.h"
#include "queue/turns/turns.h"
#include "store/observer.h"
#include "quota/quotas.h"
#include "policy/victims/stand_in.h"
#include "queue/books/ratings.h"
#include "gate/part.h"
#include "queue/books/passes.h"
#include "queue/books/verdicts.h"
#include "store/seals/sealing.h"
#include "json/json.h"

#include <gpuledger/dialect.h>
#include <pthread.h>

struct store;

/* How many rows the table of kinds has (store/kinds/kind.h). */
extern const int kinds_n;
#define FEED_N kinds_n

struct store_options {
    struct dialect_options dialects;
    const struct policy *policy;
    int64_t patience_ms; /* how long a node side is expected to take to match a pod */
    int64_t wait_loss; /* thousandths of a card by which a node may pack better, for each pod that its
                        * node side has yet to serve before */
    int64_t hold_ms;   /* these two: see queue/arrivals/arrivals.h */
    int64_t n_places;
    int64_t
        volume_bind_ms; /* how long room is kept for a pod on its way (queue/hints.h); 0: it is not */
    bool all_ask; /* who waits is taken to ask: of a cluster that was saved, where nobody can */
    const char *model_label, *pool_label; /* node labels for quota/quotas.h, or NULL */
    bool
        saved; /* of a cluster that was saved: nobody reports there any more, and nobody is silent */
    bool resource_quotas;        /* quota/resource_quotas.h; else there are none */
    bool elastic_quotas;         /* quota/elastic/elastic_quotas.h; likewise */
    const char *tree_namespaces; /* as elastic_quotas_trust takes them, or NULL */
    bool gang_strict;            /* Bindings say that a group came */
    bool gangs;                  /* gang/gangs.h; else pods of groups are pods like others */
    int64_t gang_room_ms;        /* struct gang_keeper's */
    bool gangs_unhurried;        /* the same */
    bool reclaim; /* what elastic quotas have lent is taken back (explain/reclaim/reclaim_plan.h) */
    bool reclaim_uncontrolled; /* also from pods that no controller creates again */
    /* A namespace may have more than its min by any pod, and not only by those that are taken back. */
    bool lend_unreclaimable;
    int64_t reclaim_delay_ms; /* for whom that has waited for so long */
    bool claims_on_nodes; /* claims are what Nodes show: of a saved cluster, where nobody ends */
    const struct part_settings *parts; /* of the parts (gate/part.h); borrowed for store_new */
    struct seals *seals; /* store/seals/seals.h; borrowed; NULL: annotations are believed */
    bool silent;         /* a second reading of what is known: neither logged nor counted */
};

/* When a decision is made. It reads no other clock, so that it can be repeated. */
struct moment {
    int64_t now_ns; /* Unix time */
    int64_t now_ms; /* monotonic */
    uint64_t number; /* under which it is told (store/observer.h); 0: it is not */
    bool counting;   /* not all is counted that quotas limit (quota/quotas.h) */
};

struct store *store_new(const struct store_options *options);
/* A store of its own that knows what the other knows, for trying what would be. Takes the lock for a
 * few nodes at a time: they are not all of one moment. */
struct store *store_copy(struct store *store);
void store_free(struct store *store);
typedef struct store store; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(store, store_free)

/* --- feeding: any thread, one per feed at a time ---------------------------------------------- */

/* Counts what quotas limit, a few pods at a time under the lock, until all is counted (quota/quotas.h). */
void store_count_quotas(struct store *store);

/* A fresh list begins, before it is asked for; apply its objects, then end it, which sweeps what it
 * did not name. A list that fails midway is simply begun again. */
void store_list_begin(struct store *store, enum feed feed);
void store_list_end(struct store *store, enum feed feed);
/* The list under way, if any, has named something of which it cannot be told what it is: its end
 * sweeps nothing. */
void store_list_spare(struct store *store, enum feed feed);

void store_apply_pod(struct store *store, const struct pod_view *pod);
/* It has ended. */
void store_delete_pod(struct store *store, const char *uid);
/* It is there no longer, and its node side may not know that yet. */
void store_vanish_pod(struct store *store, const char *uid);
/* Like apply, with what a GET said, which may be older than what the watch has said since: counts
 * only for an allocation that the watch has not confirmed. `asked` is what store_ask said before
 * the GET was sent. If a list of the pods has begun since, it may have been the word of the pod's
 * end: then the allocation is not confirmed, only bound, and will be asked about again. */
void store_reconcile_pod(struct store *store, const struct pod_view *pod, uint32_t asked);
uint32_t store_ask(struct store *store);
/* Under the lock: whether a list has shown the pod of a confirmed allocation without a node, and nothing
 * has shown it bound since. At most so many of their UIDs (owned), each time others until all have had their
 * turn; and one that a GET does not show bound, either,
 * has been set back: it holds nothing any more. */
bool store_doubts(const struct store *store, const char *uid);
GPtrArray *store_doubted(struct store *store, guint most);
bool store_drop_doubted(struct store *store, const char *uid);
/* The API server has refused every Binding of the pod's booking: who is bound was bound by others. */
void store_note_refused(struct store *store, const char *uid);
void store_apply_node(struct store *store, const struct node_view *view);
void store_delete_node(struct store *store, const char *name);

/* An object of any other kind; the view is what the kind's row decodes (store/kinds/kind.h). */
void store_apply_object(struct store *store, enum feed feed, const void *view);
struct object_name;
void store_remove_object(struct store *store, enum feed feed, const struct object_name *name);
/* Whether that feed is read at all: some are by option. */
bool store_wants(const struct store *store, enum feed feed);

/* Every feed that is wanted and awaited has completed a list. */
bool store_is_synced(struct store *store);
/* The same for a verb: false, with the error that all of them give. */
bool store_check_synced(struct store *store, GError **error);
/* Which feed has not, and why if that is known, for people: "nodes, pods (pods is forbidden: …)"; ""
 * if all have. Free with g_free. */
char *store_unsynced(struct store *store);

/* Why a feed cannot be read any more, or not as it should; NULL: it is read. */
void store_set_trouble(struct store *store, enum feed feed, const char *why);
/* For people: "nodes (nodes is forbidden: …)"; "" if there is none. Free with g_free. */
char *store_troubles(struct store *store);
/* No watch of the feed lives, so that the ledger gets old; `why` NULL: one does. */
void store_set_unwatched(struct store *store, enum feed feed, const char *why);
/* The feeds of which the ledger is made that are not watched, and why; g_free. "": none. */
char *store_unwatched(struct store *store);

/* --- for the verbs -------------------------------------------------------------------------- */

/* The ledger under the lock; every lock has its unlock in the same function, no I/O between. `who`
 * takes it: the function's name. */
#define store_lock(store) store_lock_by(store, __func__)
struct ledger *store_lock_by(struct store *store, const char *who);
/* The same for a decision. */
#define store_decide(store, ret_moment) store_decide_by(store, ret_moment, __func__)
struct ledger *store_decide_by(struct store *store, struct moment *ret_moment, const char *who);
/* The same for one that is then told to the observer, whatever it comes to: with a number. */
#define store_decide_recorded(store, ret_moment) \
    store_decide_recorded_by(store, ret_moment, __func__)
struct ledger *store_decide_recorded_by(struct store *store, struct moment *ret_moment,
                                        const char *who);
/* Under the lock, which the moment is of: it is one of a decision that is told to the observer. */
void store_record_moment(struct store *store, struct moment *moment);
void store_unlock(struct store *store);
/* Under the lock: waits until something of the node or of the pod has changed, or the monotonic time is
 * reached (false). Of what changes elsewhere (quotas, say) nobody is told: look again from time to time.
 * NULL: of none. */
bool store_wait(struct store *store, const char *node, const char *uid, int64_t until_ms);
/* Under the lock, before or after the change: wakes those who wait for the node or the pod. */
void store_notify(struct store *store, const char *node, const char *uid);
/* The same, of a change that concerns any node. */
void store_notify_all(struct store *store);

/* Under the lock: what store_lock gave. */
struct ledger *store_ledger(const struct store *store);

/* Under the lock: the request of a pod that waits for a node, or NULL if the watch has not shown
 * it. */
const struct request *store_pending(const struct store *store, const char *uid);

/* Under the lock: the priority of such a pod; 0 if there is none. */
int64_t store_pending_priority(const struct store *store, const char *uid);
/* The same: the UID of its controller, or NULL. */
const char *store_pending_controller(const struct store *store, const char *uid);

/* Under the lock: since when such a pod has waited to be placed, as far as it was seen here; 0: it does not
 * wait, or has gates. And all that wait. */
int64_t store_waiting_since(const struct store *store, const char *uid);
void store_waiting_each(const struct store *store,
                        void (*visit)(const char *uid, int64_t since_ms, void *data), void *data);

/* Under the lock: what a pod without a node says of where it may go; NULL if the watch has not shown
 * it. */
struct pod_rules;
const struct pod_rules *store_rules(const struct store *store, const char *uid);

/* Under the lock: what pods are expected, by all that were ever seen, ready to be asked. */
const struct demand *store_demand(struct store *store);
/* The same for a decision about the request; NULL: none of the policies that may decide goes by it. */
const struct demand *store_demand_for(struct store *store, const struct request *request);

/* What follows from what was learned, and for the nodes as they are, is worked out anew, if some decision goes by it
 * and enough has changed: by one thread, which waits for no call. Once it has begun, calls do not work it out
 * themselves. Takes the lock where it begins, and where it ends. */
void store_refresh_outlook(struct store *store);
/* Its three parts, for a replay: the moment of the first and of the last are events. False: there is nothing to do. */
bool store_begin_outlook(struct store *store, bool replayed);
void store_make_outlook(struct store *store);
void store_swap_outlook(struct store *store);
/* What the next decision will go by, for who decides nothing: a copy, without the pods that it was worked
 * out from. Decisions do not change by it, since no record tells that somebody has looked. Takes the
 * lock itself. */
struct demand *store_demand_copy(struct store *store);
/* Takes what that one has learned for what was learned here; the next decision works out what follows, or, `bare`,
 * goes without until store_swap_outlook. Pods on their way to bind are forgotten, as they were where a file of a
 * record told this. */
void store_learn(struct store *store, const struct demand *demand, bool bare);

/* Under the lock. */
const struct quotas *store_quotas(const struct store *store);
/* Under the lock; NULL: they are not kept. */
const struct elastic_quotas *store_elastic_quotas(const struct store *store);

/* Under the lock. */
const struct budgets *store_budgets(const struct store *store);

/* Under the lock: nodes as the pod finds them, for which others keep room. What is NULL or 0 in the
 * admission stays so. */
struct nominees store_nominees(const struct store *store, const struct admission_query *admission,
                               const struct pod_view *pod);
/* Under the lock: the pod has been booked on the node, where room may be kept for it. */
void store_take_room(struct store *store, const struct pod_view *pod, const struct request *request,
                     const char *node);

/* Under the lock, these two. */
struct node_books *store_ratings(struct store *store);
struct node_books *store_verdicts(struct store *store);
/* Nodes, by the hash of their names, that filter refused with work_limit before they had their turn: a later call
 * about the pod begins with them. Forgotten where a record's file ends. */
struct passes *store_unsearched(struct store *store);

/* Under the lock, these two. */
struct stand_ins *store_stand_ins(struct store *store);
struct clearings *store_clearings(struct store *store);

/* Under the lock: the pods on their way from filter to bind. A copy of the store knows none. */
struct hints *store_hints(struct store *store);

/* Under the lock: promises that are stray. */
struct strays *store_strays(const struct store *store);
/* Under the lock: the time that a new pod's promise on the node would say (queue/turns/turns.h), where the dialect
 * needs one; 0: there is none until others are served or revoked. -1: it needs none. */
int64_t store_choose_turn(const struct store *store, const struct dialect *dialect,
                          const struct node *node, const struct turn *pod, int64_t now_ns);
/* Under the lock: a booking is there, and keeps its turn. */
void store_take_turn(struct store *store, const struct allocation *booked);
/* What a record says of one; of one that is not, or no longer, only dialect and UID. */
void store_set_promise(struct store *store, const struct stray *stray, bool stands);

/* Under the lock: the groups that come whole or not at all; none unless they are wanted. */
struct gangs *store_gangs(struct store *store);
/* Under the lock, after anything that may have changed what a group may have: whoever was refused for it,
 * or waits, has another look. */
void store_tell_gangs(struct store *store);
/* Under the lock: the pod is of the group that it names, if any. False: there is no more room for it in
 * that, or for the group. */
bool store_join_gang(struct store *store, const struct pod_view *pod, enum gang_role role);
/* The same by filter's word, in which it waits. */
bool store_join_asking(struct store *store, const struct pod_view *pod, int64_t now_ms);
/* All pods that wait, in order, a few at a time under the lock, as arrivals_walk has it. Returns how many
 * there are. */
#define store_arrivals_each(store, visit, data) store_arrivals_each_by(store, __func__, visit, data)
guint store_arrivals_each_by(struct store *store, const char *who, arrivals_visit visit,
                             void *data);

/* All groups, a few at a time under the lock, as gangs_walk has it. */
#define store_gangs_each(store, visit, data) store_gangs_each_by(store, __func__, visit, data)
void store_gangs_each_by(struct store *store, const char *who,
                         void (*visit)(const struct gang_row *row, void *data), void *data);

/* Under the lock: the pods that wait, in order. */
struct arrivals *store_arrivals(struct store *store);

/* Under the lock: the cards that a pod's annotations name and that it is not on, "1" or "0,2"; NULL:
 * there are none. */
const char *store_named_cards(const struct store *store, const char *uid);

/* From time to time: lets time pass, as every decision does, too. */
void store_end_waits(struct store *store);
/* kubelet has rejected the pod: it is gone. False: the ledger did not have it, and it does not count. */
bool store_reject_pod(struct store *store, const char *uid, const struct rejection *rejection);
/* An operator's order about a node, as a part knows it: "resume". False: nothing has changed. */
bool store_order(struct store *store, const char *verb, const char *node);

/* Tells the observer of a step of a plan; of the store nothing changes. */
void store_tell_move(struct store *store, const struct observed_move *move);
void store_tell_eviction(struct store *store, const struct observed_eviction *eviction);
/* Under the lock: what is remembered beside the ledger. */
const struct part_set *store_parts(const struct store *store);
/* The state of one part; NULL: it is off. */
void *store_part(const struct store *store, const struct part *part);

/* Under the lock, in no order: what plans do on nodes. `lives`: it is not over yet. */
struct plan_mark;
void store_marks_each(const struct store *store,
                      void (*visit)(const char *node, const struct plan_mark *mark, bool lives,
                                    void *data),
                      void *data);
/* Under the lock: filter is asked about the pod, so that it is on its way no longer (queue/nominations.h). */
void store_stop_coming(struct store *store, const char *uid);
/* Takes what a record's line says of a part; false: it cannot be understood. */
bool store_learn_part(struct store *store, const struct part *part, struct json_arena *arena,
                      const cJSON *object, GError **error);
/* The same by `change`, which is called under the lock; if it returns true, the observer is told of the part. */
void store_change_part(struct store *store, const struct part *part,
                       bool (*change)(void *self, void *data), void *data);

/* All claims on lent quota, as their ConfigMap has them. */
struct claim_sheet;
void store_apply_claims(struct store *store, struct claim_sheet *sheet);
/* Why they cannot be read, so that nobody ends for any; NULL: they can. Free with g_free. */
void store_set_claims_trouble(struct store *store, const char *why);
char *store_claims_trouble(struct store *store);
/* Under the lock: whether the Node's annotation shows these claims, NULL for none; and the Nodes that show any,
 * which is to be freed with g_strfreev. */
bool store_shows_claims(const struct store *store, const char *node, const char *text);
char **store_list_claim_views(const struct store *store);

/* Under the lock: room that is kept for pods, by claims (wire/claim.h) too. */
const struct nominations *store_nominations(const struct store *store);

/* Policy and patience are read under the lock, since store_set_policy may change them; the rest is
 * fixed after store_new. */
const struct store_options *store_options(const struct store *store);

/* Adds all kept sums up again, a few nodes at a time, and compares. Until the next time, store_is_sound
 * says what came of it. */
void store_verify(struct store *store);
bool store_is_sound(const struct store *store);

/* For benchmarks: is called each time after the lock was taken, by the function of that name, and before it is given
 * back. */
struct lock_meter {
    void (*begin)(void *data, const char *who, bool decides);
    void (*end)(void *data);
    void *data;
};
/* Before anybody else knows the store. */
void store_measure(struct store *store, const struct lock_meter *meter);

/* Before there is anything to tell: what happens from now on is told. Borrows the observer; NULL: there
 * is none. */
void store_set_observer(struct store *store, struct observer *observer);
struct observer *store_observer(const struct store *store);
/* Tells the observer what the pods of the next nodes hold, a few nodes at a time; false: this was the
 * last of them. */
struct ledger_reader; /* of the store, one that numbers nodes */
bool store_tell_ledger(struct store *store, struct ledger_reader *reader);
/* Tells the observer what has come of waiting, of rejected pods and of learning by now, which it could
 * not know of otherwise, and returns the last number; 0: not all of it could be told. One thread at a
 * time (store/images/queue_image.h). */
uint64_t store_tell_known(struct store *store);

/* Decisions are made at that moment instead of now; for one thread alone. */
void store_set_moment(struct store *store, const struct moment *moment);

/* Of the next pod that is applied that is believed, instead of what the keys say; likewise. */
void store_set_trust(struct store *store, enum trust trust);

/* Since when the next node that is applied is being changed, 0: it is not, or that is not known; likewise. */
void store_set_change(struct store *store, int64_t since_ms);

/* The elastic quota that a pod asked for when it was bound, "" for none, whatever its label says; for who
 * plays a record again. Takes the lock itself. */
void store_choose_quota(struct store *store, const struct pod_view *pod, const char *quota);

/* Under the lock: whose seals are to be written (store/seals/sealing.h). */
struct sealing *store_sealing(const struct store *store);

/* For a reload of the configuration. Takes the lock itself. */
void store_set_policy(struct store *store, const struct policy *policy, int64_t patience_ms);
