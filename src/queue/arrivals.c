/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/arrivals.h"

#include "core/ledger.h"
#include "queue/gangs/gangs.h"
#include "queue/pod_rules.h"
#include "queue/rejects.h"
#include "core/node_traits.h"

#include <string.h>

/* How long it is taken for granted that no node suits a pod. */
#define HOPELESS_MS 10000
/* How long it is taken for granted that a pod could ask, or could not; and how many are looked at for
 * one answer. */
#define ABLE_MS 10000
#define ABLE_LOOKS 4

/* By what is told whether a place, or that there is none, has to be looked at again. One that has passed
 * never comes back: whatever makes the size smaller counts as freed. */
struct stamp {
    uint64_t freed, places, kept;
    size_t size; /* of the ledger or of a node */
};

struct arrival {
    char *uid;
    char *ns;
    char *title; /* "NAMESPACE/NAME" */
    char *scheduler;
    char *controller;        /* as in the pod's view, or NULL */
    struct pod_facts *facts; /* what kube-scheduler adds up; a reference, or NULL */
    bool plain, grouped;
    bool asked;
    int64_t asking_ms; /* until when it counts as asking; see struct queue_entry */
    int64_t looked_ms;
    char *created; /* RFC 3339 in UTC, so that text sorts as time; or NULL */
    uint64_t number;
    int64_t priority;
    const struct request *request;
    const struct arrival *like; /* the first of a query's older ones that asks for the same */
    guint at;                   /* its place among them */
    int64_t until_ms; /* how long others leave room for it; 0: nobody has had to yet */
    struct reservation *place; /* where it will go, or NULL */
    struct stamp seen;   /* its node, or all of them, when the place was last looked for or at */
    int64_t hopeless_ms; /* when it was seen that no node that is there could ever take it; or 0 */
};

struct arrivals {
    GSequence *in_order;
    GHashTable *places; /* uid -> its GSequenceIter */
    GHashTable *schedulers; /* names of those that have asked; a set */
    GPtrArray *placed;  /* those with a place, the oldest first; borrowed */
    uint64_t number;
    uint64_t n_changes; /* of places, and 1: no stamp is 0 that was ever made */
};

