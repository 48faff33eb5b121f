/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/queue_image.h"

#include "store/images/part_picture.h"
#include "store/node_walk.h"
#include "store/store_state.h"

struct queue_image {
    struct store *store;
    struct part_picture parts[PART_ROWS_MAX]; /* in the order of the table */
    bool bare;                                /* decisions go without a value model since */
    uint64_t number;                          /* the last; 0: there was none for some part */
};

/* Under the lock. */
static void begin(struct queue_image *image)
{
    const struct store *store = image->store;

    for (size_t i = 0; parts_table[i]; i++) {
        if (!store->parts.selves[i] || !parts_table[i]->image)
            continue;
        image->parts[i] =
            part_picture_begin(parts_table[i], store->parts.selves[i], store->observer);
        if (!image->parts[i].image)
            continue;
        image->number = image->parts[i].number;
        if (image->number == 0)
            break;
    }
    image->bare = store->bare;
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
    for (size_t i = 0; parts_table[i] && !more; i++)
        more = part_picture_take(&image->parts[i]);
    store_unlock(image->store);
    return more;
}

uint64_t queue_image_tell(struct queue_image *take_image)
{
    const uint64_t number = take_image->number;

    for (size_t i = 0; parts_table[i]; i++)
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
