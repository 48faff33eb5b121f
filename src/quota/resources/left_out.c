/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/resources/left_out.h"

#include <string.h>

struct space {
    GHashTable *names; /* -> struct named * */
    bool more;         /* than those names */
    GHashTable *keys;  /* a set */
};

struct named {
    uint32_t generation;
    GArray *limits;
};

static void named_free(gpointer data)
{
    struct named *named = data;

    g_array_unref(named->limits);
    g_free(named);
}

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
    space->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, named_free);
    space->keys = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(spaces, g_strdup(ns), space);
    return space;
}

static void add_name(struct space *space, const char *name, uint32_t generation, GArray *limits)
{
    const struct named named = {generation, limits};

    if (g_hash_table_size(space->names) == LEFT_OUT_MAX &&
        !g_hash_table_contains(space->names, name)) {
        space->more = true;
        return;
    }
    g_array_ref(limits);
    g_hash_table_replace(space->names, g_strdup(name), g_memdup2(&named, sizeof named));
}

void left_out_copy(GHashTable *copy, GHashTable *from)
{
    GHashTableIter spaces, names, keys;
    gpointer ns, value, name, other;

    g_hash_table_iter_init(&spaces, from);
    while (g_hash_table_iter_next(&spaces, &ns, &value)) {
        const struct space *space = value;
        struct space *own = find(copy, ns);
        g_hash_table_iter_init(&names, space->names);
        while (g_hash_table_iter_next(&names, &name, &other)) {
            const struct named *named = other;
            add_name(own, name, named->generation, named->limits);
        }
        g_hash_table_iter_init(&keys, space->keys);
        while (g_hash_table_iter_next(&keys, &name, NULL))
            g_hash_table_add(own->keys, name);
        own->more = space->more;
    }
}

bool left_out_add(GHashTable *spaces, const struct left_out *quota, const char *const *keys)
{
    struct space *space = find(spaces, quota->ns);
    bool news = false;

    add_name(space, quota->name, quota->generation, quota->limits);
    for (; *keys; keys++)
        news |= g_hash_table_add(space->keys, (gpointer)*keys);
    return news;
}

bool left_out_take(GHashTable *spaces, const char *ns, char **ret_name, struct left_out *ret_quota)
{
    const struct space *space = g_hash_table_lookup(spaces, ns);
    const char *first = NULL;
    GHashTableIter iter;
    gpointer name;

    if (!space || g_hash_table_size(space->names) == 0)
        return false;
    g_hash_table_iter_init(&iter, space->names);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        first = !first || strcmp(name, first) < 0 ? name : first;
    const struct named *named = g_hash_table_lookup(space->names, first);
    *ret_quota =
        (struct left_out){.generation = named->generation, .limits = g_array_ref(named->limits)};
    *ret_name = g_strdup(first);
    left_out_remove(spaces, ns, *ret_name);
    return true;
}

char **left_out_spaces(GHashTable *spaces)
{
    GPtrArray *names = g_ptr_array_new();
    GHashTableIter iter;
    gpointer ns;

    g_hash_table_iter_init(&iter, spaces);
    while (g_hash_table_iter_next(&iter, &ns, NULL))
        g_ptr_array_add(names, g_strdup(ns));
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

bool left_out_remove(GHashTable *spaces, const char *ns, const char *name)
{
    struct space *space = g_hash_table_lookup(spaces, ns);

    return space && g_hash_table_remove(space->names, name) &&
           g_hash_table_size(space->names) == 0 && !space->more && g_hash_table_remove(spaces, ns);
}

static gboolean is_of_another(gpointer name, gpointer named, gpointer now)
{
    return ((const struct named *)named)->generation != GPOINTER_TO_UINT(now);
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

    return space && key && g_hash_table_contains(space->keys, key);
}
