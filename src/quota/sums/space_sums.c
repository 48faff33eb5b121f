/* SPDX-License-Identifier: Apache-2.0 */
#include "quota/sums/space_sums.h"

#include "quota/share_amounts.h"
#include "quota/sums/node_tallies.h"

#include <string.h>

/* The pods of a namespace on nodes of one model, whose units are of one key. */
struct sum {
    char *ns, *model; /* model NULL: none */
    const char *key;
    guint n_tallies; /* that name it */
    amount_sum gpus, units[SPACE_UNITS];
    amount_sum gpus_again, units_again[SPACE_UNITS]; /* of the verification under way */
};

struct part {
    struct sum *sum;
    struct space_amounts amounts;
};

/* What the pods of one node hold. */
struct tally {
    GArray *parts;     /* struct part */
    uint64_t verified; /* in the round of that number */
};

struct space_sums {
    struct space_counting counting;
    struct node_tallies counted;
    GPtrArray *tallies; /* struct tally *, by place in the ledger */
    uint64_t verifying; /* the number of the verification under way, or of the last */
    GHashTable *spaces; /* namespace -> GPtrArray of struct sum * */
};

static void free_list(gpointer list)
{
    if (list)
        g_ptr_array_unref(list);
}

static void tally_free(gpointer data)
{
    struct tally *tally = data;

    if (tally)
        g_array_unref(tally->parts);
    g_free(tally);
}

static void sum_free(gpointer data)
{
    struct sum *sum = data;

    g_free(sum->ns);
    g_free(sum->model);
    g_free(sum);
}

struct space_sums *space_sums_new(const struct space_counting *counting)
{
    struct space_sums *sums = g_new0(struct space_sums, 1);

    sums->counting = *counting;
    node_tallies_init(&sums->counted);
    sums->tallies = g_ptr_array_new_with_free_func(tally_free);
    sums->spaces = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_list);
    return sums;
}

void space_sums_free(struct space_sums *sums)
{
    node_tallies_clear(&sums->counted);
    g_ptr_array_unref(sums->tallies);
    g_hash_table_unref(sums->spaces);
    g_free(sums);
}

void space_sums_renew(struct space_sums *sums, const char *node)
{
    node_tallies_renew(&sums->counted, node);
}

/* --- counting --------------------------------------------------------------------------------- */

static struct sum *find_sum(struct space_sums *sums, const char *ns, const char *model,
                            const char *key)
{
    GPtrArray *all = g_hash_table_lookup(sums->spaces, ns);

    if (!all) {
        all = g_ptr_array_new_with_free_func(sum_free);
        g_hash_table_insert(sums->spaces, g_strdup(ns), all);
    }
    for (guint i = 0; i < all->len; i++) {
        struct sum *sum = all->pdata[i];
        if (g_strcmp0(sum->model, model) == 0 && sum->key == key)
            return sum;
    }
    struct sum *sum = g_new0(struct sum, 1);
    sum->ns = g_strdup(ns);
    sum->model = g_strdup(model);
    sum->key = key;
    g_ptr_array_add(all, sum);
    return sum;
}

static void add_again(const struct part *part, int sign)
{
    part->sum->gpus_again += (amount_sum)part->amounts.gpus * sign;
    for (int unit = 0; unit < SPACE_UNITS; unit++)
        part->sum->units_again[unit] += (amount_sum)part->amounts.units[unit] * sign;
}

static void add_parts(const struct space_sums *sums, const struct tally *tally, const GArray *parts,
                      int sign)
{
    for (guint i = 0; i < parts->len; i++) {
        const struct part *part = &g_array_index(parts, struct part, i);
        part->sum->gpus += (amount_sum)part->amounts.gpus * sign;
        for (int unit = 0; unit < SPACE_UNITS; unit++)
            part->sum->units[unit] += (amount_sum)part->amounts.units[unit] * sign;
        if (tally->verified == sums->verifying)
            add_again(part, sign);
    }
}

