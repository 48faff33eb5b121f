/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/instances.h"

#include "core/bytes.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define NOBODY (-1)

/* A profile of a node. */
struct profile {
    const char *resource;
    int64_t memory, slices;
    int64_t all, free, left; /* instances; `left` in one choice */
};

/* Of instances that one holder has, and whose size is known. */
static bool read_profile(const struct pool *pool, struct profile *ret_profile)
{
    struct instance_size size;

    if (!dialect_read_instance(pool->resource, &size) || size.shared || size.memory == 0 ||
        pool->capacity == 0)
        return false;
    *ret_profile = (struct profile){
        .resource = pool->resource,
        .memory = MAX(pool->memory, size.memory),
        .slices = size.slices,
        .all = pool->capacity,
        .free = MAX(pool->capacity - pool->used, 0),
    };
    return true;
}

/* The smaller first; of those alike the one with the plainest name. */
static int compare(const struct profile *a, const struct profile *b)
{
    const size_t left = strlen(a->resource), right = strlen(b->resource);

    if (a->memory != b->memory)
        return a->memory < b->memory ? -1 : 1;
    if (a->slices != b->slices)
        return a->slices < b->slices ? -1 : 1;
    return left != right ? (left < right ? -1 : 1) : strcmp(a->resource, b->resource);
}

static int compare_profiles(const void *a, const void *b)
{
    return compare(a, b);
}

static bool is_enough(const struct profile *profile, const struct instance_wish *wish)
{
    return profile->memory >= wish->memory && profile->slices >= wish->slices;
}

/* One node's profiles, the smallest first, and which of them each wish has. */
struct choice {
    struct profile profiles[NODE_POOLS_MAX];
    int n_profiles;
    const struct instance_wish *wishes;
    size_t n;
    int *taken; /* per wish: its profile, or NOBODY */
    bool *seen; /* per profile, in one search */
};

/* Finds an instance for the wish, if others that have theirs must take other ones. */
static bool give(struct choice *choice, size_t wish)
{
    for (int i = 0; i < choice->n_profiles; i++) {
        struct profile *profile = &choice->profiles[i];
        if (!is_enough(profile, &choice->wishes[wish]) || choice->seen[i] || profile->left == 0)
            continue;
        profile->left--;
        choice->taken[wish] = i;
        return true;
    }
    for (int i = 0; i < choice->n_profiles; i++) {
        if (!is_enough(&choice->profiles[i], &choice->wishes[wish]) || choice->seen[i])
            continue;
        choice->seen[i] = true;
        for (size_t j = 0; j < choice->n; j++) {
            if (choice->taken[j] != i || !give(choice, j))
                continue;
            choice->taken[wish] = i;
            return true;
        }
    }
    return false;
}

/* Those who ask by name have theirs first. */
static bool give_named(struct choice *choice, const struct instance_wish *wish)
{
    for (int i = 0; i < choice->n_profiles; i++) {
        struct profile *profile = &choice->profiles[i];
        if (!g_str_equal(profile->resource, wish->resource))
            continue;
        if (profile->left < wish->count)
            return false;
        profile->left -= wish->init ? 0 : wish->count;
        return true;
    }
    return false;
}

/* Init containers come before the others, and leave what they had: any one that is left beside the
 * sidecars' will do, and one that the pod has anyway as well as another. Sidecars count as the
 * others do, which is a little more than kubelet makes of them. */
static bool give_init(struct choice *choice, size_t wish)
{
    for (int i = 0; i < choice->n_profiles; i++) {
        if (!is_enough(&choice->profiles[i], &choice->wishes[wish]) || choice->profiles[i].left == 0)
            continue;
        choice->taken[wish] = i;
        return true;
    }
    for (int i = 0; i < choice->n_profiles; i++) {
        for (size_t j = 0; j < choice->n; j++) {
            if (choice->taken[j] != i || choice->wishes[j].init ||
                !is_enough(&choice->profiles[i], &choice->wishes[wish]))
                continue;
            choice->taken[wish] = i;
            return true;
        }
    }
    return false;
}

