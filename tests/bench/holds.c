/* SPDX-License-Identifier: Apache-2.0 */
#include "holds.h"

#include <glib.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOLDERS_MAX 128
#define PARTS 8 /* of each power of two */
#define BUCKETS (40 * PARTS)

struct holder {
    const char *who;
    bool decides;
    uint64_t n;
    uint64_t longest_ns, all_ns;
    uint64_t buckets[BUCKETS]; /* by length */
};

struct holds {
    struct holder holders[HOLDERS_MAX];
    size_t n;
    struct holder *now; /* who holds it */
    int64_t since_ns;
};

static int64_t thread_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

struct holds *holds_new(void)
{
    return g_new0(struct holds, 1);
}

void holds_free(struct holds *holds)
{
    g_free(holds);
}

/* One name may have several addresses. */
static struct holder *find(struct holds *holds, const char *who, bool decides)
{
    for (size_t i = 0; i < holds->n; i++) {
        struct holder *holder = &holds->holders[i];
        if (holder->decides == decides && (holder->who == who || strcmp(holder->who, who) == 0))
            return holder;
    }
    g_assert(holds->n < HOLDERS_MAX);
    struct holder *holder = &holds->holders[holds->n++];
    *holder = (struct holder){.who = who, .decides = decides};
    return holder;
}

static void begin(void *data, const char *who, bool decides)
{
    struct holds *holds = data;

    holds->now = find(holds, who, decides);
    holds->since_ns = thread_ns();
}

/* Of the length whose binary logarithm it is, in parts. */
static size_t bucket_of(uint64_t ns)
{
    const unsigned power = ns < PARTS ? 0 : 63 - (unsigned)__builtin_clzll(ns);
    const uint64_t part = ns < PARTS ? ns : (ns - (UINT64_C(1) << power)) * PARTS >> power;

    return MIN(power * PARTS + (size_t)part, BUCKETS - 1);
}

static uint64_t bucket_end(size_t bucket)
{
    const uint64_t from = UINT64_C(1) << bucket / PARTS;

    return bucket < PARTS ? bucket + 1 : from + (bucket % PARTS + 1) * from / PARTS;
}

static void end(void *data)
{
    struct holds *holds = data;
    struct holder *holder = holds->now;
    const uint64_t ns = (uint64_t)(thread_ns() - holds->since_ns);

    holder->n++;
    holder->all_ns += ns;
    holder->longest_ns = MAX(holder->longest_ns, ns);
    holder->buckets[bucket_of(ns)]++;
}

void holds_measure(struct holds *holds, struct store *store)
{
    store_measure(store, &(struct lock_meter){begin, end, holds});
}

/* At most so much, of so many thousandths of the holds. */
static uint64_t quantile(const struct holder *holder, uint64_t thousandths)
{
    const uint64_t wanted = (holder->n * thousandths + 999) / 1000;
    uint64_t seen = 0;

    for (size_t i = 0; i < BUCKETS; i++) {
        seen += holder->buckets[i];
        if (seen >= wanted)
            return MIN(bucket_end(i), holder->longest_ns);
    }
    return holder->longest_ns;
}

static int compare(const void *a, const void *b)
{
    const struct holder *const *left = a, *const *right = b;

    return ((*left)->longest_ns < (*right)->longest_ns) -
           ((*left)->longest_ns > (*right)->longest_ns);
}

unsigned holds_print(const struct holds *holds, unsigned limit_us, FILE *file)
{
    const struct holder *order[HOLDERS_MAX];
    unsigned longer = 0;

    for (size_t i = 0; i < holds->n; i++)
        order[i] = &holds->holders[i];
    qsort(order, holds->n, sizeof *order, compare);
    fprintf(file, "%-28s %9s %9s %9s %9s %9s %9s\n", "holder (us of thread CPU)", "holds", "p50",
            "p99", "p99.9", "longest", "all ms");
    for (size_t i = 0; i < holds->n; i++) {
        const struct holder *one = order[i];
        const bool over = !one->decides && quantile(one, 999) > limit_us * UINT64_C(1000);

        longer += over;
        fprintf(file, "%-28s %9" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9.1f%s\n", one->who, one->n,
                (double)quantile(one, 500) / 1000, (double)quantile(one, 990) / 1000,
                (double)quantile(one, 999) / 1000, (double)one->longest_ns / 1000,
                (double)one->all_ns / 1e6,
                one->decides ? "  decides"
                : over       ? "  TOO LONG"
                             : "");
    }
    return longer;
}