static void release(struct space_sums *sums, const GArray *parts)
{
    for (guint i = 0; i < parts->len; i++) {
        struct sum *sum = g_array_index(parts, struct part, i).sum;
        GPtrArray *all = g_hash_table_lookup(sums->spaces, sum->ns);
        if (--sum->n_tallies > 0)
            continue;
        if (all->len > 1)
            g_ptr_array_remove_fast(all, sum);
        else
            g_hash_table_remove(sums->spaces, sum->ns);
    }
}

/* A node has few namespaces: they are found among its parts. */
static struct part *reach_part(struct space_sums *sums, GArray *parts, const char *ns,
                               const char *model, const char *key)
{
    for (guint i = 0; i < parts->len; i++) {
        struct part *part = &g_array_index(parts, struct part, i);
        if (part->sum->key == key && g_str_equal(part->sum->ns, ns))
            return part;
    }
    struct sum *sum = find_sum(sums, ns, model, key);
    sum->n_tallies++;
    g_array_append_val(parts, (struct part){.sum = sum});
    return &g_array_index(parts, struct part, parts->len - 1);
}

/* Pods in a row that hold the same, in one namespace. */
struct measured {
    const struct allocation *pod; /* one of them; NULL: none */
    guint n_pods;
    struct space_amounts amounts;
};

static int64_t of_all(const struct measured *measured, int64_t amount)
{
    return amount_sum_told((amount_sum)amount * measured->n_pods);
}

static void add_measured(struct space_sums *sums, const char *model, struct measured *measured,
                         GArray *parts)
{
    const struct space_amounts *amounts = &measured->amounts;

    if (measured->n_pods == 0)
        return;
    struct part *part = reach_part(sums, parts, measured->pod->ns, model, amounts->key);
    part->amounts.gpus = amount_add(part->amounts.gpus, of_all(measured, amounts->gpus));
    for (int unit = 0; unit < SPACE_UNITS; unit++)
        part->amounts.units[unit] =
            amount_add(part->amounts.units[unit], of_all(measured, amounts->units[unit]));
    measured->n_pods = 0;
}

static GArray *count_pods(struct space_sums *sums, const struct node *node)
{
    const char *model = node ? sums->counting.model(sums->counting.data, node->name) : NULL;
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct part));
    struct measured measured = {NULL};

    for (guint i = 0; node && i < node->allocations->len; i++) {
        const struct allocation *pod = node->allocations->pdata[i];
        node_tallies_fetch(node, i);
        const bool alike = measured.pod && share_pods_are_alike(measured.pod, pod);
        if (!alike || !g_str_equal(measured.pod->ns, pod->ns)) {
            add_measured(sums, model, &measured, parts);
            measured.pod = pod;
        }
        if (!alike) {
            measured.amounts = (struct space_amounts){0};
            sums->counting.measure(pod, &measured.amounts);
        }
        measured.n_pods++;
    }
    add_measured(sums, model, &measured, parts);
    return parts;
}

static void count_node(void *data, uint32_t place, const struct node *node)
{
    struct space_sums *sums = data;

    if (sums->tallies->len <= place)
        g_ptr_array_set_size(sums->tallies, (gint)place + 1);
    struct tally *tally = sums->tallies->pdata[place];
    if (!tally) {
        tally = g_new0(struct tally, 1);
        tally->parts = g_array_new(FALSE, FALSE, sizeof(struct part));
        sums->tallies->pdata[place] = tally;
    }
    g_autoptr(GArray) before = tally->parts;
    tally->parts = count_pods(sums, node);
    add_parts(sums, tally, tally->parts, 1);
    add_parts(sums, tally, before, -1);
    release(sums, before);
}

bool space_sums_catch_up(struct space_sums *sums, const struct ledger *ledger, uint64_t *left)
{
    return node_tallies_catch_up(&sums->counted, ledger, left, count_node, sums);
}

/* --- asking ----------------------------------------------------------------------------------- */

