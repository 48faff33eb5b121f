/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas that could not be kept, and what they close: their own namespaces, and no others. */
#include "quota/elastic/elastic_state.h"

/* Names for each namespace; with more, the namespace is closed until the next list of quotas. */
#define UNKEPT_NAMES_MAX 64

struct unkept_space {
    GHashTable *names; /* of objects -> their generation */
    bool more;         /* than those names */
};

static void space_free(gpointer data)
{
    struct unkept_space *space = data;

    g_hash_table_unref(space->names);
    g_free(space);
}

GHashTable *unkept_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, space_free);
}

static void set(GHashTable *spaces, const char *ns, const char *name, uint32_t generation)
{
    struct unkept_space *space = g_hash_table_lookup(spaces, ns);

    if (!space) {
        space = g_new0(struct unkept_space, 1);
        space->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_insert(spaces, g_strdup(ns), space);
    }
    if (g_hash_table_size(space->names) < UNKEPT_NAMES_MAX ||
        g_hash_table_contains(space->names, name))
        g_hash_table_replace(space->names, g_strdup(name), GUINT_TO_POINTER(generation));
    else
        space->more = true;
}

void unkept_set(struct elastic_quotas *quotas, bool elastic, const char *ns, const char *name,
                uint32_t generation)
{
    set(quotas->unkept[elastic], ns, name, generation);
}

bool unkept_remove(struct elastic_quotas *quotas, bool elastic, const char *ns, const char *name)
{
    GHashTable *spaces = quotas->unkept[elastic];
    struct unkept_space *space = g_hash_table_lookup(spaces, ns);

    if (!space || !g_hash_table_remove(space->names, name))
        return false;
    if (g_hash_table_size(space->names) == 0 && !space->more)
        g_hash_table_remove(spaces, ns);
    return true;
}

static gboolean is_of_another(gpointer name, gpointer generation, gpointer now)
{
    return generation != now;
}

bool unkept_sweep(struct elastic_quotas *quotas, bool elastic, uint32_t generation)
{
    GHashTableIter iter;
    gpointer value;
    bool any = false;

    g_hash_table_iter_init(&iter, quotas->unkept[elastic]);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct unkept_space *space = value;
        any |= g_hash_table_foreach_remove(space->names, is_of_another,
                                           GUINT_TO_POINTER(generation)) > 0;
        any |= space->more && g_hash_table_size(space->names) < UNKEPT_NAMES_MAX;
        space->more &= g_hash_table_size(space->names) == UNKEPT_NAMES_MAX;
        if (g_hash_table_size(space->names) == 0 && !space->more)
            g_hash_table_iter_remove(&iter);
    }
    return any;
}

void unkept_copy(struct elastic_quotas *quotas, const struct elastic_quotas *from)
{
    GHashTableIter spaces, names;
    gpointer ns, space, name, generation;

    for (int elastic = 0; elastic < 2; elastic++) {
        g_hash_table_iter_init(&spaces, from->unkept[elastic]);
        while (g_hash_table_iter_next(&spaces, &ns, &space)) {
            g_hash_table_iter_init(&names, ((const struct unkept_space *)space)->names);
            while (g_hash_table_iter_next(&names, &name, &generation))
                unkept_set(quotas, elastic, ns, name, GPOINTER_TO_UINT(generation));
        }
    }
}

bool elastic_quotas_closes(const struct elastic_quotas *quotas, const char *ns)
{
    return g_hash_table_contains(quotas->unkept[0], ns) ||
           g_hash_table_contains(quotas->unkept[1], ns);
}

static guint count_names(GHashTable *spaces)
{
    GHashTableIter iter;
    gpointer space;
    guint n = 0;

    g_hash_table_iter_init(&iter, spaces);
    while (g_hash_table_iter_next(&iter, NULL, &space))
        n += g_hash_table_size(((const struct unkept_space *)space)->names);
    return n;
}

guint elastic_quotas_n_unkept(const struct elastic_quotas *quotas)
{
    guint n = count_names(quotas->unkept[0]) + count_names(quotas->unkept[1]);

    for (guint i = 0; i < quotas->accounts->len; i++)
        n += ((const struct elastic_account *)quotas->accounts->pdata[i])->unkept->len > 0;
    return n;
}

/* --- room among the others -------------------------------------------------------------------- */

/* How many quotas a namespace has; the last of them. */
struct crowd {
    guint n;
    guint last; /* its place among all */
};

static GHashTable *count_spaces(const struct elastic_quotas *quotas)
{
    GHashTable *crowds = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);

    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *quota = quotas->all->pdata[i];
        struct crowd *crowd = g_hash_table_lookup(crowds, quota->ns);
        if (!crowd) {
            crowd = g_new0(struct crowd, 1);
            g_hash_table_insert(crowds, quota->ns, crowd);
        }
        crowd->n++;
        crowd->last = i;
    }
    return crowds;
}

/* Those of named namespaces stay. */
static const struct crowd *find_largest(const struct elastic_quotas *quotas, GHashTable *crowds)
{
    const struct crowd *largest = NULL;

    for (guint i = 0; i < quotas->all->len; i++) {
        const char *ns = ((const struct quota *)quotas->all->pdata[i])->ns;
        const struct crowd *crowd = g_hash_table_lookup(crowds, ns);
        if (!g_hash_table_contains(quotas->trusted, ns) && (!largest || crowd->n > largest->n))
            largest = crowd;
    }
    return largest;
}

bool unkept_make_room(struct elastic_quotas *quotas, const char *ns)
{
    if (quotas->all->len < ELASTIC_QUOTAS_MAX)
        return true;
    g_autoptr(GHashTable) crowds = count_spaces(quotas);
    const struct crowd *own = g_hash_table_lookup(crowds, ns);
    const struct crowd *largest = find_largest(quotas, crowds);
    const bool named = g_hash_table_contains(quotas->trusted, ns);
    if (!largest || (!named && largest->n <= (own ? own->n : 0) + 1))
        return false;
    const struct quota *last = quotas->all->pdata[largest->last];
    unkept_set(quotas, last->elastic, last->ns, last->name, last->generation);
    g_ptr_array_remove_index(quotas->all, largest->last);
    return true;
}

/* --- for people ------------------------------------------------------------------------------- */

void elastic_quotas_each_unkept(const struct elastic_quotas *quotas,
                                void (*visit)(const struct elastic_unkept *unkept, void *data),
                                void *data)
{
    GHashTableIter spaces, names;
    gpointer ns, space, name;

    for (int elastic = 0; elastic < 2; elastic++) {
        g_hash_table_iter_init(&spaces, quotas->unkept[elastic]);
        while (g_hash_table_iter_next(&spaces, &ns, &space)) {
            g_hash_table_iter_init(&names, ((const struct unkept_space *)space)->names);
            while (g_hash_table_iter_next(&names, &name, NULL))
                visit(&(struct elastic_unkept){ns, name, NULL}, data);
        }
    }
    for (guint i = 0; i < quotas->accounts->len; i++) {
        const struct elastic_account *account = quotas->accounts->pdata[i];
        if (account->unkept->len > 0)
            visit(&(struct elastic_unkept){account->ns, account->name, account->unkept->pdata[0]},
                  data);
    }
}
