/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/quota_relief.h"

#include <string.h>

struct quota_relief {
    uint32_t n; /* limits that lack something */
    int64_t lacks[QUOTA_AMOUNTS_MAX];
    int64_t held[QUOTA_AMOUNTS_MAX]; /* of those limits, by all that are in `pods` */
    GHashTable *pods;                /* UID -> what it gives back of those limits, an int64_t[n] */
};

static void add(int64_t *sums, const int64_t *amounts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sums[i] += amounts[i];
}

/* Whether what is left of what was held leaves room. */
static bool frees(const struct quota_relief *relief, const int64_t *left)
{
    for (uint32_t i = 0; i < relief->n; i++) {
        if (relief->held[i] - left[i] < relief->lacks[i])
            return false;
    }
    return true;
}

struct quota_relief *quota_relief_new(const struct quota_room *room, const struct node *node,
                                      int64_t priority)
{
    int64_t lacks[QUOTA_AMOUNTS_MAX], amounts[QUOTA_AMOUNTS_MAX], stay[QUOTA_AMOUNTS_MAX] = {0};
    uint32_t places[QUOTA_AMOUNTS_MAX];

    if (!quota_room_lacks(room, node, lacks))
        return NULL;
    struct quota_relief *relief = g_new0(struct quota_relief, 1);
    relief->pods = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (uint32_t i = 0; i < QUOTA_AMOUNTS_MAX; i++) {
        if (lacks[i] <= 0)
            continue;
        places[relief->n] = i;
        relief->lacks[relief->n++] = lacks[i];
    }
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *one = node->allocations->pdata[i];
        int64_t of_limits[QUOTA_AMOUNTS_MAX];
        bool any = false;
        quota_room_gives(room, one, amounts);
        for (uint32_t j = 0; j < relief->n; j++)
            any |= (of_limits[j] = amounts[places[j]]) > 0;
        if (!any)
            continue;
        add(relief->held, of_limits, relief->n);
        if (one->priority >= priority)
            add(stay, of_limits, relief->n);
        g_hash_table_insert(relief->pods, g_strdup(one->uid),
                            g_memdup2(of_limits, relief->n * sizeof *of_limits));
    }
    if (!frees(relief, stay))
        g_clear_pointer(&relief, quota_relief_free);
    return relief;
}

void quota_relief_free(struct quota_relief *relief)
{
    if (!relief)
        return;
    g_hash_table_unref(relief->pods);
    g_free(relief);
}

bool quota_relief_suffices(const struct quota_relief *relief, const struct node *left)
{
    int64_t stay[QUOTA_AMOUNTS_MAX] = {0};

    for (guint i = 0; relief && i < left->allocations->len; i++) {
        const struct allocation *one = left->allocations->pdata[i];
        const int64_t *amounts = g_hash_table_lookup(relief->pods, one->uid);
        if (amounts)
            add(stay, amounts, relief->n);
    }
    return !relief || frees(relief, stay);
}
