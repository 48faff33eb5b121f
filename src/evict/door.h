/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one door: every eviction of this program passes it, whoever wants it. A caller looks, may try, and ends:
 *
 *   door_look  reads the pod again: it is the one that was meant, is still there, and may end for this caller
 *              (policy/victims/may_end.h)
 *   door_try   asks the API server with dryRun=All; nothing ends
 *   door_end   unless evictions are stopped or a limit is reached: asks the caller once more whether the end is
 *              still wanted, then who serves and whether evictions are stopped by now, and ends the pod
 *
 * Each answer that is about the pod counts in gpuledger_evictions_total. What the API server says to an eviction is
 * recorded, and an Event of the pod says why it ends, or why it was refused. A caller that pauses says so by
 * door_tell, too. A caller that ends several pods for one
 * purpose looks at and tries all of them before the first one ends. One thread for each call; calls may come from any.
 */
#include "evict/eviction.h"
#include "evict/permits.h"
#include "policy/victims/may_end.h"
#include "verbs/leadership.h"

#include <gpuledger/error.h>

/* How pods are read and evicted. */
struct door_api {
    enum outcome (*read)(void *data, const char *ns, const char *name, struct evictee *ret_evictee,
                         GError **error);
    enum eviction (*send)(void *data, const struct evictee *evictee, bool try, GError **error);
};

/* One pod that is to end; borrowed. */
struct door_order {
    struct api_client *client;
    struct cluster *cluster;    /* writes Events; NULL: the client does, at once */
    struct store *store;        /* whose observers are told of the end; NULL: none */
    const struct door_api *api; /* NULL: by the client */
    void *api_data;
    enum ender ender;
    struct permits *permits; /* NULL: a command, by the rights of its user */
    bool force;              /* pods as well that no controller creates again */
    const char *ns, *name;
    const char *uid;   /* another pod of that name is left alone; NULL: any */
    const char *note;  /* for its Event: why it ends; NULL: none */
    const char *whom;  /* for whom it ends: not said to the pod's owner */
    char **ret_untold; /* why that Event was not written; free with g_free. NULL: nobody asks */
    struct leadership *leadership; /* NULL: the only replica, or a command */
    uint64_t term;                 /* in which the caller began */
    /* Right before the pod ends: whether that is still wanted. False: it is not, with or without an error. NULL: it
     * always is. */
    bool (*is_wanted)(void *data, GError **error);
    void *data;
};

/* The code of DOOR_LATER's error where a limit or the stop key is the reason. */
#define DOOR_HELD GPULEDGER_ERROR_LIMIT

enum door_answer {
    DOOR_OPEN,  /* it may end; or, of door_end, it ends */
    DOOR_GONE,  /* there is no such pod any more, or it has ended */
    DOOR_ENDS,  /* somebody has deleted it, and it is still there */
    DOOR_STAYS, /* it may not end for this caller: the error says why */
    DOOR_LATER, /* a budget, a limit or the stop key keeps it from ending now, or another controller moves it
                    * away first: the error says which */
    DOOR_OBSERVED, /* it would end, and the capability only observes; with an error */
    DOOR_UNWANTED, /* the caller says no, perhaps with an error, or another replica serves, with one */
    DOOR_FAILED,  /* it cannot be read, or the API server refuses; with an error */
    DOOR_UNKNOWN, /* it may have ended, or may yet; with an error */
};

/* DOOR_OPEN, _GONE, _ENDS, _STAYS or _FAILED. What was read of it is cleared by evictee_clear, whatever the answer. */
enum door_answer door_look(const struct door_order *order, struct evictee *ret_evictee,
                           GError **error);

/* Of what door_look has read, or its caller knows: DOOR_OPEN, _LATER, _FAILED or _UNKNOWN. */
enum door_answer door_try(const struct door_order *order, const struct evictee *evictee,
                          GError **error);

/* DOOR_OPEN, _LATER, _OBSERVED, _UNWANTED, _FAILED or _UNKNOWN. An Event that cannot be written changes nothing. */
enum door_answer door_end(const struct door_order *order, const struct evictee *evictee,
                          GError **error);

/* What is said of pods, each by one Event (store/pod_event.h). */
enum door_news {
    DOOR_ENDS_POD, /* the order's pod ends; the note says why */
    DOOR_REFUSED,  /* it was to; why not */
    DOOR_PAUSED,   /* nobody ends for the pod that the order names, for a while */
    DOOR_NEWS_N
};

/* About the pod with the order's name and UID. Nothing else depends on it. The same refusal and pause is said once in
 * ten minutes; to a command's user the command says them. */
void door_tell(const struct door_order *order, enum door_news news, const char *note);
