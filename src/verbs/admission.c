/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/admission.h"

#include "core/bytes.h"
#include "verbs/instances.h"
#include "wire/admission.h"

#include <gpuledger/dialect.h>
#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>


/* Requests of such resources equal their limits, or are left out. */
static bool is_said_once(const struct container_view *view, const char *resource, GError **error)
{
    const char *limit = string_pairs_get(&view->limits, resource);
    const char *request = string_pairs_get(&view->requests, resource);
    int64_t most, least;

    if (!limit || !request ||
        (quantity_parse(limit, &most, NULL) && quantity_parse(request, &least, NULL) && most == least) ||
        g_str_equal(limit, request))
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "container '%.64s': %s is '%.64s' in limits and '%.64s' in requests: write the same "
                "amount, or only one of them",
                view->name ? view->name : "", resource, limit, request);
    return false;
}

/* False without an error: the container wishes for nothing. */
static bool read_wish(const struct container_view *view, struct instance_wish *ret_wish, GError **error)
{
    const char *memory = container_view_amount(view, ADMISSION_MIG_MEMORY);
    const char *slices = container_view_amount(view, ADMISSION_MIG_SLICES);
    const char *name = view->name ? view->name : "";
    const struct string_pairs *lists[] = {&view->limits, &view->requests};

    *ret_wish = (struct instance_wish){.init = view->init && !view->sidecar, .count = 1};
    if (!memory && !slices)
        return false;
    if (!is_said_once(view, ADMISSION_MIG_MEMORY, error) ||
        !is_said_once(view, ADMISSION_MIG_SLICES, error))
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
            struct instance_size size;
            if (!dialect_read_instance(lists[i]->items[j].key, &size))
                continue;
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "container '%.64s' asks for %s and for %.128s: keep one", name,
                        ADMISSION_MIG_MEMORY, lists[i]->items[j].key);
            return false;
        }
    }
    return true;
}

/* What the container asks for by name, beside those who ask for memory. */
static void add_named(const struct container_view *view, GArray *wishes)
{
    const struct string_pairs *lists[] = {&view->limits, &view->requests};

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (size_t j = 0; j < lists[i]->n; j++) {
            const struct string_pair *pair = &lists[i]->items[j];
            struct instance_size size;
            int64_t count;
            if (!dialect_read_instance(pair->key, &size) || size.shared ||
                (i == 1 && string_pairs_get(&view->limits, pair->key)) ||
                !quantity_parse(pair->value, &count, NULL) || count == 0)
                continue;
            const struct instance_wish wish = {.resource = pair->key,
                                               .count = count,
                                               .init = view->init && !view->sidecar};
            g_array_append_val(wishes, wish);
        }
    }
}

/* What the pod's containers want, and which of them (a number of each that asks for memory). */
static bool read_wishes(const struct admission_review *review, GArray *wishes, GArray *who,
                        GError **error)
{
    for (size_t i = 0; i < review->n_containers; i++) {
        const struct container_view *view = &review->containers[i].view;
        GError *failure = NULL;
        struct instance_wish wish;
        if (read_wish(view, &wish, &failure)) {
            g_array_append_val(wishes, wish);
            g_array_append_val(who, i);
        } else if (failure) {
            g_propagate_error(error, failure);
            return false;
        }
    }
    for (size_t i = 0; i < review->n_containers; i++)
        add_named(&review->containers[i].view, wishes);
    return true;
}

static void refuse(const struct admission_review *review, const GArray *wishes, const GArray *who,
                   size_t which, const char *largest, GError **error)
{
    if (!largest) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "no node has MIG instances for all %u containers of the pod that ask for %s at "
                    "once: ask for less, or for one profile by its name",
                    who->len, ADMISSION_MIG_MEMORY);
        return;
    }
    const struct container_view *view =
        &review->containers[g_array_index(who, size_t, which)].view;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "container '%.64s': no node has a MIG profile with %s of memory and %" G_GINT64_FORMAT
                " slices; the largest is %.128s",
                view->name ? view->name : "", container_view_amount(view, ADMISSION_MIG_MEMORY),
                g_array_index(wishes, struct instance_wish, which).slices, largest);
}

/* Under the lock: what the containers are to ask for, or an error for people. */
static bool answer(struct ledger *ledger, struct json_arena *arena,
                   struct admission_review *review, GError **error)
{
    g_autoptr(GArray) wishes = g_array_new(FALSE, FALSE, sizeof(struct instance_wish));
    g_autoptr(GArray) who = g_array_new(FALSE, FALSE, sizeof(size_t));
    const char *largest;
    size_t which = 0;

    if (!read_wishes(review, wishes, who, error))
        return false;
    if (who->len == 0)
        return true;
    if (!instances_choose(ledger, &g_array_index(wishes, struct instance_wish, 0), wishes->len,
                          &largest, &which)) {
        refuse(review, wishes, who, which, largest, error);
        return false;
    }
    for (guint i = 0; i < who->len; i++) {
        const char *resource = g_array_index(wishes, struct instance_wish, i).resource;
        const size_t size = strlen(resource) + 1;
        review->containers[g_array_index(who, size_t, i)].resource =
            memcpy(json_arena_alloc(arena, size), resource, size);
    }
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
    const bool allowed = answer(ledger, arena, &review, &refusal);
    store_unlock(extender->store);
    json_writer_init(&writer, reply);
    if (!allowed)
        admission_refusal_encode(&writer, &review, refusal->message);
    else
        admission_answer_encode(&writer, &review);
    return true;
}
