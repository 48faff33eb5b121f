/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a plan is to reach, in the words that the command's options, the questions to an extender and ConfigMaps
 * share. Pure.
 *
 *   pod=ml/big        room for a pod
 *   group=ml/train    room for a group of pods, whole or not at all
 *   empty=n1/3        nobody with a GPU on a node or card
 *   waiting=5m        room for pods that have had no node for so long, one after the other
 *   defragment=1.5    so much less free GPU that the pods that are expected cannot use (gpuledger/fragmentation.h)
 */
#include "explain/card_place.h"

/* One of them; the texts are its own. */
struct plan_aim {
    char *ns,
        *name; /* the pod; of those who wait the one whose turn it is, which whoever chooses it sets */
    char *group_ns, *group;
    bool waits; /* room for those who do, for so long: */
    int64_t waited_ms;
    struct card_place place;
    int64_t less; /* thousandths of a GPU; 0: that is not it */
};
void plan_aim_clear(struct plan_aim *aim);
typedef struct plan_aim plan_aim_cleared;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(plan_aim_cleared, plan_aim_clear)

/* The words; ends with NULL. */
extern const char *const plan_aim_words[];

/* False, with an error without the word: it does not have such a value. */
bool plan_aim_read(struct plan_aim *aim, const char *word, const char *text, GError **error);

/* "90s", "10m", "2h", of at most a day. */
bool plan_aim_read_time(const char *text, int64_t *ret_ms, GError **error);

/* How many are set, before anybody is chosen. */
int plan_aim_count(const struct plan_aim *aim);