static void arrival_free(gpointer data)
{
    struct arrival *arrival = data;
    reservation_free(arrival->place);
    g_free(arrival->uid);
    g_free(arrival->ns);
    g_free(arrival->title);
    g_free(arrival->created);
    g_free(arrival->scheduler);
    g_free(arrival->controller);
    pod_facts_unref(arrival->facts);
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

static gint compare_pointers(gconstpointer a, gconstpointer b, gpointer data)
{
    return compare(*(const struct arrival *const *)a, *(const struct arrival *const *)b, data);
}

struct arrivals *arrivals_new(void)
{
    struct arrivals *arrivals = g_new0(struct arrivals, 1);

    arrivals->in_order = g_sequence_new(arrival_free);
    arrivals->places = g_hash_table_new(g_str_hash, g_str_equal);
    arrivals->schedulers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    arrivals->placed = g_ptr_array_new();
    arrivals->n_changes = 1;
    return arrivals;
}

void arrivals_free(struct arrivals *arrivals)
{
    g_hash_table_unref(arrivals->schedulers);
    g_ptr_array_unref(arrivals->placed);
    g_hash_table_unref(arrivals->places);
    g_sequence_free(arrivals->in_order);
    g_free(arrivals);
}

static void drop_place(struct arrivals *arrivals, struct arrival *arrival)
{
    if (!arrival->place)
        return;
    g_clear_pointer(&arrival->place, reservation_free);
    g_ptr_array_remove(arrivals->placed, arrival);
    arrivals->n_changes++;
}

static const char *scheduler_of(const struct pod_view *pod)
{
    return pod->scheduler_name && *pod->scheduler_name ? pod->scheduler_name : DEFAULT_SCHEDULER;
}

/* What it asks for now it may find elsewhere. Its turn, and how long it has been waited for, stay. */
static void change(struct arrivals *arrivals, struct arrival *arrival,
                   const struct arrivals_pod *pod)
{
    arrival->plain = pod->plain; /* gates go */
    arrival->grouped = pod->grouped;
    if (arrival->request == pod->request && arrival->priority == pod->view->priority &&
        g_strcmp0(arrival->controller, pod->view->controller) == 0)
        return;
    g_free(arrival->controller);
    arrival->controller = g_strdup(pod->view->controller);
    pod_facts_unref(arrival->facts);
    arrival->facts = pod_facts_ref(pod->facts);
    arrival->request = pod->request;
    arrival->priority = pod->view->priority;
    arrival->hopeless_ms = 0;
    arrival->seen = (struct stamp){0};
    drop_place(arrivals, arrival);
}

void arrivals_add(struct arrivals *arrivals, const struct arrivals_pod *entry)
{
    const struct pod_view *pod = entry->view;
    GSequenceIter *known = g_hash_table_lookup(arrivals->places, pod->uid);

    if (known) {
        change(arrivals, g_sequence_get(known), entry);
        return;
    }
    struct arrival *arrival = g_new0(struct arrival, 1);
    arrival->uid = g_strdup(pod->uid);
    arrival->ns = g_strdup(pod->ns ? pod->ns : "");
    arrival->title = g_strdup_printf("%s/%s", arrival->ns, pod->name ? pod->name : "");
    arrival->created = g_strdup(pod->created);
    arrival->number = arrivals->number++;
    arrival->scheduler = g_strdup(scheduler_of(pod));
    arrival->controller = g_strdup(pod->controller);
    arrival->facts = pod_facts_ref(entry->facts);
    arrival->plain = entry->plain;
    arrival->grouped = entry->grouped;
    arrival->priority = pod->priority;
    arrival->request = entry->request;
    g_hash_table_insert(arrivals->places, arrival->uid,
                        g_sequence_insert_sorted(arrivals->in_order, arrival, compare, NULL));
}

void arrivals_note_scheduler(struct arrivals *arrivals, const char *name)
{
    if (g_hash_table_size(arrivals->schedulers) < ARRIVALS_SCHEDULERS_MAX &&
        !g_hash_table_contains(arrivals->schedulers, name))
        g_hash_table_add(arrivals->schedulers, g_strdup(name));
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

GList *arrivals_schedulers(const struct arrivals *arrivals)
{
    return g_list_sort(g_hash_table_get_keys(arrivals->schedulers), compare_names);
}

void arrivals_copy_common(struct arrivals *arrivals, const struct arrivals *from)
{
    g_autoptr(GList) names = arrivals_schedulers(from);

    for (const GList *name = names; name; name = name->next)
        arrivals_note_scheduler(arrivals, name->data);
}

void arrivals_ask(struct arrivals *arrivals, const char *uid, int64_t now_ms)
{
    GSequenceIter *at = g_hash_table_lookup(arrivals->places, uid);

    if (!at)
        return;
    struct arrival *arrival = g_sequence_get(at);
    arrivals_note_scheduler(arrivals, arrival->scheduler);
    arrival->asked = true;
    arrival->asking_ms = now_ms + ARRIVALS_ASKING_MS;
}

void arrivals_copy(struct arrivals *arrivals, const struct arrivals *from, const char *uid,
                   const struct request *request)
{
    GSequenceIter *place = g_hash_table_lookup(from->places, uid);

    if (!place || g_hash_table_contains(arrivals->places, uid))
        return;
    struct arrival *copy = g_memdup2(g_sequence_get(place), sizeof *copy);
    copy->uid = g_strdup(copy->uid);
    copy->ns = g_strdup(copy->ns);
    copy->title = g_strdup(copy->title);
    copy->created = g_strdup(copy->created);
    copy->scheduler = g_strdup(copy->scheduler);
    copy->controller = g_strdup(copy->controller);
    copy->facts = pod_facts_ref(copy->facts);
    copy->request = request;
    copy->place = copy->place ? reservation_dup(copy->place) : NULL;
    copy->seen = (struct stamp){0};
    arrivals->number = MAX(arrivals->number, copy->number + 1);
    g_hash_table_insert(arrivals->places, copy->uid,
                        g_sequence_insert_sorted(arrivals->in_order, copy, compare, NULL));
    if (copy->place)
        g_ptr_array_add(arrivals->placed, copy);
    g_ptr_array_sort_with_data(arrivals->placed, compare_pointers, NULL);
}

void arrivals_forget(struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *place = g_hash_table_lookup(arrivals->places, uid);

    if (!place)
        return;
    drop_place(arrivals, g_sequence_get(place));
    g_hash_table_remove(arrivals->places, uid);
    g_sequence_remove(place);
}

/* --- pods that ask ---------------------------------------------------------------------------- */

/* Whether kube-scheduler's sums of extended resources leave the pod room. What the node does not offer is
 * left to an extender, so kube-scheduler is configured. */
static bool sums_suffice(const struct node *node, const struct pod_facts *facts)
{
    for (uint32_t i = 0; facts && i < facts->n_amounts; i++) {
        const char *resource = facts->amounts[i].resource;
        const int64_t all = node_traits_amount(node->traits, resource);
        int64_t left = all - facts->amounts[i].thousandths;
        for (guint j = 0; all > 0 && left >= 0 && j < node->allocations->len; j++) {
            const struct allocation *one = node->allocations->pdata[j];
            left -= pod_facts_amount(one->facts, resource);
        }
        if (all > 0 && left < 0)
            return false;
    }
    return true;
}

static bool could_ask(const struct arrival *arrival, struct ledger *ledger)
{
    const GPtrArray *nodes = ledger_nodes(ledger);

    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->present && node->dialect && !node->cordoned &&
            sums_suffice(node, arrival->facts))
            return true;
    }
    return false;
}

