/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The line of a record that says what is known of a part. */
#include "record/record.h"
#include "store/store.h"

static inline struct record *record_part(struct store *store, const struct part *part,
                                         uint64_t number)
{
    store_lock(store);
    void *image = part->image->begin(store_part(store, part));
    while (part->image->take && part->image->take(image))
        continue;
    store_unlock(store);
    struct record *record = record_new(&(struct observation){
        OBSERVED_PART, number, .feed = (enum feed)part_place(part), .part = part, .image = image});
    part->image->free(image);
    return record;
}
