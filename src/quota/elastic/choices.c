/* SPDX-License-Identifier: Apache-2.0 */
/* Which quotas pods ask for by their labels, and whether that counts. */
#include "quota/elastic/elastic_state.h"

guint choice_hash(gconstpointer data)
{
    const struct choice *choice = data;

    return g_str_hash(choice->ns) * 31 + g_str_hash(choice->quota);
}

gboolean choice_equal(gconstpointer one, gconstpointer other)
{
    const struct choice *left = one, *right = other;

    return g_str_equal(left->ns, right->ns) && g_str_equal(left->quota, right->quota);
}

void choice_free(gpointer data)
{
    struct choice *choice = data;

    g_free(choice->ns);
    g_free(choice->quota);
    g_free(choice);
}

static void weigh(struct elastic_quotas *quotas, struct choice *choice)
{
    const struct elastic_account *account = accounts_find(quotas, choice->ns, choice->quota);

    quotas->n_unheeded -= choice->unheeded ? choice->n : 0;
    choice->unheeded = !account || g_strcmp0(account->name, choice->quota) != 0;
    quotas->n_unheeded += choice->unheeded ? choice->n : 0;
}

void choices_weigh(struct elastic_quotas *quotas)
{
    GHashTableIter iter;
    gpointer choice;

    g_hash_table_iter_init(&iter, quotas->chosen);
    while (g_hash_table_iter_next(&iter, &choice, NULL))
        weigh(quotas, choice);
}

static void drop(struct elastic_quotas *quotas, const char *uid)
{
    struct choice *choice = g_hash_table_lookup(quotas->choices, uid);

    if (!choice)
        return;
    g_hash_table_remove(quotas->choices, uid);
    quotas->n_unheeded -= choice->unheeded;
    if (--choice->n == 0)
        g_hash_table_remove(quotas->chosen, choice);
}

static void keep(struct elastic_quotas *quotas, const char *uid, const char *ns, const char *quota)
{
    const struct choice wanted = {.ns = (char *)(ns ? ns : ""), .quota = (char *)quota};
    struct choice *choice = NULL;

    if (!g_hash_table_lookup_extended(quotas->chosen, &wanted, (gpointer *)&choice, NULL)) {
        choice = g_new0(struct choice, 1);
        choice->ns = g_strdup(wanted.ns);
        choice->quota = g_strdup(quota);
        weigh(quotas, choice);
        g_hash_table_add(quotas->chosen, choice);
    }
    choice->n++;
    quotas->n_unheeded += choice->unheeded;
    g_hash_table_insert(quotas->choices, g_strdup(uid), choice);
}

void choices_set(struct elastic_quotas *quotas, const struct pod_view *pod, const char *quota)
{
    drop(quotas, pod->uid);
    if (quota)
        keep(quotas, pod->uid, pod->ns, quota);
}

void choices_copy(struct elastic_quotas *quotas, const struct elastic_quotas *from, const char *uid)
{
    const struct choice *choice = g_hash_table_lookup(from->choices, uid);

    drop(quotas, uid);
    if (choice)
        keep(quotas, uid, choice->ns, choice->quota);
}

const char *elastic_quotas_choice(const struct elastic_quotas *quotas, const char *uid)
{
    const bool any = g_hash_table_size(quotas->choices) > 0; /* else nothing of the UID is read */
    const struct choice *choice = any ? g_hash_table_lookup(quotas->choices, uid) : NULL;

    return choice ? choice->quota : NULL;
}

bool elastic_quotas_heeds(const struct elastic_quotas *quotas, const char *uid)
{
    const struct choice *choice = g_hash_table_lookup(quotas->choices, uid);

    return !choice || !choice->unheeded;
}

guint elastic_quotas_n_unheeded(const struct elastic_quotas *quotas)
{
    return quotas->n_unheeded;
}

/* --- for people ------------------------------------------------------------------------------- */

static const struct quota *find_tree_quota(const struct elastic_quotas *quotas, const char *name)
{
    for (guint i = 0; i < quotas->all->len; i++) {
        const struct quota *quota = quotas->all->pdata[i];
        if (quota->inside && g_str_equal(quota->name, name))
            return quota;
    }
    return NULL;
}

const char *elastic_choice_fault(const struct elastic_quotas *quotas, const char *ns,
                                 const char *choice)
{
    const struct elastic_account *account = accounts_find(quotas, ns, choice);

    if (account && g_strcmp0(account->name, choice) == 0)
        return NULL;
    const struct quota *other = find_tree_quota(quotas, choice);
    if (!other)
        return "there is no quota of that name in a tree";
    return other->is_parent ? "pods count in those below that quota, not in it directly"
                            : "that quota is not for its namespace";
}
