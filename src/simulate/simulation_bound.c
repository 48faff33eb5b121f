/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/simulation_bound.h"

#include "simulate/bound.h"

#include <string.h>

/* Cards of one size and model. */
struct model {
    const struct node *node; /* one that has it; borrowed while the bound is made */
    const struct card *card;
};

struct simulation_bound {
    double gpus, used; /* of the cluster; used from the beginning */
    guint n_kinds;
    GArray *pods;   /* struct bound_pod */
    GArray *places; /* ssize_t, by simulation->kinds: its place in pods, or a mark below */
    GArray *values; /* double, by simulation->kinds */
    GArray *nodes;  /* struct bound_node */
};

/* A pod for which there is no place in `pods`. */
enum { WITHOUT_GPU = -1, ALWAYS = -2 /* not understood: counts as if it always found room */ };

static void clear_pod(gpointer data)
{
    g_free((gpointer)((struct bound_pod *)data)->rooms);
}

static void clear_node(gpointer data)
{
    g_free((gpointer)((struct bound_node *)data)->parts);
}

void simulation_bound_free(struct simulation_bound *bound)
{
    if (!bound)
        return;
    g_array_unref(bound->pods);
    g_array_unref(bound->places);
    g_array_unref(bound->values);
    g_array_unref(bound->nodes);
    g_free(bound);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static int32_t find_model(GArray *models, const struct node *node)
{
    const struct model model = {node, &node->cards[0]};

    for (guint i = 0; i < models->len; i++) {
        if (g_array_index(models, struct model, i).card->kind == model.card->kind)
            return (int32_t)i;
    }
    g_array_append_val(models, model);
    return (int32_t)models->len - 1;
}

static int compare_rooms(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct room));
}

static bool same_node(const struct bound_node *a, const struct bound_node *b)
{
    return a->kind == b->kind && a->whole == b->whole && a->n_parts == b->n_parts &&
           a->cpu == b->cpu &&
           (a->n_parts == 0 || memcmp(a->parts, b->parts, a->n_parts * sizeof *a->parts) == 0);
}

/* Adds the node, or one more of those that are alike. */
static void count_node(GArray *nodes, struct bound_node *node)
{
    for (guint i = 0; i < nodes->len; i++) {
        struct bound_node *other = &g_array_index(nodes, struct bound_node, i);
        if (!same_node(other, node))
            continue;
        other->nodes++;
        clear_node(node);
        return;
    }
    g_array_append_val(nodes, *node);
}

static bool add_node(struct simulation_bound *bound, GArray *models, const struct node *node)
{
    struct room *parts = g_new0(struct room, MAX(node->n_cards, 1));
    struct bound_node made = {.nodes = 1, .parts = parts, .cpu = node_host_free(node).cpu};

    if (node->n_cards > 0)
        made.kind = find_model(models, node);
    for (int32_t i = 0; i < node->n_cards; i++) {
        const struct room room = room_free(node, &node->cards[i], &(struct taken){0});
        if (node->cards[i].kind != node->cards[0].kind) {
            g_free(parts);
            return false;
        }
        if (room_part(room) == PART_WHOLE)
            made.whole++;
        else if (room_part(room) > 0)
            parts[made.n_parts++] = room;
    }
    qsort(parts, made.n_parts, sizeof *parts, compare_rooms);
    if (made.whole > 0 || made.n_parts > 0)
        count_node(bound->nodes, &made);
    else
        g_free(parts);
    return bound->nodes->len <= BOUND_NODES_MAX;
}

/* --- pods ------------------------------------------------------------------------------------- */

static struct room *rooms_of(const GArray *models, const struct request *request)
{
    const struct card_ask *ask = &request->asks[0];
    const struct shape shape = {.memory = ask->memory,
                                .core = ask->core,
                                .cards = 1,
                                .exclusive = ask->exclusive,
                                .terms = request->terms};
    struct room *rooms = g_new0(struct room, models->len);

    for (guint i = 0; i < models->len; i++) {
        const struct model *model = &g_array_index(models, struct model, i);
        if (terms_accept_model(request->terms, model->card->model))
            rooms[i] = room_wanted(model->node, model->card, &shape);
    }
    return rooms;
}

static bool same_pod(const struct bound_pod *a, const struct bound_pod *b, guint n_kinds)
{
    return a->cards == b->cards && a->cpu == b->cpu && a->value == b->value &&
           memcmp(a->rooms, b->rooms, n_kinds * sizeof *a->rooms) == 0;
}