int64_t space_sums_gpus(const struct space_sums *sums, const char *ns, const char *model)
{
    const GPtrArray *all = g_hash_table_lookup(sums->spaces, ns);
    amount_sum gpus = 0;

    for (guint i = 0; all && i < all->len; i++) {
        const struct sum *sum = all->pdata[i];
        gpus += g_strcmp0(sum->model, model) == 0 ? sum->gpus : 0;
    }
    return amount_sum_told(gpus);
}

int64_t space_sums_units(const struct space_sums *sums, const char *ns, const char *key, int unit)
{
    const GPtrArray *all = g_hash_table_lookup(sums->spaces, ns);
    amount_sum units = 0;

    for (guint i = 0; all && i < all->len; i++) {
        const struct sum *sum = all->pdata[i];
        units += g_strcmp0(sum->key, key) == 0 ? sum->units[unit] : 0;
    }
    return amount_sum_told(units);
}

uint64_t space_sums_n_pods(const struct space_sums *sums)
{
    return sums->counted.n_pods;
}

/* --- verifying -------------------------------------------------------------------------------- */

static void each_sum(struct space_sums *sums, void (*visit)(struct sum *sum, void *data),
                     void *data)
{
    GHashTableIter iter;
    gpointer all;

    g_hash_table_iter_init(&iter, sums->spaces);
    while (g_hash_table_iter_next(&iter, NULL, &all)) {
        for (guint i = 0; i < ((GPtrArray *)all)->len; i++)
            visit(((GPtrArray *)all)->pdata[i], data);
    }
}

static void clear_again(struct sum *sum, void *data)
{
    sum->gpus_again = 0;
    memset(sum->units_again, 0, sizeof sum->units_again);
}

void space_sums_verify_begin(struct space_sums *sums)
{
    sums->verifying++;
    each_sum(sums, clear_again, NULL);
}

static void visit(struct space_sums *sums, struct tally *tally)
{
    if (!tally || tally->verified == sums->verifying)
        return;
    tally->verified = sums->verifying;
    for (guint i = 0; i < tally->parts->len; i++)
        add_again(&g_array_index(tally->parts, struct part, i), 1);
}

static bool is_same(const struct part *one, const struct part *other)
{
    return one->sum == other->sum && one->amounts.gpus == other->amounts.gpus &&
           memcmp(one->amounts.units, other->amounts.units, sizeof one->amounts.units) == 0;
}

void space_sums_verify_node(struct space_sums *sums, const struct ledger *ledger,
                            const struct node *node, quotas_found found, void *data)
{
    const uint32_t place = node_own(node)->place;
    struct tally *tally = place < sums->tallies->len ? sums->tallies->pdata[place] : NULL;

    if (!tally)
        return;
    visit(sums, tally);
    if (!node_tallies_are_current(&sums->counted, ledger, place))
        return; /* it will be counted before it is asked for */
    g_autoptr(GArray) again = count_pods(sums, node);
    for (guint i = 0; i < MAX(again->len, tally->parts->len); i++) {
        const struct part *left = &g_array_index(again, struct part, i);
        const struct part *right = &g_array_index(tally->parts, struct part, i);
        if (i < again->len && (i >= tally->parts->len || !is_same(left, right)))
            found(left->sum->ns, data);
        if (i < tally->parts->len && (i >= again->len || !is_same(left, right)))
            found(right->sum->ns, data);
    }
    release(sums, again);
}

struct verdict {
    quotas_found found;
    void *data;
};

static void compare(struct sum *sum, void *data)
{
    const struct verdict *verdict = data;

    if (sum->gpus != sum->gpus_again ||
        memcmp(sum->units, sum->units_again, sizeof sum->units) != 0)
        verdict->found(sum->ns, verdict->data);
}

void space_sums_verify_end(struct space_sums *sums, quotas_found found, void *data)
{
    for (guint i = 0; i < sums->tallies->len; i++)
        visit(sums, sums->tallies->pdata[i]);
    each_sum(sums, compare, &(struct verdict){found, data});
}
