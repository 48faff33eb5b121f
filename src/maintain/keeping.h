/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Room for some pods while others are moved: an annotation of each node on which it is (wire/plan_mark.h), which
 * the extender heeds. It is good for two minutes and written again before that, by a thread of its own: who is
 * killed leaves nothing that lasts. A node on which another plan is at work is left to that.
 */
#include "kube/api_client.h"
#include "wire/plan_mark.h"

#define KEEPING_LIFE_MS 120000
#define KEEPING_RENEW_MS 30000

struct keeping;

struct keeping_options {
    struct api_client *client;                  /* borrowed */
    const char *by;                             /* which plan it is; borrowed */
    void (*tell)(void *data, const char *text); /* what goes wrong while nobody waits for it */
    void *data;
};

struct keeping *keeping_new(const struct keeping_options *options);
/* Keeps nothing any more. */
void keeping_free(struct keeping *keeping);
typedef struct keeping keeping; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(keeping, keeping_free)

/* A room, or NULL: the node is only told what is done. */
struct keeping_place {
    const char *node;
    const struct kept_room *room;
};

/* These instead of those that were kept before, and what is being done there. False, with an error: some may
 * be kept. */
bool keeping_set(struct keeping *keeping, const char *doing, const struct keeping_place *places,
                 guint n, GError **error);

/* Only what is kept for groups, from here on. False, with an error: more may be kept. */
bool keeping_narrow(struct keeping *keeping, GError **error);

/* False, with an error: what is kept could not be renewed in time, and others may have it. */
bool keeping_check(struct keeping *keeping, GError **error);

/* Goes on with what the same plan has kept on that node before: it is written again with the rest. Takes the
 * mark. */
void keeping_adopt(struct keeping *keeping, const char *node, struct plan_mark *take_mark);

/* Writes nothing any more, and leaves what is kept to whoever goes on with the plan. */
void keeping_abandon(struct keeping *keeping);

/* Of what is left keeps nothing any more, and from here on writes nothing. Any thread. */
void keeping_end(struct keeping *keeping);

/* Takes away what plans that were killed have left on the node; another's that goes on stays. */
bool keeping_clean(struct api_client *client, const char *node, GError **error);
