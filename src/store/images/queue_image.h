/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a store knows at one moment and no event shows: who has been waited for, which nodes are left out,
 * what groups hold, what policies have learned. It is taken a few pods at a time under the store's lock,
 * and told to the store's observer without it. What happens meanwhile goes on, and is not in it.
 *
 *   image = queue_image_begin(store); while (queue_image_take(image)) {} queue_image_tell(image);
 *
 * Any thread that holds no lock; one image of a store at a time.
 */
#include "store/store.h"

struct queue_image;

/* The image is of the moment of this call. */
struct queue_image *queue_image_begin(struct store *store);
/* False: it is complete. */
bool queue_image_take(struct queue_image *image);
/* Tells a complete one and frees it. Returns the number under which the last of it was told, after which
 * whoever has listened from here on knows all; 0: not all of it was. */
uint64_t queue_image_tell(struct queue_image *take_image);
