/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a record of the program's life (record/recorder.h) consists of: lines of JSON, one for each thing
 * that changed the store or was decided from it, in the order of the store's lock.
 *
 *   {"n":7,"kind":"pod","object":{…}}            what a feed said; "key" where the object is gone
 *                                                of a pod without a node besides "picky":true if more
 *                                                than sums may keep kube-scheduler from asking about
 *                                                it, and its "scheduler"; of any the elastic "quota"
 *                                                that it asked for when it was bound, "" for none,
 *                                                where its label says another one now;
 *                                                of a node that is being changed, since when in ms
 *                                                ("changing")
 *   {"n":8,"kind":"call","verb":"filter","entry":0,"at":"NS","ms":MS,"body":{…},"reply":…}
 *                                                of preempt besides "recalled": the last answer for the pod
 *                                                that it goes by (queue/clearings.h), if there is one
 *   {"n":9,"kind":"look","call":9,"at":"NS","ms":MS,"until":MS,"pod":{…},"node":"n1",
 *    "asks":{…},"answer":{…},"booking":{…}}      a look of a bind at the ledger; "asks": the pod as
 *                                                the API server told it, for one that no feed did;
 *                                                the answer has "journal-full":true if the Lease's
 *                                                journal (verbs/journal.h) had no room
 *   {"n":10,"kind":"pod-vanished","key":UID}      the pod is gone, and nobody said that it had ended
 *   {"n":10,"kind":"conclude","ms":MS,"key":UID,"result":"bound"}
 *
 *   {"n":10,"kind":"rejected","key":UID,"result":"admission","confirmed":true}
 *                                                  kubelet rejected the pod (wire/rejection.h); confirmed:
 *                                                  its plugin answered, and said no
 *
 *   {"n":10,"kind":"move","key":UID,"result":"moved","plan":"kube-system/empty-n1","namespace":NS,
 *    "name":POD,"node":FROM,"to":NODE,"why":…}   a step of a plan that a ConfigMap orders
 *
 *   {"n":10,"kind":"eviction","key":UID,"result":"evicted","capability":"reclaim","for":"ml/big",
 *    "namespace":NS,"name":POD,"node":NODE}      what the API server said to an eviction
 *
 *   {"n":10,"kind":"promise","object":{…}}        a promise is stray (queue/strays.h), and of
 *   {"n":10,"kind":"promise-gone","key":UID,"result":DIALECT}  whom it is not, or no longer
 *
 *   {"n":10,"kind":"claims","object":{…}}         all claims on lent quota (wire/claim_sheet.h)
 *
 *   {"n":11,"kind":"arrivals","object":{…}}        what has come of the waiting of pods so far
 *                                                  (store/images/queue_state.h), where there is an order
 *   {"n":12,"kind":"learned","object":{…}}         what policies have learned of the pods so far
 *                                                  (store/images/learned.h), and go on from
 *   {"n":12,"kind":"outlook-begun"}                a value model is being made of what is known here, and
 *   {"n":13,"kind":"outlook"}                      decisions go by it from here on
 *   {"n":12,"kind":"usage","object":{…}}           which pods are idle (gate/idle_pods/idle_pods_told.h)
 *   {"n":12,"kind":"ledger","object":{…}}          what every pod holds, where a file ends;
 *                                                  so does "object" of the last line, "end"
 *
 * Times are strings, since JSON's numbers end at 2^53. A file begins with a "header" and, where it is
 * not the first, with what was known: lines without a number, the last of which are these two.
 * Objects have the fields of the views (gpuledger/object.h) and no others.
 *
 * A record is made by the thread that took its number, without the lock.
 */
#include "gate/waits/waits.h"
#include "verbs/call.h"
#include "verbs/bind/attempt.h"
#include "store/observer.h"
#include "wire/kubernetes.h"

/* What a line is: what was observed (store/observer.h), or one of these. */
enum record_kind {
    RECORD_BOOKING = OBSERVED_N, /* one that was open where the file begins */
    RECORD_LOST,                 /* that many are missing here */
    RECORD_HEADER,
    RECORD_END,
    RECORD_KIND_N
};

struct record_row {
    const char *name;
    bool is_event; /* it changes the store */
    bool has_object, has_booking;
};
extern const struct record_row record_rows[RECORD_KIND_N];

