/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/queue_image.h"

#include "policy/demand.h"
#include "store/images/part_picture.h"
#include "store/node_walk.h"
#include "store/store_state.h"

struct queue_image {
    struct store *store;
    struct arrivals_image *arrivals;
    uint64_t arrivals_number;                 /* 0: they are not in it, as with the others */
    struct part_picture parts[PART_ROWS_MAX]; /* in the order of the table */
    struct demand *learned;
    bool bare;       /* a model is made of it before decisions go by one */
    uint64_t number; /* the last; 0: there was none for some part */
};

/* Under the lock: a number for the next part; 0: it cannot be told. */
static uint64_t next_number(struct queue_image *image)
{
    image->number = observer_number(image->store->observer);
    return image->number;
}

static bool begin_arrivals(struct queue_image *image)
{
    struct store *store = image->store;

    if (store->options.hold_ms == 0)
        return true;
    image->arrivals_number = next_number(image);
    if (image->arrivals_number > 0)
        arrivals_image_begin(image->arrivals, store->arrivals, store->ledger, store->nominations);
    return image->arrivals_number > 0;
}

static bool begin_parts(struct queue_image *image)
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
            return false;
    }
    return true;
}

static bool take_parts(struct queue_image *image)
{
    bool more = false;

    for (size_t i = 0; parts_table[i] && !more; i++)
        more = part_picture_take(&image->parts[i]);
    return more;
}

static bool begin_learned(struct queue_image *image)
{
    struct store *store = image->store;

    if (next_number(image) == 0)
        return false;
    demand_unsettle(store->demand); /* as whoever learns it does, these two */
    image->bare = store_await_outlook(store);
    hints_forget_all(store->hints);
    passes_forget_all(store->unsearched);
    node_books_forget(store->verdicts);
    node_books_forget(store->ratings);
    image->learned = demand_dup(store->demand);
    return true;
}

/* Under the lock, in the order of their numbers. */
static void begin(struct queue_image *image)
{
    static bool (*const parts[])(struct queue_image *image) = {
        begin_parts,
        begin_arrivals,
        begin_learned,
    };

    for (size_t i = 0; i < G_N_ELEMENTS(parts) && parts[i](image); i++)
        continue;
}

struct queue_image *queue_image_begin(struct store *store)
{
    struct queue_image *image = g_new0(struct queue_image, 1);

    image->store = store;
    image->arrivals = arrivals_image_new();
    store_lock(store);
    begin(image);
    store_unlock(store);
    return image;
}

/* Under the lock: some more of the first part that is not complete. */
static bool take(struct queue_image *image)
{
    return (image->arrivals_number > 0 && arrivals_image_take(image->arrivals)) ||
           take_parts(image);
}

bool queue_image_take(struct queue_image *image)
{
    store_lock_again(image->store);
    const bool goes_on = take(image);
    store_unlock(image->store);
    return goes_on;
}

uint64_t queue_image_tell(struct queue_image *take_image)
{
    struct observer *observer = take_image->store->observer;
    const uint64_t number = take_image->number;

    for (size_t i = 0; parts_table[i]; i++)
        part_picture_tell(&take_image->parts[i], observer);
    observer_tell(observer, &(struct observation){OBSERVED_ARRIVALS, take_image->arrivals_number,
                                                  .arrivals = take_image->arrivals});
    observer_tell(observer,
                  &(struct observation){OBSERVED_LEARNED, take_image->learned ? number : 0,
                                        .demand = take_image->learned, .bare = take_image->bare});
    if (take_image->bare)
        store_refresh_outlook(take_image->store);
    arrivals_image_free(take_image->arrivals);
    demand_free(take_image->learned);
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
