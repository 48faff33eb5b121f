/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/queue_image.h"

#include "store/images/part_picture.h"
#include "store/node_walk.h"
#include "store/store_state.h"

struct queue_image {
    struct store *store;
    struct part_picture parts[PART_ROWS_MAX]; /* in the order in which they are told */
    size_t n_parts;
    bool bare;       /* decisions go without a value model since */
    uint64_t number; /* the last; 0: there was none for some part */
};

/* Under the lock: the parts that a replay compares with what it knows, or those that it only learns. */
static bool begin_parts(struct queue_image *image, bool compared)
{
    const struct store *store = image->store;

    for (size_t i = 0; parts_table[i]; i++) {
        const struct part *part = parts_table[i];
        void *self = store->parts.selves[i];
        if (!self || !part->image || (part->image->compared != NULL) != compared)
            continue;
        const struct part_picture picture = part_picture_begin(part, self, store->observer);
        if (!picture.image)
            continue;
        image->parts[image->n_parts++] = picture;
        image->number = picture.number;
        if (image->number == 0)
            return false;
    }
    return true;
}

/* Under the lock. What is learned puts bookings anew, and what a replay knows of arrivals is for those of before. */
static void begin(struct queue_image *image)
{
    if (begin_parts(image, true))
        begin_parts(image, false);
    image->bare = image->store->bare;
}

struct queue_image *queue_image_begin(struct store *store)
{
    struct queue_image *image = g_new0(struct queue_image, 1);

    image->store = store;
    store_lock(store);
    begin(image);
    store_unlock(store);
    return image;
}

bool queue_image_take(struct queue_image *image)
{
    bool more = false;

    store_lock_again(image->store);
    for (size_t i = 0; i < image->n_parts && !more; i++)
        more = part_picture_take(&image->parts[i]);
    store_unlock(image->store);
    return more;
}

uint64_t queue_image_tell(struct queue_image *take_image)
{
    const uint64_t number = take_image->number;

    for (size_t i = 0; i < take_image->n_parts; i++)
        part_picture_tell(&take_image->parts[i], take_image->store->observer);
    if (take_image->bare)
        store_refresh_outlook(take_image->store);
    g_free(take_image);
    return number;
}

uint64_t store_tell_known(struct store *store)
{
    struct queue_image *image = queue_image_begin(store);

    while (queue_image_take(image))
        continue;
    return queue_image_tell(image);
}
