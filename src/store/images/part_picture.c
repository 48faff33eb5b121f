/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/part_picture.h"

struct part_picture part_picture_begin(const struct part *part, void *self,
                                       struct observer *observer)
{
    struct part_picture picture = {part};

    picture.image = part->image->begin(self);
    if (picture.image)
        picture.number = observer_number(observer);
    return picture;
}

bool part_picture_take(struct part_picture *picture)
{
    return picture->image && picture->part->image->take &&
           picture->part->image->take(picture->image);
}

void part_picture_tell(struct part_picture *picture, struct observer *observer)
{
    if (!picture->image)
        return;
    observer_tell(observer, &(struct observation){OBSERVED_PART, picture->number,
                                                  .feed = (enum feed)part_place(picture->part),
                                                  .part = picture->part, .image = picture->image});
    picture->part->image->free(picture->image);
}