static bool give_all(struct choice *choice, bool free)
{
    for (int i = 0; i < choice->n_profiles; i++)
        choice->profiles[i].left = free ? choice->profiles[i].free : choice->profiles[i].all;
    for (size_t i = 0; i < choice->n; i++) {
        choice->taken[i] = NOBODY;
        if (choice->wishes[i].memory == 0 && !give_named(choice, &choice->wishes[i]))
            return false;
    }
    for (size_t i = 0; i < choice->n; i++) {
        if (choice->wishes[i].memory == 0 || choice->wishes[i].init)
            continue;
        memset(choice->seen, 0, NODE_POOLS_MAX * sizeof *choice->seen);
        if (!give(choice, i))
            return false;
    }
    for (size_t i = 0; i < choice->n; i++) {
        if (choice->wishes[i].memory > 0 && choice->wishes[i].init && !give_init(choice, i))
            return false;
    }
    return true;
}

/* The better of two nodes' answers has instances free, then less memory, fewer slices, and plainer
 * names. */
struct answer {
    bool found, free;
    int64_t memory, slices;
    size_t letters;
    const char **resources; /* per wish */
};

static bool is_better(const struct answer *a, const struct answer *b)
{
    if (!b->found || a->free != b->free)
        return !b->found || a->free;
    if (a->memory != b->memory)
        return a->memory < b->memory;
    return a->slices != b->slices ? a->slices < b->slices : a->letters < b->letters;
}

static void offer(const struct choice *choice, bool free, struct answer *best)
{
    struct answer answer = {true, free, 0, 0, 0, best->resources};

    for (size_t i = 0; i < choice->n; i++) {
        if (choice->taken[i] == NOBODY)
            continue;
        const struct profile *profile = &choice->profiles[choice->taken[i]];
        answer.memory += profile->memory;
        answer.slices += profile->slices;
        answer.letters += strlen(profile->resource);
    }
    if (!is_better(&answer, best))
        return;
    for (size_t i = 0; i < choice->n; i++)
        answer.resources[i] =
            choice->taken[i] == NOBODY ? NULL : choice->profiles[choice->taken[i]].resource;
    *best = answer;
}

static void read_node(const struct node *node, struct choice *choice)
{
    choice->n_profiles = 0;
    for (int32_t i = 0; i < node->n_pools && choice->n_profiles < NODE_POOLS_MAX; i++) {
        if (read_profile(&node->pools[i], &choice->profiles[choice->n_profiles]))
            choice->n_profiles++;
    }
    qsort(choice->profiles, (size_t)choice->n_profiles, sizeof choice->profiles[0],
          compare_profiles);
}

bool instances_choose(struct ledger *ledger, struct instance_wish *wishes, size_t n,
                      const char **ret_largest, size_t *ret_which)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    g_autofree int *taken = g_new(int, n);
    g_autofree bool *seen = g_new(bool, NODE_POOLS_MAX);
    g_autofree bool *possible = g_new0(bool, n);
    g_autofree const char **resources = g_new0(const char *, n);
    struct choice choice = {.wishes = wishes, .n = n, .taken = taken, .seen = seen};
    struct answer best = {.resources = resources};
    struct profile largest = {0};

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->present || node->cordoned)
            continue;
        read_node(node, &choice);
        const struct profile *last = &choice.profiles[MAX(choice.n_profiles, 1) - 1];
        if (choice.n_profiles > 0 && (!largest.resource || compare(last, &largest) > 0))
            largest = *last;
        for (int j = 0; j < choice.n_profiles; j++) {
            for (size_t k = 0; k < n; k++)
                possible[k] |= is_enough(&choice.profiles[j], &wishes[k]);
        }
        if (choice.n_profiles > 0 && give_all(&choice, true))
            offer(&choice, true, &best);
        else if (choice.n_profiles > 0 && !best.free && give_all(&choice, false))
            offer(&choice, false, &best);
    }
    *ret_largest = NULL;
    for (size_t i = 0; i < n && !best.found; i++) {
        if (possible[i] || *ret_largest || wishes[i].memory == 0)
            continue;
        *ret_largest = largest.resource ? largest.resource : "none: no node has any";
        *ret_which = i;
    }
    for (size_t i = 0; i < n && best.found; i++) {
        if (resources[i])
            wishes[i].resource = resources[i];
    }
    return best.found;
}