/* Of a pod that does not ask: whether that is because it cannot. */
static void look_for_excuse(const struct arrivals *arrivals, const struct arrivals_query *query,
                            struct arrival *arrival, int *looks)
{
    const bool excused = arrival->asking_ms == INT64_MAX;

    if (arrival->asking_ms > query->now_ms && !excused)
        return;
    if (!arrival->asked && !(arrival->plain && g_hash_table_contains(arrivals->schedulers,
                                                                     arrival->scheduler))) {
        arrival->asking_ms = 0;
        return;
    }
    if ((arrival->looked_ms != 0 && query->now_ms - arrival->looked_ms < ABLE_MS) || *looks == 0)
        return;
    --*looks;
    arrival->looked_ms = query->now_ms;
    if (!could_ask(arrival, query->ledger))
        arrival->asking_ms = INT64_MAX;
    else if (excused)
        arrival->asking_ms = query->now_ms + ARRIVALS_ASKING_MS;
}

static void look_for_excuses(struct arrivals *arrivals, const struct arrivals_query *query)
{
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    int looks = ABLE_LOOKS;

    for (; looks > 0 && !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at))
        look_for_excuse(arrivals, query, g_sequence_get(at), &looks);
}

/* It asks, or cannot, and its time has not passed. */
static bool is_waited_for(const struct arrival *arrival, const struct arrivals_query *query)
{
    return !arrival->grouped && (query->all_ask || arrival->asking_ms > query->now_ms) &&
           (arrival->until_ms == 0 || arrival->until_ms > query->now_ms) &&
           !ledger_get(query->ledger, arrival->uid);
}

/* --- shares of namespaces --------------------------------------------------------------------- */

/* How many of each namespace wait. */
static GHashTable *count_waiting(const struct arrivals *arrivals,
                                 const struct arrivals_query *query, guint *ret_all)
{
    GHashTable *counts = g_hash_table_new(g_str_hash, g_str_equal);
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);

    *ret_all = 0;
    for (; !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at)) {
        const struct arrival *arrival = g_sequence_get(at);
        if (!is_waited_for(arrival, query) || arrival->hopeless_ms != 0)
            continue;
        const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, arrival->ns));
        g_hash_table_insert(counts, arrival->ns, GUINT_TO_POINTER(n + 1));
        ++*ret_all;
    }
    return counts;
}

/* Of `n` places each namespace may have half, and what the pods of others leave. */
struct shares {
    GHashTable *waiting, *given; /* namespace -> number */
    guint all;
    int64_t n;
};

static bool take_share(struct shares *shares, const struct arrival *arrival)
{
    const int64_t own = GPOINTER_TO_UINT(g_hash_table_lookup(shares->waiting, arrival->ns));
    const int64_t given = GPOINTER_TO_UINT(g_hash_table_lookup(shares->given, arrival->ns));

    if (given >= MAX((shares->n + 1) / 2, shares->n - ((int64_t)shares->all - own)))
        return false;
    g_hash_table_insert(shares->given, arrival->ns, GUINT_TO_POINTER((guint)given + 1));
    return true;
}

