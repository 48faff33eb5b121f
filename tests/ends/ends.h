/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One world: how the program is set up in it, and what the parts of the test know of each other. Uses nothing of the
 * program.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MS INT64_C(1000)
#define S (1000 * MS)
#define MINUTE (60 * S)
#define HOUR (60 * MINUTE)

enum capability { RECLAIM, PLANS, SWITCH, STRICT, CAPABILITIES };
enum mode { MODE_OFF, MODE_OBSERVE, MODE_ON };
extern const char *const capability_names[CAPABILITIES]; /* as each one's token begins */

struct settings {
    enum mode modes[CAPABILITIES];
    uint32_t per_minute, for_reclaim, per_namespace; /* evictions */
    uint32_t reclaim_minute, reclaim_at_once, strict_minute;
    uint32_t plans_hour, switch_hour, switch_namespace;
    int64_t delay_ms, min_runtime_ms;
    bool priorities; /* some pods are more important than others */
};
extern struct settings settings;

#define SHEET "/api/v1/namespaces/" API_NS "/configmaps/gpuledger-claims"

#define NAMESPACES 3 /* t0, t1, …: of tenants, each with a min */
#define NODES_N 3    /* n0, n1, … */
#define CARDS_N 2    /* of each */

/* --- ends.c */

void ends_count_event(void);
/* When the program was told of it, at the latest, what was so at that time has gone round. */
int64_t ends_lag_us(void);

/* --- capabilities.c: what the program is told beside what it watches */

struct replica;
void capabilities_begin(struct replica *replica);
/* A namespace's min in cards; all that live hear of it. */
void capabilities_put_min(int ns, int cards);
int capabilities_min(int ns);
void capabilities_put_budget(const char *ns, const char *app, int allowed);
void capabilities_reset(void);

/* --- scheduler.c, cast.c */

void scheduler_reset(void);
/* Asks about the pod, and binds it. */
void scheduler_ask(const char *path);
/* Of a pod: when filter was asked about it last; 0: never. */
int64_t scheduler_asked_us(const char *uid);
uint64_t scheduler_n_preempted(void);

void cast_reset(void);
/* From now on; ends with the replicas. */
void cast_begin(void);

/* --- actors.c */

void actors_reset(void);
void actors_act(void);
/* Constant demand from here on: nobody stops evictions, and no order is given. */
void actors_rest(void);
/* Since when evictions are stopped; 0: they are not. */
int64_t actors_stopped_us(void);
/* What plan `waiting` may help is up to the oracle: an order has been there within that time. */
bool actors_ordered(int64_t within_us);
/* An order that was carried out has been changed or taken back within that time. */
bool actors_broke_off(int64_t within_us);
