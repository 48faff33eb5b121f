/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The image of one part (gate/part.h), and the number under which it is told (store/observer.h). */
#include "gate/part.h"
#include "store/observer.h"

struct part_picture {
    const struct part *part;
    void *image;     /* NULL: there is nothing to tell */
    uint64_t number; /* 0: it cannot be told */
};

/* Under the lock, as it is now. */
struct part_picture part_picture_begin(const struct part *part, void *self,
                                       struct observer *observer);
/* Under the lock: some more of it. False: it is complete. */
bool part_picture_take(struct part_picture *picture);
/* Tells a complete one, and frees it. */
void part_picture_tell(struct part_picture *picture, struct observer *observer);