/* --- nodes as an older pod finds them --------------------------------------------------------- */

static struct nominees look_as(const struct arrivals_query *query, const struct arrival *arrival)
{
    struct nominees own = *query->nominees;

    own.what_ifs = NULL;
    own.came = NULL;
    own.uid = arrival->uid;
    own.ns = arrival->ns;
    own.controller = arrival->controller;
    own.group = NULL; /* who comes with others is not waited for */
    own.priority = arrival->priority;
    own.admission.request = arrival->request;
    own.admission.patience_ns = query->patience_ns;
    return own;
}

/* One node, as the pod that asks finds it, and as older ones do, for whom other room is kept. Those for
 * whom the same is share what they find. */
struct views {
    const struct arrivals_query *query;
    const struct node *node; /* as it is */
    const struct node *seen; /* by the pod that asks */
    GArray *others;          /* struct nominees; NULL: all find it alike, as mostly */
};

static void free_nominees(gpointer nominees)
{
    nominees_clear(nominees);
}

static struct views views_of(const struct arrivals_node *node, const struct arrivals_query *query)
{
    struct views views = {query, node->as_it_is, node->seen, NULL};

    if (nominations_concern(query->nominees->nominations, node->as_it_is)) {
        views.others = g_array_new(FALSE, FALSE, sizeof(struct nominees));
        g_array_set_clear_func(views.others, free_nominees);
    }
    return views;
}

static void views_clear(struct views *views)
{
    g_clear_pointer(&views->others, g_array_unref);
}

