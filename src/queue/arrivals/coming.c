/* SPDX-License-Identifier: Apache-2.0 */
/* Older pods that could come now go first (rule 1 of docs/design/arrival.md). */
#include "queue/arrivals/arrival.h"

/* --- nodes as an older pod finds them --------------------------------------------------------- */

struct nominees arrival_look_as(const struct arrivals_query *query, const struct arrival *arrival)
{
    struct nominees own = *query->nominees;

    own.what_ifs = NULL;
    own.came = NULL;
    own.uid = arrival->uid;
    own.ns = arrival->ns;
    own.controller = arrival->controller;
    own.scheduler = arrival->scheduler;
    own.group = NULL; /* who comes with others is not waited for */
    own.priority = arrival->priority;
    own.admission.request = arrival->request;
    own.admission.patience_ns = query->patience_ns;
    return own;
}

static void free_nominees(gpointer nominees)
{
    nominees_clear(nominees);
}

struct arrival_views arrival_views_of(const struct arrivals_node *node,
                                      const struct arrivals_query *query)
{
    struct arrival_views views = {query, node->as_it_is, node->seen, NULL};

    if (nominees_concern(query->nominees, node->as_it_is)) {
        views.others = g_array_new(FALSE, FALSE, sizeof(struct nominees));
        g_array_set_clear_func(views.others, free_nominees);
    }
    return views;
}

void arrival_views_clear(struct arrival_views *views)
{
    g_clear_pointer(&views->others, g_array_unref);
}

/* Valid until the views are cleared. */
const struct node *arrival_view_of(struct arrival_views *views, const struct arrival *arrival)
{
    if (!views->others)
        return views->seen;
    const struct nominees own = arrival_look_as(views->query, arrival);
    if (nominees_agree(&own, views->query->nominees, views->node))
        return views->seen;
    for (guint i = 0; i < views->others->len; i++) {
        struct nominees *other = &g_array_index(views->others, struct nominees, i);
        if (nominees_agree(&own, other, views->node))
            return nominees_see(other, views->node);
    }
    g_array_append_val(views->others, own);
    return nominees_see(&g_array_index(views->others, struct nominees, views->others->len - 1),
                        views->node);
}

/* --- pods that may come now ------------------------------------------------------------------ */

/* The node is closed to the pod, whatever is free there. */
bool arrival_is_shut_out(const struct arrival *arrival, const struct node *node,
                         const struct arrivals_query *query)
{
    return query->shut_out(
        query->gates,
        &(struct older_pod){arrival->uid, arrival->ns, arrival->priority, arrival->request}, node);
}

/* Whether the node, as the pod finds it, would take it now, if only after one that waits there, as filter
 * says. */
bool arrival_may_come(const struct arrival *arrival, const struct node *node,
                      const struct arrivals_query *query)
{
    struct admission_query admission = query->nominees->admission;
    const struct request *request = reservation_read_for(node, arrival->request);
    enum reason reason;

    admission.request = arrival->request;
    admission.patience_ns = query->patience_ns;
    return request && !reservation_is_hopeless(node, request) &&
           dialect_admit(node, &admission, NULL, &reason) != ADMISSION_NO;
}

/* From now on its time passes. */
void arrival_begin_hold(struct arrival *arrival, const struct arrivals_query *query)
{
    if (arrival->until_ms != 0)
        return;
    arrival_change(arrival);
    arrival->until_ms = query->now_ms + query->hold_ms;
}

/* Bytes of a pod that asks for memory of one card and nothing else; -1: it does not. */
static int64_t plain_bytes(const struct node *node, const struct request *request)
{
    const struct card_ask *ask;

    request = reservation_read_for(node, request);
    ask = request ? &request->asks[0] : NULL;
    return ask && request->n_asks == 1 && !request->terms && !ask->device && !ask->exclusive &&
                   ask->core == 0 && ask->memory.kind != AMOUNT_THOUSANDTHS
               ? amount_bytes(ask->memory, node->memory_unit)
               : -1;
}

/* Whether all of them and the pod have room on one card, so that nothing has to be tried. */
static bool have_plenty(const struct node *node, GPtrArray *may, const struct request *request)
{
    int64_t sum = plain_bytes(node, request);

    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].slots > 0)
            return false;
    }
    for (guint i = 0; sum >= 0 && i < may->len; i++) {
        const int64_t bytes = plain_bytes(node, ((const struct arrival *)may->pdata[i])->request);
        sum = bytes < 0 ? -1 : sum + bytes;
    }
    return sum >= 0 && node->n_dialects == 1 && !node_is_mixed(node) && node->n_choosy == 0 &&
           sum <= node->memory_free_max;
}

