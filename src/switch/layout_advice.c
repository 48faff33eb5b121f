/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/layout_advice.h"

#include "core/fail.h"
#include "core/node_traits.h"
#include "policy/demand.h"
#include "policy/layout_choice.h"
#include "store/node_walk.h"

#include <string.h>

/* One resource, while it is found out. */
struct wanted {
    char *resource;
    double count; /* devices that pods want, the latest pods counting most */
    double size;  /* GiB of one */
    int64_t here, elsewhere;
};

struct finding {
    const struct layout_query *query;
    GArray *wanted;             /* struct wanted */
    struct node_traits *traits; /* a reference, or NULL: the node is not there */
    guint n_holders;
    uint64_t n_pods;
};

static void clear_wanted(gpointer data)
{
    g_free(((struct wanted *)data)->resource);
}

static void clear_expected(gpointer data)
{
    g_free(((struct layout_expected *)data)->resource);
}

static void clear_row(gpointer data)
{
    g_free(((struct layout_row *)data)->name);
}

void layout_advice_clear(struct layout_advice *advice)
{
    g_free(advice->is);
    g_clear_pointer(&advice->expected, g_array_unref);
    g_clear_pointer(&advice->rows, g_array_unref);
    *advice = (struct layout_advice){0};
}

/* --- what the store knows ------------------------------------------------------------------------- */

static struct wanted *find_wanted(const struct finding *finding, const char *resource)
{
    for (guint i = 0; i < finding->wanted->len; i++) {
        struct wanted *wanted = &g_array_index(finding->wanted, struct wanted, i);
        if (g_str_equal(wanted->resource, resource))
            return wanted;
    }
    return NULL;
}

/* Under the store's lock. */
static void read_demand(struct finding *finding)
{
    const struct learned_demand learned = demand_tell(store_demand(finding->query->store));

    finding->n_pods = learned.n_gpu;
    for (size_t i = 0; i < learned.n; i++) {
        const struct shape *shape = &learned.shapes[i];
        const char *resource = shape->device;
        const double size = resource ? mig_device_gib(finding->query->card, resource) : 0;
        if (size <= 0 || shape->count <= 0)
            continue;
        struct wanted *wanted = find_wanted(finding, resource);
        if (!wanted) {
            const struct wanted one = {.resource = g_strdup(resource), .size = size};
            g_array_append_val(finding->wanted, one);
            wanted = find_wanted(finding, resource);
        }
        wanted->count += shape->count * shape->cards;
    }
}

/* Under the store's lock. */
static void visit(const struct node *node, void *data)
{
    struct finding *finding = data;
    const bool here = g_str_equal(node->name, finding->query->node);

    if (!node->present)
        return;
    if (here && node->traits) {
        finding->traits = node_traits_ref(node->traits);
        finding->n_holders = node->allocations->len;
    }
    for (int32_t i = 0; i < node->n_pools; i++) {
        const struct pool *pool = &node->pools[i];
        struct wanted *wanted = find_wanted(finding, pool->resource);
        if (!wanted || pool->shared)
            continue;
        *(here ? &wanted->here : &wanted->elsewhere) += pool->capacity;
    }
}

/* --- the node ------------------------------------------------------------------------------------- */

static const struct mig_layout *find_layout(const struct layout_query *query, const char *name)
{
    for (guint i = 0; name && i < query->layouts->len; i++) {
        const struct mig_layout *layout = &g_array_index(query->layouts, struct mig_layout, i);
        if (g_str_equal(layout->name, name))
            return layout;
    }
    return NULL;
}

static bool check_node(const struct finding *finding, int64_t *ret_cards, GError **error)
{
    const char *node = finding->query->node;

    if (!finding->traits)
        return fail_with(error, GPULEDGER_ERROR_NOT_FOUND, "there is no node '%s'", node);
    if (mig_is_guest(&finding->traits->labels))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "node '%s' is a vGPU guest, which nobody can cut", node);
    const struct mig_layout *now =
        find_layout(finding->query, mig_layout_of(&finding->traits->labels));
    *ret_cards = mig_count_cards(&finding->traits->labels, now ? &now->value : NULL);
    if (*ret_cards == 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "no label of node '%s' tells how many cards it has", node);
    return finding->wanted->len > 0 ||
           fail_with(
               error, GPULEDGER_ERROR_INVALID,
               "no pod is known that asks for MIG instances or whole cards of NVIDIA's plugin");
}

/* --- the choice ----------------------------------------------------------------------------------- */

