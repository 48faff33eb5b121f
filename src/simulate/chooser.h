/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `--policy auto` of a running extender (policy/policy_choice.h): a thread that looks ahead on a copy
 * of the store now and then, while nobody else wants the CPU, and sets the store's policy where the looks
 * say so. No decision waits for it. The switch is told to the store's observer, so that a replay goes
 * over at the same place without looking; what a look said is not.
 */
#include "store/store.h"

struct policy_choice;

/* A look on a copy of the store, of which the lock is taken for a few nodes at a time. As
 * policy_choice_look. */
bool chooser_look(struct policy_choice *choice, struct store *store, const gint *cancelled);

struct chooser;

struct chooser_options {
    int64_t interval_ms; /* from the end of a look to the next, at least; 0: 10 min */
};

/* Borrows the store. The thread begins as soon as that is in sync, and rests until chooser_set. NULL
 * with an error: no thread can be had. */
struct chooser *chooser_start(struct store *store, const struct chooser_options *options,
                              GError **error);
/* Waits for its thread; a look under way is given up. NULL is fine. */
void chooser_free(struct chooser *chooser);
typedef struct chooser chooser; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(chooser, chooser_free)

/* Sets the store's policy, now and by each reload: that one, or with policy_auto the one that was chosen last. Any
 * thread. */
void chooser_set(struct chooser *chooser, const struct policy *policy, int64_t patience_ms);

/* What the last look said, in the Prometheus text format; nothing unless the policy is auto. Any thread. */
void chooser_metrics(struct chooser *chooser, GString *text);
