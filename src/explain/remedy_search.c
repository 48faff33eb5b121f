/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/remedy_search.h"

#include <string.h>

void search_begin(struct search *search, struct feasibility *ret_question,
                  const struct pod_view *pod, const struct request *request, unsigned without)
{
    feasibility_init(
        ret_question, search->query->copy,
        &(struct feasibility_about){GATE_BY_EXPLAIN, pod, request, &search->moment, without});
}

enum reason search_ask(struct search *search, const struct node *node, const struct pod_view *pod,
                       const struct request *request, struct placement *ret_placement)
{
    struct feasibility question;

    search->tries++;
    search_begin(search, &question, pod, request, 0);
    const enum reason reason = feasibility_ask(&question, node, ret_placement);
    feasibility_clear(&question);
    return reason;
}

enum barrier search_barrier(const struct search *search, const struct node *node)
{
    return constraints_check(search->query->pod->constraints, node);
}

enum barrier search_shortage(struct search *search, const struct node *node)
{
    struct feasibility question;

    if (search_barrier(search, node) != BARRIER_NONE)
        return BARRIER_NONE;
    search_begin(search, &question, search->query->pod, search->query->request, 0);
    const enum barrier barrier = feasibility_barrier(&question, node);
    feasibility_clear(&question);
    return barrier;
}

bool search_takes(struct search *search, const struct node *node)
{
    return search_takes_as(search, node, search->query->pod);
}

bool search_takes_as(struct search *search, const struct node *node, const struct pod_view *pod)
{
    struct feasibility question;

    search->tries++;
    search_begin(search, &question, pod, search->query->request, 0);
    const bool takes = feasibility_takes(&question, node, NULL);
    feasibility_clear(&question);
    return takes;
}

const struct node *search_taker(struct search *search, const struct pod_view *pod)
{
    const struct dialect_options *options = &store_options(search->query->copy)->dialects;
    g_autoptr(request) request = dialect_read_request(pod, options, NULL);
    const struct node *taker = NULL;
    struct feasibility question;

    if (!request)
        return NULL;
    search_begin(search, &question, pod, request, 0);
    for (const char *const *name = search->query->nodes; *name && !taker; name++) {
        const struct node *node = ledger_node(search->ledger, *name);
        search->tries++;
        if (feasibility_takes(&question, node, NULL))
            taker = node;
    }
    feasibility_clear(&question);
    return taker;
}

bool search_reads(const char *resource)
{
    for (size_t i = 0; dialects[i]; i++) {
        for (const char *const *own = dialects[i]->resources; *own; own++) {
            const size_t stem = strlen(*own) - 1;
            if ((*own)[stem] == '*' ? strncmp(resource, *own, stem) == 0
                                    : g_str_equal(resource, *own))
                return true;
        }
    }
    return false;
}

bool search_may_try(const struct search *search)
{
    return search->tries < search->tries_max;
}

bool search_has(const struct search *search, enum remedy_kind kind)
{
    for (guint i = 0; i < search->found->len; i++) {
        if (g_array_index(search->found, struct remedy, i).kind == kind)
            return true;
    }
    return false;
}

void search_add(struct search *search, struct remedy remedy, const struct node *node)
{
    remedy.node = g_strdup(node->name);
    g_array_append_val(search->found, remedy);
}

static void clear_pod(gpointer data)
{
    struct remedy_pod *pod = data;

    g_free(pod->ns);
    g_free(pod->name);
    g_free(pod->to);
}

GArray *remedy_pods_new(void)
{
    GArray *pods = g_array_new(FALSE, FALSE, sizeof(struct remedy_pod));

    g_array_set_clear_func(pods, clear_pod);
    return pods;
}

static void clear_amount(gpointer data)
{
    struct remedy_amount *amount = data;

    g_free(amount->container);
    g_free(amount->amount);
}

GArray *remedy_amounts_new(void)
{
    GArray *amounts = g_array_new(FALSE, FALSE, sizeof(struct remedy_amount));

    g_array_set_clear_func(amounts, clear_amount);
    return amounts;
}

void remedy_clear(struct remedy *remedy)
{
    g_free(remedy->node);
    g_free(remedy->text);
    g_free(remedy->container);
    g_free(remedy->resource);
    g_free(remedy->from);
    g_free(remedy->to);
    g_free(remedy->key);
    g_clear_pointer(&remedy->amounts, g_array_unref);
    g_clear_pointer(&remedy->pods, g_array_unref);
}

static void clear_remedy(gpointer data)
{
    remedy_clear(data);
}

GArray *remedies_new(void)
{
    GArray *remedies = g_array_new(FALSE, FALSE, sizeof(struct remedy));

    g_array_set_clear_func(remedies, clear_remedy);
    return remedies;
}

static bool has_pair(const struct search *search, enum remedy_kind first, enum remedy_kind second)
{
    for (guint i = 0; i < search->pairs->len; i++) {
        const struct remedy *changes =
            g_array_index(search->pairs, struct remedy_pair, i).changes;
        if (changes[0].kind == first && changes[1].kind == second)
            return true;
    }
    return false;
}

void search_add_pair(struct search *search, struct remedy first, struct remedy second,
                     const struct node *node)
{
    const bool swap = first.kind > second.kind;
    struct remedy_pair pair = {{swap ? second : first, swap ? first : second}};

    if (has_pair(search, pair.changes[0].kind, pair.changes[1].kind)) {
        remedy_clear(&first);
        remedy_clear(&second);
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pair.changes); i++) {
        if (!pair.changes[i].node)
            pair.changes[i].node = g_strdup(node->name);
    }
    g_array_append_val(search->pairs, pair);
}