/* The oldest that the node would take now. */
static GPtrArray *find_coming(struct arrival_views *views, const struct arrivals_query *query)
{
    /* Of the first of those who ask for the same: as what it found the node last, and whether it may come. */
    const struct node *asked[ARRIVALS_OLDER_MAX];
    bool may[ARRIVALS_OLDER_MAX];
    GPtrArray *coming = NULL;

    for (guint i = 0; i < query->older->len; i++) {
        struct arrival *arrival = query->older->pdata[i];
        const guint like = arrival->like->at;
        if (like == i)
            asked[i] = NULL;
        const struct node *found = arrival_view_of(views, arrival);
        if (asked[like] != found) {
            asked[like] = found;
            may[like] = arrival_may_come(arrival, found, query);
        }
        /* Asked of each, by names, and so only where one like it may come at all. */
        if (!may[like] || arrival_is_shut_out(arrival, views->node, query))
            continue;
        coming = coming ? coming : g_ptr_array_new();
        g_ptr_array_add(coming, arrival);
        if (coming->len == ARRIVALS_TOGETHER_MAX)
            break;
    }
    return coming;
}

/* The first for whom there is no room once the pod and those before it have come; NULL: there is for all.
 * All find the same node. */
static struct arrival *find_kept_out(const struct arrival_views *views,
                                     const struct placement *placement, const GPtrArray *coming)
{
    const struct arrivals_query *query = views->query;
    struct admission_query admission = query->nominees->admission;
    g_autoptr(what_if) together = what_if_new(views->seen);
    struct placement older;
    enum reason reason;

    admission.patience_ns = query->patience_ns;
    what_if_add(together,
                what_if_allocation(query->nominees->uid, query->nominees->priority, placement));
    for (guint i = 0; i < coming->len; i++) {
        struct arrival *arrival = coming->pdata[i];
        admission.request = arrival->request;
        if (dialect_admit(together->node, &admission, &older, &reason) == ADMISSION_NO)
            return arrival;
        what_if_add(together, what_if_allocation(arrival->uid, arrival->priority, &older));
    }
    return NULL;
}

static void free_allocation(gpointer allocation)
{
    allocation_free(allocation);
}

/* Whether the node takes the pod beside those who have come before it. `ret_placement` is set if so. */
static bool takes_beside(struct nominees *own, const struct node *node, const GPtrArray *there,
                         struct placement *ret_placement)
{
    g_autoptr(what_if) what_if = what_if_new(nominees_see(own, node));
    enum reason reason;

    for (guint i = 0; i < there->len; i++)
        what_if_add(what_if, allocation_dup(there->pdata[i]));
    return dialect_admit(what_if->node, &own->admission, ret_placement, &reason) != ADMISSION_NO;
}

/* The same where each may find another one: what is kept for a pod is so no longer once it has come. */
static struct arrival *find_kept_out_each(const struct arrival_views *views,
                                          const struct placement *placement,
                                          const GPtrArray *coming)
{
    const struct nominees *asking = views->query->nominees;
    g_autoptr(GPtrArray) there = g_ptr_array_new_with_free_func(free_allocation);
    g_autoptr(GPtrArray) came = g_ptr_array_new();
    struct placement older;

    g_ptr_array_add(there, what_if_allocation(asking->uid, asking->priority, placement));
    nominees_take(asking, views->node, came);
    for (guint i = 0; i < coming->len; i++) {
        struct arrival *arrival = coming->pdata[i];
        struct nominees own = arrival_look_as(views->query, arrival);
        own.came = came;
        const bool takes = takes_beside(&own, views->node, there, &older);
        nominees_clear(&own);
        if (!takes)
            return arrival;
        g_ptr_array_add(there, what_if_allocation(arrival->uid, arrival->priority, &older));
        nominees_take(&own, views->node, came);
    }
    return NULL;
}

struct arrivals_older arrivals_yield(const struct arrivals_node *node,
                                     const struct placement *placement,
                                     const struct arrivals_query *query)
{
    struct arrival *kept_out = NULL;

    if (query->older->len == 0)
        return (struct arrivals_older){NULL};
    struct arrival_views views = arrival_views_of(node, query);
    g_autoptr(GPtrArray) coming = find_coming(&views, query);
    if (coming && views.others)
        kept_out = find_kept_out_each(&views, placement, coming);
    else if (coming && !have_plenty(node->seen, coming, query->nominees->admission.request))
        kept_out = find_kept_out(&views, placement, coming);
    arrival_views_clear(&views);
    if (!kept_out)
        return (struct arrivals_older){NULL};
    arrival_begin_hold(kept_out, query);
    return (struct arrivals_older){kept_out->title};
}
