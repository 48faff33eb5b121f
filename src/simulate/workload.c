/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/workload.h"

#include <math.h>

/* Each kind of chance has its own numbers, so that what one policy asks more often than another
 * does not change what comes. */
enum stream { STREAM_ORDER, STREAM_DRAWS, STREAM_TIMES, STREAM_PICKS, STREAM_NAMES, STREAM_N };

struct workload {
    GRand *streams[STREAM_N];
    uint32_t *order;
    uint32_t n, next;
};

static GRand *stream_new(uint32_t seed, enum stream stream)
{
    const guint32 words[] = {seed, stream};

    return g_rand_new_with_seed_array(words, G_N_ELEMENTS(words));
}

static void shuffle(GRand *chance, uint32_t *items, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t j = (uint32_t)g_rand_int_range(chance, 0, (gint32)i);
        const uint32_t item = items[i - 1];
        items[i - 1] = items[j];
        items[j] = item;
    }
}

static uint32_t *count_up(uint32_t n)
{
    uint32_t *items = g_new(uint32_t, n + 1);

    for (uint32_t i = 0; i < n; i++)
        items[i] = i;
    return items;
}

struct workload *workload_new(uint32_t seed, uint32_t n, bool shuffled)
{
    struct workload *workload = g_new0(struct workload, 1);

    for (unsigned i = 0; i < STREAM_N; i++)
        workload->streams[i] = stream_new(seed, (enum stream)i);
    workload->n = n;
    workload->order = count_up(n);
    if (shuffled)
        shuffle(workload->streams[STREAM_ORDER], workload->order, n);
    return workload;
}

void workload_free(struct workload *workload)
{
    if (!workload)
        return;
    for (unsigned i = 0; i < STREAM_N; i++)
        g_rand_free(workload->streams[i]);
    g_free(workload->order);
    g_free(workload);
}

bool workload_next(struct workload *workload, uint32_t *ret_pod)
{
    if (workload->next == workload->n)
        return false;
    *ret_pod = workload->order[workload->next++];
    return true;
}

uint32_t workload_draw(struct workload *workload)
{
    return (uint32_t)g_rand_int_range(workload->streams[STREAM_DRAWS], 0, (gint32)workload->n);
}

double workload_time(struct workload *workload, double mean)
{
    return -mean * log1p(-g_rand_double(workload->streams[STREAM_TIMES]));
}

uint32_t workload_pick(struct workload *workload, uint32_t n)
{
    return (uint32_t)g_rand_int_range(workload->streams[STREAM_PICKS], 0, (gint32)n);
}

uint32_t *workload_permutation(uint32_t seed, uint32_t n)
{
    GRand *chance = stream_new(seed, STREAM_NAMES);
    uint32_t *items = count_up(n);

    shuffle(chance, items, n);
    g_rand_free(chance);
    return items;
}
