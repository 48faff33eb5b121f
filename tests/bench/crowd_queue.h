/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who queues beside a crowd (crowd.h): pods that wait for a GPU and have been asked about, groups that
 * wait for their members, some with places, pods whose node side has not taken them, nodes that have
 * rejected pods. As many of each as asked for.
 */
#include "crowd.h"
#include "verbs/extender.h"

struct crowd_queue {
    int waiting;   /* pods alone */
    int groups;    /* of CROWD_GROUP pods each; every tenth has places */
    int unserved;  /* bound pods that their node side has not taken */
    int rejecting; /* nodes that are left out after CROWD_REJECTS pods */
};

#define CROWD_GROUP 8
#define CROWD_REJECTS 3

/* Of a store with groups and a reject limit of CROWD_REJECTS; the crowd is there. */
void crowd_queue_fill(const struct crowd_queue *queue, const struct crowd *crowd,
                      struct extender *extender);
/* What the watch brings of one that waits: it is gone, and another one comes. */
void crowd_queue_change(const struct crowd_queue *queue, struct store *store, int i,
                        int generation);
