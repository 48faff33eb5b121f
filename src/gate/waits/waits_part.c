/* SPDX-License-Identifier: Apache-2.0 */
/* Waits as a part. */
#include "gate/waits/waits.h"

struct waits_part {
    struct ledger *ledger;
    struct waits *waits;
};

static void *start(const struct part_base *base, const void *settings)
{
    struct waits_part *self = g_new(struct waits_part, 1);

    *self = (struct waits_part){base->ledger, waits_new()};
    return self;
}

static void stop(void *of)
{
    waits_free(((struct waits_part *)of)->waits);
    g_free(of);
}

static bool copy(void *of, const void *from, struct part_cursor *at)
{
    return waits_copy(((struct waits_part *)of)->waits, ((const struct waits_part *)from)->waits,
                      at);
}

static bool pod(void *of, const struct pod_change *change)
{
    struct waits_part *self = of;

    if (change->kind == POD_CHANGE_BOUND)
        waits_note(self->waits, change->allocation, change->admitted);
    else if (change->kind == POD_CHANGE_VANISHED)
        waits_note_vanished(self->waits, self->ledger, change->allocation);
    else if (change->kind == POD_CHANGE_GONE)
        waits_forget(self->waits, change->uid);
    return false;
}

static unsigned settle(void *of, int64_t now_ms)
{
    struct waits_part *self = of;
    const bool began = waits_begin(self->waits, self->ledger, now_ms);
    const bool ended = waits_end(self->waits, self->ledger, now_ms);

    return (began ? PART_MOVED : 0) | (ended ? PART_OPENED : 0);
}

static void *begin(void *of)
{
    struct waits_image *image = waits_image_new();

    waits_image_begin(image, ((struct waits_part *)of)->waits);
    return image;
}

static bool take(void *image)
{
    return waits_image_take(image);
}

static void encode(struct json_writer *writer, void *image)
{
    waits_encode(writer, image);
}

static void free_image(void *image)
{
    waits_image_free(image);
}

static bool learn(void *of, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct waits_part *self = of;

    return waits_decode(self->waits, self->ledger, arena, object, error);
}

static const struct part_image image = {"waits", begin, take, encode, free_image, learn};

const struct part part_waits = {
    .name = "waits",
    .source = PART_OF_CALLS,
    .start = start,
    .stop = stop,
    .copy = copy,
    .pod = pod,
    .settle = settle,
    .image = &image,
};
