/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/sums/quota_wants.h"

#include <string.h>

#define WANTS_MAX 4096 /* beyond, all are forgotten */

struct quota_wants {
    GPtrArray *all;    /* struct quota_want * */
    GHashTable *found; /* struct quota_want * -> its place in `all` */
    uint64_t first;    /* the number of the first of them */
    uint64_t round;
};

static guint hash_want(gconstpointer data)
{
    const struct quota_want *want = data;
    uint64_t hash = (uint64_t)(uintptr_t)want->model * 31 + (uint64_t)(uintptr_t)want->pool;

    hash = hash * 31 + (uint64_t)want->gpus;
    for (int unit = 0; unit < QUOTA_WANT_UNITS; unit++)
        hash = hash * 31 + (uint64_t)want->units[unit];
    for (int key = 0; key < QUOTA_WANT_KEYS; key++)
        hash = hash * 31 + (uint64_t)want->amounts[key];
    return (guint)(hash ^ hash >> 32);
}

static gboolean are_equal(gconstpointer one, gconstpointer other)
{
    return memcmp(one, other, sizeof(struct quota_want)) == 0;
}

static void free_want(gpointer data)
{
    struct quota_want *want = data;

    if (want->model)
        g_ref_string_release((GRefString *)want->model);
    if (want->pool)
        g_ref_string_release((GRefString *)want->pool);
    g_free(want);
}

struct quota_wants *quota_wants_new(void)
{
    struct quota_wants *wants = g_new0(struct quota_wants, 1);

    wants->all = g_ptr_array_new_with_free_func(free_want);
    wants->found = g_hash_table_new(hash_want, are_equal);
    wants->first = 1;
    return wants;
}

void quota_wants_free(struct quota_wants *wants)
{
    g_hash_table_unref(wants->found);
    g_ptr_array_unref(wants->all);
    g_free(wants);
}

static void forget_all(struct quota_wants *wants)
{
    wants->first += wants->all->len;
    g_hash_table_remove_all(wants->found);
    g_ptr_array_set_size(wants->all, 0);
}

uint64_t quota_wants_number(struct quota_wants *wants, const struct quota_want *want,
                            uint64_t round)
{
    gpointer place;

    if (wants->round != round || wants->all->len == WANTS_MAX)
        forget_all(wants);
    wants->round = round;
    if (g_hash_table_lookup_extended(wants->found, want, NULL, &place))
        return wants->first + GPOINTER_TO_UINT(place);
    struct quota_want *own = g_memdup2(want, sizeof *want);
    if (own->model)
        g_ref_string_acquire((GRefString *)own->model);
    if (own->pool)
        g_ref_string_acquire((GRefString *)own->pool);
    g_hash_table_insert(wants->found, own, GUINT_TO_POINTER(wants->all->len));
    g_ptr_array_add(wants->all, own);
    return wants->first + wants->all->len - 1;
}

const struct quota_want *quota_wants_get(const struct quota_wants *wants, uint64_t number,
                                         uint64_t round)
{
    return wants->round == round && number >= wants->first &&
                   number - wants->first < wants->all->len
               ? wants->all->pdata[number - wants->first]
               : NULL;
}