static ssize_t find_pod(struct simulation_bound *bound, struct bound_pod *pod)
{
    for (guint i = 0; i < bound->pods->len; i++) {
        if (!same_pod(&g_array_index(bound->pods, struct bound_pod, i), pod, bound->n_kinds))
            continue;
        clear_pod(pod);
        return (ssize_t)i;
    }
    g_array_append_val(bound->pods, *pod);
    return (ssize_t)bound->pods->len - 1;
}

/* Parts of several cards count as so many pods for one, which may be anywhere. */
static ssize_t place_pod(struct simulation_bound *bound, const GArray *models,
                         const struct kind_of_pod *kind, double *ret_value)
{
    const struct request *request = kind->request;

    *ret_value = kind->asked.most;
    if (kind->gpus <= 0)
        return WITHOUT_GPU;
    if (!request || request->alternative || request->n_asks != 1 || request->asks[0].device ||
        request->asks[0].init || bound->n_kinds == 0)
        return ALWAYS;
    const struct card_ask *ask = &request->asks[0];
    const bool whole = ask->exclusive || ask->core == CORE_WHOLE;
    const int32_t parts = whole ? 1 : ask->count;
    struct bound_pod pod = {.value = kind->asked.most / parts,
                            .cards = whole ? ask->count : 1,
                            .cpu = request->host.cpu / parts,
                            .rooms = rooms_of(models, request)};
    return find_pod(bound, &pod);
}

/* ---------------------------------------------------------------------------------------------- */

static bool read_nodes(struct simulation *simulation, struct simulation_bound *bound,
                       GArray *models)
{
    struct ledger *ledger = store_lock(simulation->store);
    const GPtrArray *nodes = ledger_nodes(ledger);
    bool ok = true;

    for (guint i = 0; i < nodes->len && ok; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present)
            ok = node->n_pools == 0 && add_node(bound, models, node);
    }
    bound->n_kinds = models->len;
    for (guint i = 0; i < simulation->kinds->len && ok; i++) {
        double value;
        const ssize_t place = place_pod(
            bound, models, &g_array_index(simulation->kinds, struct kind_of_pod, i), &value);
        g_array_append_val(bound->places, place);
        g_array_append_val(bound->values, value);
        ok = bound->pods->len <= BOUND_PODS_MAX;
    }
    store_unlock(simulation->store);
    return ok;
}

struct simulation_bound *simulation_bound_new(struct simulation *simulation)
{
    struct simulation_bound *bound = g_new0(struct simulation_bound, 1);
    g_autoptr(GArray) models = g_array_new(FALSE, FALSE, sizeof(struct model));

    bound->gpus = simulation->gpus;
    bound->used = simulation->used;
    bound->pods = g_array_new(FALSE, FALSE, sizeof(struct bound_pod));
    g_array_set_clear_func(bound->pods, clear_pod);
    bound->nodes = g_array_new(FALSE, FALSE, sizeof(struct bound_node));
    g_array_set_clear_func(bound->nodes, clear_node);
    bound->places = g_array_new(FALSE, FALSE, sizeof(ssize_t));
    bound->values = g_array_new(FALSE, FALSE, sizeof(double));
    if (!read_nodes(simulation, bound, models))
        g_clear_pointer(&bound, simulation_bound_free);
    return bound;
}

double simulation_bound_for(const struct simulation_bound *bound, const double *came)
{
    g_autofree struct bound_pod *pods =
        g_memdup2(bound->pods->data, bound->pods->len * sizeof *pods);
    double always = 0;

    for (guint i = 0; i < bound->places->len; i++) {
        const ssize_t place = g_array_index(bound->places, ssize_t, i);
        const double value = g_array_index(bound->values, double, i) * came[i];
        if (place >= 0)
            pods[place].pods += value / pods[place].value;
        else if (place == ALWAYS)
            always += value;
    }
    return (bound->used + always +
            bound_of(&(struct bound_problem){
                .pods = pods,
                .n_pods = bound->pods->len,
                .nodes = (const struct bound_node *)(const void *)bound->nodes->data,
                .n_nodes = bound->nodes->len,
                .n_kinds = (int32_t)bound->n_kinds,
            })) /
           bound->gpus;
}
