/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All members of something, in no order, of which an image of one moment can be taken a few at a time
 * while members come, change and go: so that nobody holds the store's lock for as long as there are
 * members.
 *
 * An image begins in one hold of the lock and belongs to that moment. Each member that is there then is
 * saved once, as it is then: when its turn comes, or before it changes or goes, of which its owner has to
 * tell first (roll_change, roll_remove). Who comes later is not in it. One image at a time.
 *
 * Guarded by the lock of what it is part of.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* A member embeds this as its first one. */
struct roll_entry {
    guint at;       /* its place on the roll */
    uint32_t image; /* the last one in which it is, or after whose begin it has come */
};

struct roll {
    GPtrArray *entries; /* struct roll_entry *, borrowed */
    uint32_t image;     /* how many have begun */
    guint left;         /* so many of the entries, the first, have not had their turn */
    void (*save)(const struct roll_entry *entry, void *data); /* NULL: no image is being taken */
    void *data;
};

void roll_init(struct roll *roll);
void roll_clear(struct roll *roll);

void roll_add(struct roll *roll, struct roll_entry *entry);
/* Before it goes. */
void roll_remove(struct roll *roll, struct roll_entry *entry);

/* Saves it if the image that is being taken needs it as it still is. */
void roll_save(struct roll *roll, struct roll_entry *entry);
/* Before it changes. */
static inline void roll_change(struct roll *roll, struct roll_entry *entry)
{
    if (G_UNLIKELY(roll->save))
        roll_save(roll, entry);
}

/* For who needs no image: the next entry from `*at` down, G_MAXUINT at first; NULL, with 0: there are no
 * more. Whoever is on the roll all the time is found, perhaps twice, and others may be. */
const struct roll_entry *roll_walk(const struct roll *roll, guint *at);

/* Under the lock, like all of these: the image is of this moment. */
void roll_begin_image(struct roll *roll, void (*save)(const struct roll_entry *entry, void *data),
                      void *data);
/* The turn of up to `n` more. False: that was the last, and the image is complete. */
bool roll_take(struct roll *roll, guint n);
