/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Groups of a simulation's pods that come whole or not at all (gang/gangs.h): all pods of one come at
 * once, each is asked about, as kube-scheduler's cycle for groups does, and those that have places are
 * bound. When its pods come again, they are a group of their own, in a namespace of its own.
 */
#include "simulate/simulation_state.h"
#include "wire/pod_group.h"

GPtrArray *simulation_gangs_new(void);
/* The pod of this kind, which is the next of `simulation->kinds`, is of the group that it claims to be
 * in. Returns that, or NULL. */
struct simulation_gang *simulation_gang_join(struct simulation *simulation,
                                             const struct pod_view *pod);
/* Of all groups that come by their objects. */
bool simulation_gangs_declare(struct simulation *simulation, GError **error);

/* With this kind all its pods come. */
bool simulation_gang_begins(const struct simulation *simulation, const struct kind_of_pod *kind);
/* Calls for each kind that comes with this one, itself too. */
void simulation_gang_each(struct simulation *simulation, struct kind_of_pod *kind,
                          void (*visit)(struct simulation *simulation, guint kind));
/* What all its pods ask for: cards. */
double simulation_gang_gpus(const struct simulation *simulation, const struct kind_of_pod *kind);
/* As simulation_arrive, of all of them. */
bool simulation_gang_arrive(struct simulation *simulation, struct kind_of_pod *kind, double x,
                            GError **error);

/* --- where pods leave -------------------------------------------------------------------------- */

/* Groups that wait; free with g_ptr_array_unref. */
GPtrArray *simulation_queue_new(void);

/* All of a group come, which will stay for so long. They are bound, and `departures` (struct departure) has
 * them; or they wait. */
bool simulation_gang_queue(struct simulation *simulation, struct kind_of_pod *kind, double now,
                           double stays, GSequence *departures, GError **error);
/* kube-scheduler asks about all that wait. Who has waited for a mean lifetime gives up: returns what those
 * had asked for, in cards. */
double simulation_gangs_try(struct simulation *simulation, double now, GSequence *departures);
/* At the end: all that still wait give up, and what the others have waited becomes a mean. */
double simulation_gangs_give_up(struct simulation *simulation, GSequence *departures);
