/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When which nodes share their cards in which way: windows of the week in a time zone, for nodes with
 * some labels.
 *
 * A window begins and ends at a time of the clock on the wall. A time that a change of the clock leaves
 * out is the moment of that change; of one that comes twice it is the one that standard time has. Where
 * windows overlap, the one that began last counts; outside of all, a node stays as it is.
 *
 * Immutable once made: any thread. No clock: who asks says when.
 */
#include "switch/mode.h"

#include <cjson/cJSON.h>
#include <glib.h>

#define CALENDAR_NODES_MAX 64   /* these are kinds of nodes */
#define CALENDAR_WINDOWS_MAX 64 /* of one kind */
#define CALENDAR_LAYOUTS_MAX 64

struct calendar;

/* As the target of a window: the layout that serves the expected pods best when it begins. */
#define CALENDAR_AUTO "auto"

#define SWITCH_EVICTIONS_MAX 10000

/* How long what may take, in seconds, and how many pods may end. */
struct switch_limits {
    int64_t notice_s;   /* before a switch it is announced */
    int64_t drain_s;    /* for the pods that are there to end */
    int64_t deadline_s; /* for the node side, each time that the label is changed */
    uint32_t
        max_per_hour; /* pods that are evicted in any hour, of all nodes; 0: any number, as next */
    uint32_t max_per_namespace; /* pods of one namespace that end for the switch of one node */
};
extern const struct switch_limits switch_limits_default;

/* From a file as docs/switch.md has it, read into a tree. `replicas` is what --nvidia-config-replicas
 * says. The error names what is wrong. */
struct calendar *calendar_new(const cJSON *tree, const char *replicas, GError **error);
void calendar_free(struct calendar *calendar); /* NULL is ignored */
typedef struct calendar calendar;              /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(calendar, calendar_free)

const struct switch_limits *calendar_limits(const struct calendar *calendar);

/* Of one node at one moment; strings are the calendar's. */
struct calendar_answer {
    const struct node_mode *mode;
    const char *now; /* the value of the window that it is in; NULL: in none */
    int64_t since_s; /* when that began, and ends: Unix time */
    int64_t until_s;
    const char *next; /* the value of the window that begins next; NULL: none in the next week */
    int64_t next_s;   /* when */
};

/* False: the calendar says nothing of nodes with these labels. */
bool calendar_ask(const struct calendar *calendar, const struct string_pairs *labels, int64_t now_s,
                  struct calendar_answer *ret_answer);

/* What the value makes of cards, by the calendar's layouts, the replicas or its own name; NULL calendar:
 * by the latter two. False: nobody knows. */
bool calendar_value(const struct calendar *calendar, const struct node_mode *mode,
                    const char *value, const char *replicas, struct mode_value *ret_value);

/* One after the other, what they are called and make of cards; NULL: there are no more. */
const char *calendar_layout(const struct calendar *calendar, guint i, struct mode_value *ret_value);
/* Before anybody else knows the calendar: one more, unless it has that already. */
void calendar_add_layout(struct calendar *calendar, const char *name,
                         const struct mode_value *value);
