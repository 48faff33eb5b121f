/* SPDX-License-Identifier: Apache-2.0 */
#include "app/arrivals.h"

#include <string.h>

struct arrival {
    char *uid;
    char *title; /* "NAMESPACE/NAME" */
    char *created; /* RFC 3339 in UTC, so that text sorts as time; or NULL */
    uint64_t number;
    int64_t priority;
    const struct request *request;
    int64_t until_ms; /* how long others leave room for it; 0: nobody has had to yet */
};

struct arrivals {
    GSequence *in_order;
    GHashTable *places; /* uid -> its GSequenceIter */
    uint64_t number;
};

static void arrival_free(gpointer data)
{
    struct arrival *arrival = data;
    g_free(arrival->uid);
    g_free(arrival->title);
    g_free(arrival->created);
    g_free(arrival);
}

static gint compare(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct arrival *left = a, *right = b;
    const int order = left->created && right->created ? strcmp(left->created, right->created) : 0;

    if (order != 0)
        return order;
    return left->number < right->number ? -1 : left->number > right->number;
}

struct arrivals *arrivals_new(void)
{
    struct arrivals *arrivals = g_new0(struct arrivals, 1);

    arrivals->in_order = g_sequence_new(arrival_free);
    arrivals->places = g_hash_table_new(g_str_hash, g_str_equal);
    return arrivals;
}

void arrivals_free(struct arrivals *arrivals)
{
    g_hash_table_unref(arrivals->places);
    g_sequence_free(arrivals->in_order);
    g_free(arrivals);
}

void arrivals_add(struct arrivals *arrivals, const struct pod_view *pod,
                  const struct request *request)
{
    if (g_hash_table_contains(arrivals->places, pod->uid))
        return;
    struct arrival *arrival = g_new0(struct arrival, 1);
    arrival->uid = g_strdup(pod->uid);
    arrival->title = g_strdup_printf("%s/%s", pod->ns ? pod->ns : "", pod->name ? pod->name : "");
    arrival->created = g_strdup(pod->created);
    arrival->number = arrivals->number++;
    arrival->priority = pod->priority;
    arrival->request = request;
    g_hash_table_insert(arrivals->places, arrival->uid,
                        g_sequence_insert_sorted(arrivals->in_order, arrival, compare, NULL));
}

void arrivals_copy(struct arrivals *arrivals, const struct arrivals *from, const char *uid,
                   const struct request *request)
{
    GSequenceIter *place = g_hash_table_lookup(from->places, uid);

    if (!place || g_hash_table_contains(arrivals->places, uid))
        return;
    struct arrival *copy = g_memdup2(g_sequence_get(place), sizeof *copy);
    copy->uid = g_strdup(copy->uid);
    copy->title = g_strdup(copy->title);
    copy->created = g_strdup(copy->created);
    copy->request = request;
    arrivals->number = MAX(arrivals->number, copy->number + 1);
    g_hash_table_insert(arrivals->places, copy->uid,
                        g_sequence_insert_sorted(arrivals->in_order, copy, compare, NULL));
}

void arrivals_forget(struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *place = g_hash_table_lookup(arrivals->places, uid);

    if (!place)
        return;
    g_hash_table_remove(arrivals->places, uid);
    g_sequence_remove(place);
}

/* The pod's request as a node side of the node reads it, or NULL. */
static const struct request *read_for(const struct node *node, const struct request *request)
{
    while (request && !node_offers(node, request->dialect))
        request = request->alternative;
    return request;
}

/* What the older pod and all that `request` holds ask for together; NULL: more than one search can
 * tell. */
static struct request *join(const struct request *older, const struct request *request)
{
    const size_t n = (size_t)older->n_asks + request->n_asks;

    if (n > REQUEST_ASKS_MAX)
        return NULL;
    struct request *joint = request_new(request->dialect, n);
    memcpy(joint->asks, older->asks, older->n_asks * sizeof *older->asks);
    memcpy(&joint->asks[older->n_asks], request->asks, request->n_asks * sizeof *request->asks);
    return joint;
}

static bool have_room(const struct node *node, const struct request *joint,
                      const struct policy *policy)
{
    struct placement placement;

    policy = joint->dialect->policy ? joint->dialect->policy : policy;
    return placement_find(node, joint, policy, NULL, CARD_UNKNOWN, &placement) == REASON_NONE;
}

/* Whether the node would take the older pod now. */
static bool may_come(const struct arrival *arrival, const struct node *node,
                     const struct arrivals_query *query)
{
    struct admission_query admission = *query->admission;
    enum reason reason;

    admission.request = arrival->request;
    return arrival->priority >= query->priority &&
           (arrival->until_ms == 0 || arrival->until_ms > query->now_ms) &&
           !ledger_get(query->ledger, arrival->uid) &&
           dialect_admit(node, &admission, NULL, &reason) == ADMISSION_YES;
}

const char *arrivals_yield(struct arrivals *arrivals, const struct node *node,
                           const struct arrivals_query *query)
{
    g_autoptr(request) all = NULL; /* asks of the pod and of the older ones that fit beside it */

    if (query->hold_ms == 0) /* the usual case, asked for every node */
        return NULL;
    const GSequenceIter *own = g_hash_table_lookup(arrivals->places, query->uid);
    GSequenceIter *place = g_sequence_get_begin_iter(arrivals->in_order);
    for (int n = 0; n < ARRIVALS_OLDER_MAX && place != own && !g_sequence_iter_is_end(place);
         place = g_sequence_iter_next(place)) {
        struct arrival *arrival = g_sequence_get(place);
        if (!may_come(arrival, node, query))
            continue;
        n++;
        const struct request *older = read_for(node, arrival->request);
        const struct request *younger = all ? all : read_for(node, query->admission->request);
        if (older->dialect == younger->dialect) {
            struct request *joint = join(older, younger);
            if (!joint)
                return NULL;
            request_free(all);
            all = joint;
            if (have_room(node, all, query->admission->policy))
                continue;
        }
        if (arrival->until_ms == 0)
            arrival->until_ms = query->now_ms + query->hold_ms;
        return arrival->title;
    }
    return NULL;
}

void arrivals_renew(struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *place = g_hash_table_lookup(arrivals->places, uid);

    if (place)
        ((struct arrival *)g_sequence_get(place))->until_ms = 0;
}
