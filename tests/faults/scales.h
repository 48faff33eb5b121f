/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The judge: weighs true holders (holders.h) against what cards truly have. Two scales: what must be
 * counted, for grants; and what may be counted at most, for those who wait.
 */
#include "holders.h"

/* A bind of the pod begins. */
void scales_note_bind(struct played_pod *pod);

/* Of every Binding that the API server accepted: no card that it names has more true holders than
 * room, as far as the program can have known of them. Ends the run if there is one. */
void scales_check_grant(struct played_pod *pod);

/* Whether the pod, which asks in one tongue, has a place on the node even if all is counted against
 * it that may be. */
bool scales_open(const struct played_pod *pod, int node);

/* Who holds what there, one a line. */
char *scales_describe(struct played_pod *pod, int node);

/* For scripts: what would have ended the run is counted instead; NULL: it ends the run again. */
void scales_collect(GString *found);

uint64_t scales_n_checked(void);
