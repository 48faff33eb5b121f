/* SPDX-License-Identifier: Apache-2.0 */
#include "base/roll.h"

void roll_init(struct roll *roll)
{
    *roll = (struct roll){.entries = g_ptr_array_new()};
}

void roll_clear(struct roll *roll)
{
    g_clear_pointer(&roll->entries, g_ptr_array_unref);
}

void roll_add(struct roll *roll, struct roll_entry *entry)
{
    *entry = (struct roll_entry){roll->entries->len, roll->image};
    g_ptr_array_add(roll->entries, entry);
}

/* The last one takes its place. If that has had its turn, a second one changes nothing. */
void roll_remove(struct roll *roll, struct roll_entry *entry)
{
    roll_change(roll, entry);
    g_ptr_array_remove_index_fast(roll->entries, entry->at);
    if (entry->at < roll->entries->len)
        ((struct roll_entry *)roll->entries->pdata[entry->at])->at = entry->at;
    roll->left = MIN(roll->left, roll->entries->len);
}

void roll_save(struct roll *roll, struct roll_entry *entry)
{
    if (entry->image == roll->image)
        return;
    entry->image = roll->image;
    roll->save(entry, roll->data);
}

const struct roll_entry *roll_walk(const struct roll *roll, guint *at)
{
    *at = MIN(*at, roll->entries->len);
    return *at > 0 ? roll->entries->pdata[--*at] : NULL;
}

void roll_begin_image(struct roll *roll, void (*save)(const struct roll_entry *entry, void *data),
                      void *data)
{
    g_assert(!roll->save);
    roll->image++;
    roll->left = roll->entries->len;
    roll->save = save;
    roll->data = data;
}

bool roll_take(struct roll *roll, guint n)
{
    for (; n > 0 && roll->left > 0; n--)
        roll_save(roll, roll->entries->pdata[--roll->left]);
    if (roll->left > 0)
        return true;
    roll->save = NULL;
    return false;
}
