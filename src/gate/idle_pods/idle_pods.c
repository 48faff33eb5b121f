/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/idle_pods/idle_pods.h"

#include "gate/idle_pods/idle_pods_told.h"

struct idle_pods {
    struct idleness *known; /* NULL: no source has answered yet */
};

struct idleness *idle_pods_known(const void *self)
{
    return ((const struct idle_pods *)self)->known;
}

bool idle_pods_take(void *of, void *idleness)
{
    struct idle_pods *self = of;
    struct idleness **put = idleness, *old = self->known;

    self->known = *put;
    *put = old;
    return true;
}

static void *start(const struct part_base *base, const void *settings)
{
    return g_new0(struct idle_pods, 1);
}

static void stop(void *of)
{
    idleness_unref(((struct idle_pods *)of)->known);
    g_free(of);
}

static bool copy(void *of, const void *from, struct part_cursor *at)
{
    ((struct idle_pods *)of)->known = idleness_ref(((const struct idle_pods *)from)->known);
    return false;
}

/* --- records -------------------------------------------------------------------------------------- */

static void *begin(void *of)
{
    return idleness_ref(((struct idle_pods *)of)->known);
}

static void encode(struct json_writer *writer, void *image)
{
    idle_pods_encode(writer, image);
}

static void free_image(void *image)
{
    idleness_unref(image);
}

static bool learn(void *of, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct idleness *idleness = idle_pods_decode(arena, object, error);
    const bool learned = idleness != NULL;

    if (learned)
        idle_pods_take(of, &idleness);
    idleness_unref(idleness);
    return learned;
}

static const struct part_image image = {
    .kind = "usage", .begin = begin, .encode = encode, .free = free_image, .learn = learn};

const struct part part_idle_pods = {
    .name = "idle_pods",
    .source = PART_OF_WATCHES,
    .start = start,
    .stop = stop,
    .copy = copy,
    .image = &image,
};
