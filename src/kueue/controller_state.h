/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller's inside: shared by the files that make it up, and by nobody else.
 *
 * controller.c has the thread, notes.c what the reflectors tell, calls.c what is asked and written, round.c
 * the answers. The worker's lock is never held across a call, nor with the store's.
 */
#include "base/worker.h"
#include "kueue/controller.h"
#include "kueue/promises.h"
#include "kueue/waiting.h"

#define KUEUE_PATH "/apis/" KUEUE_API
/* Of what is applied: https://kubernetes.io/docs/reference/using-api/server-side-apply */
#define KUEUE_MANAGER "?fieldManager=gpuledger.io-fit&force=true"
#define KUEUE_PAUSE_MS 5000 /* after a call that has failed */

/* An AdmissionCheck of ours. */
struct own_check {
    GString *body; /* that is to be applied to its status, or NULL */
    uint64_t list; /* the last in which it was named */
};

struct kueue {
    struct api_client *client;
    struct store *store;
    struct leadership *leadership;
    struct kueue_options options;
    struct worker worker;

    /* The thread's own: */
    struct reflector *checks_feed; /* by the owner, before the thread */
    struct reflector *workloads_feed;
    uint64_t wanted; /* the list of Workloads before whose end nobody is answered */
    uint64_t term;
    int64_t round_after_ms; /* no round before then */

    /* Under the worker's lock: */
    bool serving;
    GHashTable *checks; /* name (char *) -> struct own_check * */
    uint64_t checks_list;
    bool listed;            /* a list of the Workloads has ended */
    bool relist;            /* of the Workloads: what they are to be looked at for has changed */
    int64_t check_after_ms; /* no AdmissionCheck is written before then */
    struct waiting *waiting;
    struct promises *promises;
};

/* --- notes.c -------------------------------------------------------------------------------- */

/* What our checks of a Workload want. */
enum wish {
    WISH_NONE,
    WISH_ANSWER,
    WISH_MEMORY, /* all of them have let it in, at `ready_s` */
};
/* Under the lock. */
enum wish kueue_wish(const struct kueue *kueue, const struct workload_view *workload,
                     int64_t *ret_ready_s);

/* NULL, with an error: no thread can be had. */
struct reflector *kueue_watch_checks(struct kueue *kueue, GError **error);
struct reflector *kueue_watch_workloads(struct kueue *kueue, GError **error);
void own_check_free(gpointer own_check);

/* --- calls.c -------------------------------------------------------------------------------- */

int64_t kueue_now_s(void);
enum outcome kueue_get(struct kueue *kueue, const char *path, struct json_arena *arena,
                       const cJSON **ret_object, GError **error);
/* Only while this replica serves: the API server is told of the end of that, too. */
enum outcome kueue_apply(struct kueue *kueue, const char *path, const GString *body,
                         GError **error);

/* --- round.c -------------------------------------------------------------------------------- */

/* Looks at those that are due, without the lock. */
void kueue_round(struct kueue *kueue);
