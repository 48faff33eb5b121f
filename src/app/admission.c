/* SPDX-License-Identifier: Apache-2.0 */
#include "app/admission.h"

#include "wire/admission.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define MIG_PREFIX "nvidia.com/mig-"
#define SHARED_SUFFIX ".shared"
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

/* A profile that some node has. */
struct profile {
    const char *resource; /* the node's, under the lock */
    int64_t memory, slices;
    bool free; /* an instance of it, somewhere */
};

struct wish {
    int64_t memory, slices;
};

/* A number and what follows it; no number is as large as `max`. */
static bool take_number(const char **text, const char *unit, guint64 max, int64_t *ret_value)
{
    char *end;
    const guint64 value = g_ascii_isdigit(**text) ? g_ascii_strtoull(*text, &end, 10) : max;

    if (value == 0 || value >= max || !g_str_has_prefix(end, unit))
        return false;
    *text = end + strlen(unit);
    *ret_value = (int64_t)value;
    return true;
}

/* "nvidia.com/mig-2g.10gb.me": two slices, and memory as people read it. */
static bool read_profile(const struct pool *pool, struct profile *ret_profile)
{
    const char *text = pool->resource + strlen(MIG_PREFIX);
    int64_t slices, gigabytes;

    if (!g_str_has_prefix(pool->resource, MIG_PREFIX) ||
        g_str_has_suffix(pool->resource, SHARED_SUFFIX) || pool->capacity == 0 ||
        !take_number(&text, "g.", 100, &slices) || !take_number(&text, "gb", 10000, &gigabytes))
        return false;
    *ret_profile = (struct profile){
        .resource = pool->resource,
        .memory = MAX(pool->memory, gigabytes * GIB),
        .slices = slices,
        .free = pool->used < pool->capacity,
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

/* Whether the first is the better answer. */
static bool is_better(const struct profile *a, const struct profile *b)
{
    return !b->resource || (a->free != b->free ? a->free : compare(a, b) < 0);
}

/* Under the lock. False: no profile is enough; `ret_largest` is the largest there is, if any. */
static bool choose(struct ledger *ledger, const struct wish *wish, struct profile *ret_profile,
                   struct profile *ret_largest)
{
    const GPtrArray *nodes = ledger_nodes(ledger);
    struct profile profile, best = {0}, largest = {0};

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        for (int32_t j = 0; node->present && !node->cordoned && j < node->n_pools; j++) {
            if (!read_profile(&node->pools[j], &profile))
                continue;
            if (!largest.resource || compare(&profile, &largest) > 0)
                largest = profile;
            if (profile.memory >= wish->memory && profile.slices >= wish->slices &&
                is_better(&profile, &best))
                best = profile;
        }
    }
    *ret_profile = best;
    *ret_largest = largest;
    return best.resource;
}

/* False without an error: the container wishes for nothing. */
static bool read_wish(const struct container_view *view, struct wish *ret_wish, GError **error)
{
    const char *memory = container_view_amount(view, ADMISSION_MIG_MEMORY);
    const char *slices = container_view_amount(view, ADMISSION_MIG_SLICES);
    const char *name = view->name ? view->name : "";
    const struct string_pairs *lists[] = {&view->limits, &view->requests};

    *ret_wish = (struct wish){0};
    if (!memory && !slices)
        return false;
    if (!memory || !quantity_parse(memory, &ret_wish->memory, NULL) || ret_wish->memory < MIB) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "container '%.64s': %s is '%.64s': write an amount of memory, such as '15Gi'",
                    name, ADMISSION_MIG_MEMORY, memory ? memory : "");
        return false;
    }
    if (slices && (!quantity_parse(slices, &ret_wish->slices, NULL) || ret_wish->slices < 1)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "container '%.64s': %s is '%.64s': write a whole number, such as '2'", name,
                    ADMISSION_MIG_SLICES, slices);
        return false;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (size_t j = 0; j < lists[i]->n; j++) {
            if (!g_str_has_prefix(lists[i]->items[j].key, MIG_PREFIX))
                continue;
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "container '%.64s' asks for %s and for %.128s: keep one", name,
                        ADMISSION_MIG_MEMORY, lists[i]->items[j].key);
            return false;
        }
    }
    return true;
}

/* Under the lock: what the container is to ask for, or an error for people. */
static bool answer(struct ledger *ledger, struct json_arena *arena,
                   struct admission_container *container, GError **error)
{
    struct profile profile, largest;
    GError *failure = NULL;
    struct wish wish;

    if (!read_wish(&container->view, &wish, &failure)) {
        if (failure)
            g_propagate_error(error, failure);
        return !failure;
    }
    if (!choose(ledger, &wish, &profile, &largest)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "container '%.64s': no node has a MIG profile with %s of memory and %"
                    G_GINT64_FORMAT " slices; the largest is %.128s",
                    container->view.name ? container->view.name : "",
                    container_view_amount(&container->view, ADMISSION_MIG_MEMORY), wish.slices,
                    largest.resource ? largest.resource : "none: no node has any");
        return false;
    }
    const size_t size = strlen(profile.resource) + 1;
    container->resource = memcpy(json_arena_alloc(arena, size), profile.resource, size);
    return true;
}

bool extender_admit_mig(struct extender *extender, const char *body, size_t length, GString *reply,
                        GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) refusal = NULL;
    struct admission_review review;
    struct json_writer writer;

    if (!admission_review_parse(arena, body, length, &review, error))
        return false;
    if (!store_check_synced(extender->store, error))
        return false;
    struct ledger *ledger = store_lock(extender->store);
    bool allowed = true;
    for (size_t i = 0; i < review.n_containers && allowed; i++)
        allowed = answer(ledger, arena, &review.containers[i], &refusal);
    store_unlock(extender->store);
    json_writer_init(&writer, reply);
    if (!allowed)
        admission_refusal_encode(&writer, &review, refusal->message);
    else
        admission_answer_encode(&writer, &review);
    return true;
}
