/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * In which order pods come, and for how long they stay: chance, the same for the same seed on every
 * machine. One thread at a time.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct workload;

/* `n` pods, of which each comes once, in a shuffled order or in that of the file. */
struct workload *workload_new(uint32_t seed, uint32_t n, bool shuffled);
void workload_free(struct workload *workload); /* NULL is ignored */
typedef struct workload workload;              /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(workload, workload_free)

/* The next pod of the file; false when all have come. */
bool workload_next(struct workload *workload, uint32_t *ret_pod);

/* Any pod of the file, as likely as any other. */
uint32_t workload_draw(struct workload *workload);

/* A time with that mean, as likely to end at any moment. */
double workload_time(struct workload *workload, double mean);

/* One of n, where several are equally good. */
uint32_t workload_pick(struct workload *workload, uint32_t n);

/* 0 to n - 1 in an order of chance, the same for the same seed. Free with g_free. */
uint32_t *workload_permutation(uint32_t seed, uint32_t n);