/* Valid until the views are cleared. */
static const struct node *view_of(struct views *views, const struct arrival *arrival)
{
    if (!views->others)
        return views->seen;
    const struct nominees own = look_as(views->query, arrival);
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
static bool is_closed(const struct arrival *arrival, const struct node *node,
                      const struct arrivals_query *query)
{
    return gangs_kept_on(query->gangs, node->name, arrival->uid, arrival->priority, NULL) ||
           rejects_close(query->rejects, node, arrival->request, arrival->ns);
}

/* Whether the node, as the pod finds it, would take it now, if only after one that waits there, as filter
 * says. */
static bool may_come(const struct arrival *arrival, const struct node *node,
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
static void begin_hold(struct arrival *arrival, const struct arrivals_query *query)
{
    if (arrival->until_ms == 0)
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
        const int64_t bytes =
            plain_bytes(node, ((const struct arrival *)may->pdata[i])->request);
        sum = bytes < 0 ? -1 : sum + bytes;
    }
    return sum >= 0 && node->n_dialects == 1 && node->n_choosy == 0 && sum <= node->memory_free_max;
}

/* The oldest that the node would take now. */
static GPtrArray *find_coming(struct views *views, const struct arrivals_query *query)
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
        if (is_closed(arrival, views->node, query))
            continue;
        const struct node *found = view_of(views, arrival);
        if (asked[like] != found) {
            asked[like] = found;
            may[like] = may_come(arrival, found, query);
        }
        if (!may[like])
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
static struct arrival *find_kept_out(const struct views *views, const struct placement *placement,
                                     const GPtrArray *coming)
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
static struct arrival *find_kept_out_each(const struct views *views,
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
        struct nominees own = look_as(views->query, arrival);
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
    struct views views = views_of(node, query);
    g_autoptr(GPtrArray) coming = find_coming(&views, query);
    if (coming && views.others)
        kept_out = find_kept_out_each(&views, placement, coming);
    else if (coming && !have_plenty(node->seen, coming, query->nominees->admission.request))
        kept_out = find_kept_out(&views, placement, coming);
    views_clear(&views);
    if (!kept_out)
        return (struct arrivals_older){NULL};
    begin_hold(kept_out, query);
    return (struct arrivals_older){kept_out->title};
}

/* --- pods for which a place is kept ----------------------------------------------------------- */

/* Whether a pod has to fit beside the place of another, which is not open. */
static bool counts(const struct arrival *arrival, const struct arrivals_query *query)
{
    return !reservation_is_open(arrival->place) && arrival->priority >= query->nominees->priority &&
           is_waited_for(arrival, query);
}

/* How many of those with a place came before the pod that asks. */
static guint count_older(const struct arrivals *arrivals, const struct arrivals_query *query)
{
    GSequenceIter *own = g_hash_table_lookup(arrivals->places, query->nominees->uid);
    guint n = 0;

    while (n < arrivals->placed->len &&
           (!own || compare(arrivals->placed->pdata[n], g_sequence_get(own), NULL) < 0))
        n++;
    return n;
}

static size_t older_places(const struct arrivals *arrivals, const struct arrivals_query *query,
                           const struct reservation **ret_places)
{
    const guint n_older = count_older(arrivals, query);
    size_t n = 0;

    for (guint i = 0; i < n_older; i++) {
        const struct arrival *arrival = arrivals->placed->pdata[i];
        if (counts(arrival, query))
            ret_places[n++] = arrival->place;
    }
    return n;
}

static struct stamp stamp_of(const struct arrivals *arrivals, const struct ledger *ledger,
                             const struct nominations *nominations, const struct reservation *place)
{
    const struct node *node = place ? ledger_node(ledger, place->node) : NULL;

    return (struct stamp){
        .freed = node ? node_own(node)->freed_at : ledger_freed(ledger),
        .size = node ? node->allocations->len : ledger_size(ledger),
        .places = arrivals->n_changes,
        .kept = place ? nominations_kept(nominations) : 0, /* which leaves less */
    };
}

static bool is_same(const struct stamp *a, const struct stamp *b)
{
    return a->freed == b->freed && a->size == b->size && a->places == b->places &&
           a->kept == b->kept;
}

/* Sees to the place of one pod, as that pod finds the nodes. */
static void find_place(struct arrivals *arrivals, const struct arrivals_query *query,
                       struct arrival *arrival)
{
    const struct reservation *before[ARRIVALS_PLACES_MAX];
    struct nominees nominees = look_as(query, arrival);
    struct arrivals_query own = *query;
    bool blocked = false;

    own.nominees = &nominees;
    const struct pod_view pod = {.uid = arrival->uid, .ns = arrival->ns};
    g_autoptr(quota_room) room = quotas_room(query->quotas, query->ledger, &pod, arrival->request);
    const struct reservation_query places = {
        .ledger = query->ledger,
        .nominees = &nominees,
        .room = room,
        .before = before,
        .n_before = older_places(arrivals, &own, before),
    };
    if (arrival->place && !reservation_holds(arrival->place, &places))
        drop_place(arrivals, arrival);
    if (!arrival->place) {
        arrival->place = reservation_choose(&places, &blocked);
        arrival->hopeless_ms = arrival->place || blocked ? 0 : query->now_ms;
        if (arrival->place) {
            g_ptr_array_add(arrivals->placed, arrival);
            g_ptr_array_sort_with_data(arrivals->placed, compare_pointers, NULL);
            arrivals->n_changes++;
        }
    }
    arrival->seen = stamp_of(arrivals, query->ledger, query->nominees->nominations, arrival->place);
    nominees_clear(&nominees);
}

/* Whether nobody but pods of its own namespace has to end before it can come. */
static bool has_own_way(const struct arrival *arrival, const struct ledger *ledger)
{
    const GPtrArray *ending = arrival->place->ending;

    for (guint i = 0; i < ending->len; i++) {
        const struct allocation *one = ledger_get(ledger, ending->pdata[i]);
        if (one && g_strcmp0(one->ns, arrival->ns) != 0)
            return false;
    }
    return true;
}

/* Whether it is known what looking would find. */
static bool is_settled(const struct arrivals *arrivals, const struct arrivals_query *query,
                       const struct arrival *arrival)
{
    const struct stamp now =
        stamp_of(arrivals, query->ledger, query->nominees->nominations, arrival->place);

    return is_same(&arrival->seen, &now) ||
           (arrival->hopeless_ms != 0 && query->now_ms - arrival->hopeless_ms < HOPELESS_MS);
}

/* Who has to be left room: who came before the pod, is not less important, and is waited for. For one
 * that is nominated room is kept already. */
static GPtrArray *find_older(struct arrivals *arrivals, const struct arrivals_query *query,
                             GHashTable *waiting, guint all)
{
    const GSequenceIter *own = g_hash_table_lookup(arrivals->places, query->nominees->uid);
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    GPtrArray *older = g_ptr_array_new();
    struct shares shares = {.waiting = waiting,
                            .given = g_hash_table_new(g_str_hash, g_str_equal),
                            .all = all,
                            .n = ARRIVALS_OLDER_MAX};

    for (; older->len < ARRIVALS_OLDER_MAX && at != own && !g_sequence_iter_is_end(at);
         at = g_sequence_iter_next(at)) {
        struct arrival *arrival = g_sequence_get(at);
        if (arrival->priority < query->nominees->priority || !is_waited_for(arrival, query) ||
            nominations_have(query->nominees->nominations, arrival->uid) ||
            !take_share(&shares, arrival))
            continue;
        arrival->at = older->len;
        arrival->like = arrival;
        for (guint i = 0; i < older->len && arrival->like == arrival; i++) {
            const struct arrival *other = older->pdata[i];
            if (other->like == other && request_equal(other->request, arrival->request))
                arrival->like = other;
        }
        g_ptr_array_add(older, arrival);
    }
    g_hash_table_unref(shares.given);
    return older;
}

/* The oldest pods get places, and no others have any. */
static void settle(struct arrivals *arrivals, const struct arrivals_query *query,
                   GHashTable *waiting, guint all)
{
    const int64_t n_places = MIN(query->n_places, ARRIVALS_PLACES_MAX);
    struct shares shares = {.waiting = waiting,
                            .given = g_hash_table_new(g_str_hash, g_str_equal),
                            .all = all,
                            .n = n_places};
    int64_t n = 0, looked = 0;

    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    for (; n < n_places && looked < n_places * ARRIVALS_LOOKS && !g_sequence_iter_is_end(at);
         at = g_sequence_iter_next(at)) {
        struct arrival *arrival = g_sequence_get(at);
        if (!is_waited_for(arrival, query) ||
            nominations_have(query->nominees->nominations, arrival->uid)) {
            drop_place(arrivals, arrival);
            continue;
        }
        if (arrival->hopeless_ms == 0 && !take_share(&shares, arrival)) {
            drop_place(arrivals, arrival);
            continue;
        }
        const bool settled = is_settled(arrivals, query, arrival);
        if (!settled)
            find_place(arrivals, query, arrival);
        if (arrival->place && !reservation_is_open(arrival->place) &&
            has_own_way(arrival, query->ledger))
            begin_hold(arrival, query);
        n += arrival->place != NULL;
        /* Those for whom there is no node at all may be many, and keep nobody else from a place. */
        looked += !settled || arrival->hopeless_ms == 0;
    }
    for (guint i = arrivals->placed->len; i > (guint)n; i--)
        drop_place(arrivals, arrivals->placed->pdata[i - 1]);
    g_hash_table_unref(shares.given);
}

void arrivals_settle(struct arrivals *arrivals, struct arrivals_query *query)
{
    if (query->hold_ms == 0) /* the usual case */
        return;
    guint all;
    if (!query->all_ask)
        look_for_excuses(arrivals, query);
    g_autoptr(GHashTable) waiting = count_waiting(arrivals, query, &all);
    if (query->n_places > 0)
        settle(arrivals, query, waiting, all);
    query->older = find_older(arrivals, query, waiting, all);
}

struct what_if *arrivals_cover(const struct arrivals *arrivals, const struct node *node,
                             const struct arrivals_query *query)
{
    const struct reservation *places[ARRIVALS_PLACES_MAX];

    return arrivals->placed->len == 0
               ? NULL
               : reservations_cover(node, places, older_places(arrivals, query, places));
}

struct arrivals_older arrivals_leave(struct arrivals *arrivals, const struct arrivals_node *node,
                                     const struct arrivals_query *query)
{
    const guint n_older = count_older(arrivals, query);
    struct views views = views_of(node, query);
    struct arrivals_older older = {NULL};

    for (guint i = 0; i < n_older; i++) {
        struct arrival *arrival = arrivals->placed->pdata[i];
        if (!counts(arrival, query) || !g_str_equal(arrival->place->node, node->as_it_is->name))
            continue;
        if (is_waited_for(arrival, query) && !is_closed(arrival, views.node, query) &&
            may_come(arrival, view_of(&views, arrival), query))
            begin_hold(arrival, query);
        if (!older.title)
            older = (struct arrivals_older){arrival->title, arrival->place};
    }
    views_clear(&views);
    return older;
}

bool arrivals_are_idle(const struct arrivals *arrivals, const struct arrivals_query *query)
{
    return query->older->len == 0 && arrivals->placed->len == 0;
}

const struct reservation *arrivals_place(const struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *at = g_hash_table_lookup(arrivals->places, uid);
    const struct arrival *arrival = at ? g_sequence_get(at) : NULL;

    return arrival && arrival->place && !reservation_is_open(arrival->place) ? arrival->place : NULL;
}

void arrivals_renew(struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *place = g_hash_table_lookup(arrivals->places, uid);

    if (place)
        ((struct arrival *)g_sequence_get(place))->until_ms = 0;
}

guint arrivals_each(const struct arrivals *arrivals,
                    bool (*visit)(const struct arrivals_row *row, void *data), void *data)
{
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);
    bool go_on = true;

    for (; go_on && !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at)) {
        const struct arrival *arrival = g_sequence_get(at);
        go_on = visit(
            &(struct arrivals_row){
                .ns = arrival->ns,
                .title = arrival->title,
                .created = arrival->created,
                .priority = arrival->priority,
                .request = arrival->request,
                .place = arrival->place,
                .asked = arrival->asked,
            },
            data);
    }
    return (guint)g_sequence_get_length(arrivals->in_order);
}