/* As the line says it; `feed`: of OBSERVED_OBJECT and OBSERVED_OBJECT_GONE; of OBSERVED_PART its place in the table. */
const char *record_kind_name(int kind, enum feed feed);
/* False: there is none of that name. */
bool record_kind_find(const char *name, int *ret_kind, enum feed *ret_feed);
extern const char *const record_steps[ATTEMPT_STEP_N];

#define RECORD_FORMAT 5
/* Without claims, which Nodes' annotations say there; of a node whose own cannot be read, "claims" are those that
 * count, "" for none. */
#define RECORD_FORMAT_4 4
/* Without who has asked, and what of a pod may keep it from asking. */
#define RECORD_FORMAT_3 3
/* And without what has come of waiting. */
#define RECORD_FORMAT_2 2
/* And without budgets, calls of preempt, and what policies have learned. */
#define RECORD_FORMAT_1 1
#define RECORD_LINE_MAX ((size_t)64 << 20)

struct record {
    int kind;       /* enum observed or enum record_kind */
    enum feed feed; /* of a list, and of an object of OBSERVED_OBJECT */
    uint64_t number;
    char *key;        /* the object's: a UID, a name, "NAMESPACE/NAME" */
    GString *text;    /* the line without its end */
    size_t object_at; /* where the object's or the booking's text begins in it; it ends the line */
    bool pending;     /* a pod without a node */
    bool paused;      /* a node of which what was said before still counts */
    bool unread;      /* what it asks for cannot be read */
    enum trust trust; /* of a pod: what is believed of it if nothing was known */
    bool picky;       /* something but sums may keep kube-scheduler from asking about it */
    char *scheduler;  /* NULL: the usual one */
    char *quota;      /* that a pod has asked for; "": none; NULL: its label says so */
    int64_t change_ms;             /* monotonic: since when a node is being changed; 0: it is not */
    bool confirmed;                /* OBSERVED_ASKED_POD: as good as the watch's word */
    const struct dialect *dialect; /* of a promise */
    enum bind_result result; /* OBSERVED_CONCLUSION; of a look: BOUND if it booked something */
    enum verb verb;          /* OBSERVED_CALL */
    GString *body, *reply;   /* OBSERVED_CALL: as they came and went; the writer adds them */
};

void record_free(struct record *record);

/* What the recorder writes of it; NULL for the number 0, which stands for what is not recorded. An
 * observation of a look is to be written under the lock. */
struct record *record_new(const struct observation *observation);

/* What pods hold, as records have it, by UID, so that it does not depend on what came first; written as
 * pods are added, and told in one piece. */
struct held_pod;
struct record_pods *record_pods_new(void);
void record_pods_free(struct record_pods *pods);
typedef struct record_pods record_pods; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(record_pods, record_pods_free)
/* On the node of that name. */
void record_pods_add(struct record_pods *pods, const char *node, const struct held_pod *pod);
/* `node`: they are those of that node; NULL: all. */
void record_pods_encode(struct json_writer *writer, struct record_pods *pods, const char *node);
/* The same at once, of a ledger that nobody waits for. `quotas`: NULL: they are not kept. */
void record_ledger_encode(struct json_writer *writer, const struct ledger *ledger, const char *node,
                          const struct elastic_quotas *quotas);

/* What of a pod without a node stands beside its object. */
void record_write_asking(struct json_writer *writer, bool picky, const char *scheduler);
/* And of any pod; NULL: nothing. */
void record_write_quota(struct json_writer *writer, const char *quota);

/* Whether a pod was believed for its seal, or for the lack of one not believed. */
void record_write_trust(struct json_writer *writer, enum trust trust);
enum trust record_trust(const char *name);

/* What a look answered, as text that is compared byte by byte. */
void record_answer_encode(struct json_writer *writer, const struct attempt *attempt,
                          enum attempt_step step, const GError *failure);

/* A verb's body or reply as it may be kept (record/record_body.c): pods and nodes in it have the fields
 * of the views only. False: it cannot be understood, and nothing useful was written. */
bool record_body_encode(struct json_writer *writer, enum verb verb, const GString *body);
bool record_reply_encode(struct json_writer *writer, enum verb verb, const GString *reply);
