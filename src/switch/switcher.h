/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Switches nodes as a calendar says (--calendar), and those that somebody has announced: a thread that
 * looks at each of them every few seconds, as long as this replica serves. It keeps nothing: whoever takes
 * over goes on from what the Nodes say.
 */
#include "switch/node_switch.h"
#include "verbs/leadership.h"

struct switcher;

struct switcher_options {
    struct node_switch with; /* borrowed, but for the calendar */
    struct calendar *take_calendar;
    struct leadership *leadership; /* NULL: the only replica */
    int64_t interval_ms;           /* 0: 5 s */
};

/* NULL with an error: no thread can be had. The calendar is taken in any case. */
struct switcher *switcher_start(const struct switcher_options *options, GError **error);
/* Waits for its thread. NULL is fine. */
void switcher_free(struct switcher *switcher);

/* Reads the file of a calendar. NULL, with an error that names the file: it cannot be read. */
struct calendar *calendar_load(const char *path, const char *replicas, GError **error);
