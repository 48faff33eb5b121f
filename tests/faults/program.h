/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The program against the played cluster (played.h), and the kube-scheduler that asks it: for
 * tenant_runs.c and tenant_scripts.c.
 */
#include "played.h"

#include "verbs/extender.h"

struct program_options {
    int64_t patience_ms, hold_ms, n_places, bind_timeout_ms;
    const char *policy; /* NULL: binpack */
    bool memory_guard;  /* --nvidia-memory-guard */
    bool classed;       /* there are classes of work (played.h) */
    bool sealed;        /* there is a key, and pods bound before have been adopted */
};

/* `directory`: for the token's file. */
void program_init(const char *directory);
void program_start(const struct program_options *options);
/* SIGKILL, and a start with the same options. */
void program_crash(void);
/* The same, for what happens in between; time stands still then. */
void program_kill(void);
void program_start_again(void);
/* It ends in peace. */
void program_end(void);

/* Which nodes pass, as bits; -1: an error. A simulated thread or nobody's. */
int program_filter(struct played_pod *pod);
/* From a simulated thread. The error, "" for success. */
char *program_bind(const struct played_pod *pod, int node);
/* The same as a thread of its own, of which nobody hears. */
void program_bind_later(const struct played_pod *pod, int node);
/* Binds that are under way. */
unsigned program_binding(void);
/* A node, as people see it. */
char *program_node(int node);
/* What a Binding writes is what the guard of pods' records guards (cmd/guard/guard.c). */
void program_check_words(const struct played_pod *pod);
/* What filter said last. */
const char *program_last(void);

/* A kube-scheduler: while it is not paused, pods are asked about again and again. */
void program_schedule(bool goes_on);
bool program_is_synced(void);

void program_let_pass(int64_t us);
/* Runs a function as a simulated thread, to its end. */
void program_run(void (*run)(void *data), void *data);

struct program_counts {
    uint64_t filters, binds, bound, crashes;
};
const struct program_counts *program_counts(void);
