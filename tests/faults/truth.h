/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The oracle: what may be and what must be, worked out from the server's objects alone. Shares no
 * code with the program; of what the program says it reads only its JSON.
 */
#include "server.h"

/* Of every Binding that took effect: the card exists, is not unhealthy, has the room, and no pod
 * that waits for the node side could swap with this one. Measured by what the program can have
 * known when it was asked. */
void truth_check_grant(const struct pod *pod);

/* A bind of the pod begins. */
void truth_note_bind(struct pod *pod);

/* When all is quiet: /api/v1/nodes says what the server's objects mean, no more and no less. */
void truth_check_nodes(const char *json);
/* The pod holds something. */
bool truth_holds(const struct pod *pod);

enum verdict { VERDICT_NO, VERDICT_YES, VERDICT_OPEN };
/* When all is quiet: whether the pod can be put there. */
enum verdict truth_verdict(const struct pod *pod, int node);
