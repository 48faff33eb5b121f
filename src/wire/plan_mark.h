/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a plan says of a Node while it moves pods, in one annotation: for people what it does, for the extender
 * for whom room is kept there (queue/nominations.h), for both until when. Whoever carries out the plan writes
 * it again before that; who has been killed does not, and then it means nothing any more.
 *
 *   {"doing":"room for ml/big: move 1 of 2, ml/web-1 leaves n1","by":"host-4711",
 *    "until":"2026-01-01T00:02:00Z",
 *    "rooms":[{"id":"uid","pod":"uid","priority":0,"class":"training","dialect":"gpushare",
 *              "shares":[…]},
 *             {"id":"uid","pod":"uid","namespace":"ml","group":"train", …},
 *             {"id":"after uid","namespace":"ml","controller":"uid","asks":"1 x 4 units","since":SECONDS, …}]}
 */
#include "dialect/classes/classes.h"
#include "json/json.h"

#include <gpuledger/ledger.h>
#include <gpuledger/request.h>

#define PLAN_MARK "gpuledger.io/plan"
#define PLAN_MARK_MAX ((size_t)64 << 10) /* bytes; longer ones are not read */
#define PLAN_MARK_ROOMS_MAX 128
#define PLAN_MARK_DOING_MAX 300 /* bytes that are shown */

/* What is kept lasts for less, whoever says otherwise: what says more counts for nothing yet. */
#define KEPT_ROOM_MAX_NS (INT64_C(15) * 60 * 1000000000)

struct kept_room {
    char *uid;   /* of the pod that it is for; NULL: of these, the first that asks for it */
    char *group; /* of that pod: all of the group find it free; NULL: it is for the pod alone */
    char *ns;    /* of the group; or these three: of a successor */
    char *controller; /* its UID */
    char *asks;       /* kept_room_asks of its request */
    struct allocation
        *held; /* outside any ledger; its UID is the room's own. What its pod accepts, and whose
                              * it is, counts for others as if it were there */
    int64_t since_s;  /* Unix time: successors are younger */
    int64_t until_ns; /* likewise */
    char *taken;      /* UID of a successor: the room does not count while the ledger has that */
};
struct kept_room *kept_room_new(void);
struct kept_room *kept_room_dup(const struct kept_room *room);
void kept_room_free(struct kept_room *room); /* NULL is ignored */

/* Its cards, memory and compute in words, the same for equal pods. Free with g_free. */
char *kept_room_asks(const struct request *request);

struct plan_mark {
    char *doing, *by;
    int64_t until_ns;
    GPtrArray *rooms; /* struct kept_room */
};
struct plan_mark *plan_mark_new(void);
struct plan_mark *plan_mark_dup(const struct plan_mark *mark);
void plan_mark_free(struct plan_mark *mark); /* NULL is ignored */
typedef struct plan_mark plan_mark;          /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(plan_mark, plan_mark_free)

/* It is not over, and not beyond what is believed. */
bool plan_mark_lives(const struct plan_mark *mark, int64_t now_ns);

/* Free with g_free. */
char *plan_mark_format(const struct plan_mark *mark);
/* With the classes of work that there are here, or NULL; a room of another one is of none. NULL, with an
 * error: it cannot be understood. */
struct plan_mark *plan_mark_parse(const char *text, const struct classes *classes, GError **error);
