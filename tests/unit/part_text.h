/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a record says of a part. */
#include "gate/part.h"
#include "store/store.h"

static inline void write_part(struct json_writer *writer, struct store *store,
                              const struct part *part)
{
    void *image = part->image->begin(parts_of(store_parts(store), part));

    while (part->image->take && part->image->take(image))
        continue;
    part->image->encode(writer, image);
    part->image->free(image);
}
