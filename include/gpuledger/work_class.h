/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a class of work means for the ledger and the policies: with whom its pods share cards, who ends
 * before whom, whether replicas keep apart. Which pod is of which class, and what a class says besides,
 * is read in src/dialect/classes/classes.h. Immutable once made, shared by reference; any thread may hold one.
 */
#include <gpuledger/names.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct policy;

#define WORK_CLASSES_MAX 31
#define WORK_CLASS_ANY UINT32_MAX

/* Whom preemption ends before others, whatever their priorities. */
enum victim_order {
    VICTIMS_FIRST = -1,
    VICTIMS_NORMAL = 0,
    VICTIMS_LAST = 1,
};

struct work_class {
    char *name;
    uint32_t number;      /* its bit in `shares_with`, from 1 on; 0 is for pods of no class */
    uint32_t shares_with; /* bits of the classes whose pods may be on a card with its own */
    enum victim_order victims;
    bool spread; /* its replicas go to cards and nodes with few of their own kind */
    bool group;  /* its pods name a pod group */
    /* Where the pod says nothing of its own: */
    bool oversubscribes;
    int32_t isolation;           /* enum isolation; at least so */
    const struct policy *policy; /* or NULL */
};

/* Zeroed, with one reference. The name is the class's own (g_free). */
struct work_class *work_class_new(void);
struct work_class *work_class_ref(struct work_class *work_class); /* NULL gives NULL */
void work_class_unref(struct work_class *work_class);             /* NULL is ignored */

/* Whether pods of the one and of the other may be on one card, as both want it; NULL: of no class. */
bool work_class_mixes(const struct work_class *a, const struct work_class *b);
/* Whether there may be pods that it does not share a card with. NULL: there are none. */
bool work_class_is_choosy(const struct work_class *work_class);

#pragma GCC visibility pop