static void add_rows(const struct finding *finding, struct layout_advice *advice)
{
    const struct layout_query *query = finding->query;

    for (guint i = 0; i < query->layouts->len; i++) {
        const struct mig_layout *layout = &g_array_index(query->layouts, struct mig_layout, i);
        const struct layout_row row = {
            .name = g_strdup(layout->name),
            .value = layout->value,
            .is = g_strcmp0(layout->name, advice->is) == 0,
            .n_ended = g_strcmp0(layout->name, advice->is) == 0 ? 0 : finding->n_holders,
        };
        g_array_append_val(advice->rows, row);
    }
    if (!find_layout(query, advice->is)) { /* as it is, it is one as well */
        const struct layout_row row = {.name = g_strdup(advice->is ? advice->is : "-"), .is = true};
        g_array_append_val(advice->rows, row);
    }
}

static int by_part(gconstpointer a, gconstpointer b)
{
    const struct layout_expected *one = a, *other = b;

    return one->part != other->part ? (one->part < other->part) - (one->part > other->part)
                                    : strcmp(one->resource, other->resource);
}

static void tell_expected(const struct finding *finding, struct layout_advice *advice)
{
    double all = 0;

    for (guint i = 0; i < finding->wanted->len; i++) {
        const struct wanted *wanted = &g_array_index(finding->wanted, struct wanted, i);
        all += wanted->count * wanted->size;
    }
    for (guint i = 0; i < finding->wanted->len; i++) {
        const struct wanted *wanted = &g_array_index(finding->wanted, struct wanted, i);
        const struct layout_expected expected = {g_strdup(wanted->resource),
                                                 wanted->count * wanted->size / all,
                                                 (double)wanted->elsewhere};
        g_array_append_val(advice->expected, expected);
    }
    g_array_sort(advice->expected, by_part);
}

static void choose(const struct finding *finding, struct layout_advice *advice)
{
    const guint n = finding->wanted->len, n_rows = advice->rows->len;
    g_autofree struct layout_wish *wishes = g_new0(struct layout_wish, n);
    g_autofree struct layout *layouts = g_new0(struct layout, n_rows);
    g_autofree double *devices = g_new0(double, n *n_rows);
    double whole = (double)advice->n_cards * finding->query->card->gib;

    for (guint j = 0; j < n; j++) {
        const struct wanted *wanted = &g_array_index(finding->wanted, struct wanted, j);
        wishes[j] = (struct layout_wish){wanted->count, wanted->size, (double)wanted->elsewhere};
        whole += (double)wanted->elsewhere * wanted->size;
    }
    for (guint i = 0; i < n_rows; i++) {
        const struct layout_row *row = &g_array_index(advice->rows, struct layout_row, i);
        layouts[i] = (struct layout){.devices = devices + i * n, .n_ended = row->n_ended};
        for (guint j = 0; j < n; j++) {
            const struct wanted *wanted = &g_array_index(finding->wanted, struct wanted, j);
            devices[i * n + j] =
                row->value.n_profiles == 0
                    ? (double)wanted->here
                    : (double)(advice->n_cards * mig_devices_of(&row->value, wanted->resource));
        }
    }
    advice->best = (guint)layout_choose(wishes, n, whole, layouts, n_rows);
    for (guint i = 0; i < n_rows; i++)
        g_array_index(advice->rows, struct layout_row, i).serves = layouts[i].serves;
}

static GArray *new_array(guint size, GDestroyNotify clear)
{
    GArray *array = g_array_new(FALSE, TRUE, size);

    g_array_set_clear_func(array, clear);
    return array;
}

bool layout_advise(const struct layout_query *query, struct layout_advice *ret_advice,
                   GError **error)
{
    struct finding finding = {.query = query,
                              .wanted = new_array(sizeof(struct wanted), clear_wanted)};
    int64_t n_cards;

    store_lock(query->store);
    read_demand(&finding);
    store_unlock(query->store);
    node_walk_all(query->store, visit, &finding);
    const bool ok = check_node(&finding, &n_cards, error);
    if (ok) {
        *ret_advice = (struct layout_advice){
            .is = g_strdup(mig_layout_of(&finding.traits->labels)),
            .n_cards = n_cards,
            .n_pods = finding.n_pods,
            .expected = new_array(sizeof(struct layout_expected), clear_expected),
            .rows = new_array(sizeof(struct layout_row), clear_row),
        };
        add_rows(&finding, ret_advice);
        tell_expected(&finding, ret_advice);
        choose(&finding, ret_advice);
    }
    node_traits_unref(finding.traits);
    g_array_unref(finding.wanted);
    return ok;
}
