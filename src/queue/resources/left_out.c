/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/resources/left_out.h"

struct space {
    GHashTable *names; /* -> their generation */
    bool more;         /* than those names */
    GHashTable *keys;  /* a set */
};

static void space_free(gpointer data)
{
    struct space *space = data;

    g_hash_table_unref(space->names);
    g_hash_table_unref(space->keys);
    g_free(space);
}

GHashTable *left_out_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, space_free);
}

static struct space *find(GHashTable *spaces, const char *ns)
{
    struct space *space = g_hash_table_lookup(spaces, ns);

    if (space)
        return space;
    space = g_new0(struct space, 1);
    space->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    space->keys = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(spaces, g_strdup(ns), space);
    return space;
}

static void add_name(struct space *space, const char *name, gpointer generation)
{
    if (g_hash_table_size(space->names) < LEFT_OUT_MAX || g_hash_table_contains(space->names, name))
        g_hash_table_replace(space->names, g_strdup(name), generation);
    else
        space->more = true;
}

void left_out_copy(GHashTable *copy, GHashTable *from)
{
    GHashTableIter spaces, names, keys;
    gpointer ns, value, name, generation;

    g_hash_table_iter_init(&spaces, from);
    while (g_hash_table_iter_next(&spaces, &ns, &value)) {
        const struct space *space = value;
        struct space *own = find(copy, ns);
        g_hash_table_iter_init(&names, space->names);
        while (g_hash_table_iter_next(&names, &name, &generation))
            add_name(own, name, generation);
        g_hash_table_iter_init(&keys, space->keys);
        while (g_hash_table_iter_next(&keys, &name, NULL))
            g_hash_table_add(own->keys, name);
        own->more = space->more;
    }
}

bool left_out_add(GHashTable *spaces, const char *ns, const char *name, uint32_t generation,
                  const char *key)
{
    struct space *space = find(spaces, ns);

    add_name(space, name, GUINT_TO_POINTER(generation));
    return g_hash_table_add(space->keys, (gpointer)key);
}

bool left_out_remove(GHashTable *spaces, const char *ns, const char *name)
{
    struct space *space = g_hash_table_lookup(spaces, ns);

    return space && g_hash_table_remove(space->names, name) &&
           g_hash_table_size(space->names) == 0 && !space->more && g_hash_table_remove(spaces, ns);
}

static gboolean is_of_another(gpointer name, gpointer generation, gpointer now)
{
    return generation != now;
}

bool left_out_sweep(GHashTable *spaces, uint32_t generation)
{
    GHashTableIter iter;
    gpointer value;
    bool any = false;

    g_hash_table_iter_init(&iter, spaces);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct space *space = value;
        g_hash_table_foreach_remove(space->names, is_of_another, GUINT_TO_POINTER(generation));
        space->more &= g_hash_table_size(space->names) == LEFT_OUT_MAX;
        if (g_hash_table_size(space->names) > 0)
            continue;
        g_hash_table_iter_remove(&iter);
        any = true;
    }
    return any;
}

bool left_out_has(GHashTable *spaces, const char *ns, const char *key)
{
    const struct space *space = g_hash_table_lookup(spaces, ns);

    return space && g_hash_table_contains(space->keys, key);
}