/* --- for who goes on from it ------------------------------------------------------------------ */

GArray *arrivals_tell(const struct arrivals *arrivals, const struct ledger *ledger,
                      const struct nominations *nominations)
{
    GArray *entries = g_array_new(FALSE, FALSE, sizeof(struct queue_entry));
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);

    for (; !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at)) {
        const struct arrival *arrival = g_sequence_get(at);
        const struct stamp now = stamp_of(arrivals, ledger, nominations, arrival->place);
        const struct queue_entry entry = {
            .uid = arrival->uid,
            .asked = arrival->asked,
            .asking_ms = arrival->asking_ms,
            .looked_ms = arrival->looked_ms,
            .until_ms = arrival->until_ms,
            .hopeless_ms = arrival->hopeless_ms,
            .place = arrival->place,
            .settled = is_same(&arrival->seen, &now),
        };
        if (entry.until_ms != 0 || entry.hopeless_ms != 0 || entry.place ||
            entry.settled || entry.asked || entry.asking_ms != 0 ||
            entry.looked_ms != 0)
            g_array_append_val(entries, entry);
    }
    return entries;
}

static void forget_entries(struct arrivals *arrivals)
{
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);

    for (; !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at)) {
        struct arrival *arrival = g_sequence_get(at);
        drop_place(arrivals, arrival);
        arrival->asked = false;
        arrival->asking_ms = arrival->looked_ms = 0;
        arrival->until_ms = 0;
        arrival->hopeless_ms = 0;
        arrival->seen = (struct stamp){0};
    }
}

void arrivals_learn(struct arrivals *arrivals, const struct ledger *ledger,
                    const struct nominations *nominations, const GArray *entries)
{
    forget_entries(arrivals);
    for (guint i = 0; i < entries->len; i++) {
        const struct queue_entry *entry = &g_array_index(entries, struct queue_entry, i);
        GSequenceIter *at = g_hash_table_lookup(arrivals->places, entry->uid);
        struct arrival *arrival = at ? g_sequence_get(at) : NULL;
        if (!arrival)
            continue;
        drop_place(arrivals, arrival); /* named twice */
        arrival->asked = entry->asked;
        arrival->asking_ms = entry->asking_ms;
        arrival->looked_ms = entry->looked_ms;
        arrival->until_ms = entry->until_ms;
        arrival->hopeless_ms = entry->hopeless_ms;
        arrival->place = entry->place ? reservation_dup(entry->place) : NULL;
        if (arrival->place)
            g_ptr_array_add(arrivals->placed, arrival);
        if (entry->settled)
            arrival->seen = stamp_of(arrivals, ledger, nominations, arrival->place);
    }
    g_ptr_array_sort_with_data(arrivals->placed, compare_pointers, NULL);
}
