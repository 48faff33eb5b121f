/* SPDX-License-Identifier: Apache-2.0 */
/* What a record has of groups (gang/gangs.h), with the places that they hold. */
#include "core/ledger.h"
#include "store/booking.h"
#include "store/store_state.h"

PART_ROW(groups, 30);

/* The place of a group's pod. */
struct kept_place {
    char *node;
    struct allocation *held;
};

static void *keep_place(void *data, const char *uid)
{
    const struct store *store = data;
    const struct allocation *held = ledger_get(store->ledger, uid);

    if (!held || held->state != ALLOCATION_HELD)
        return NULL;
    const struct kept_place place = {g_strdup(held->node->name), allocation_dup(held)};
    return g_memdup2(&place, sizeof place);
}

static void write_place(struct json_writer *writer, const void *data)
{
    const struct kept_place *place = data;

    booking_encode_on(writer, place->held, place->node);
}

static void free_place(void *data)
{
    struct kept_place *place = data;

    g_free(place->node);
    allocation_free(place->held);
    g_free(place);
}

static void *begin(void *self)
{
    struct store *store = self;

    if (!store->options.gangs)
        return NULL;
    struct gangs_image *image = gangs_image_new(
        &(struct gang_places){.keep = keep_place, .write = write_place, .free = free_place, store});
    gangs_image_begin(image, store->gangs, store->generation[FEED_PODS]);
    return image;
}

static bool take(void *image)
{
    return gangs_image_take(image);
}

static void encode(struct json_writer *writer, void *image)
{
    gangs_encode(writer, image);
}

static void free_image(void *image)
{
    gangs_image_free(image);
}

static bool read_place(void *data, const char *uid, const cJSON *place)
{
    struct store *store = data;
    g_autoptr(json_arena) arena = json_arena_new();
    const struct request *request = store_request(store, uid);
    const char *node;
    struct allocation *held =
        place ? booking_decode(arena, place, store->options.dialects.classes, &node) : NULL;

    if (!held)
        return false;
    while (request && request->dialect != held->dialect)
        request = request->alternative;
    if (request) {
        terms_unref(held->terms);
        held->terms = terms_ref(request->terms);
        held->host = request->host;
    }
    held->state = ALLOCATION_HELD;
    held->waiting = false;
    ledger_put(store->ledger, node, held);
    return true;
}

static bool learn(void *self, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct store *store = self;

    return gangs_decode(store->gangs, arena, object, store->generation[FEED_PODS], read_place,
                        store, error);
}

static const struct part_image image = {"gangs", begin, take, encode, free_image, learn};

const struct part part_groups = {
    .name = "groups",
    .source = PART_OF_CALLS,
    .start = store_as_part,
    .image = &image,
};
