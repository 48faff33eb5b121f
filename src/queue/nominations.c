/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/nominations.h"

#include "core/ledger.h"
#include "policy/victims.h"

#include <string.h>

struct nomination {
    char *uid;
    char *node;
    int64_t priority;
    uint64_t number; /* in order of arrival */
    const struct request *request;
};

struct nominations {
    struct ledger *ledger;
    GHashTable *pods;  /* uid -> struct nomination * */
    GHashTable *nodes; /* name -> GPtrArray of the same, the most important first */
    uint64_t number;
};

static void nomination_free(gpointer data)
{
    struct nomination *nomination = data;

    g_free(nomination->uid);
    g_free(nomination->node);
    g_free(nomination);
}

static void free_list(gpointer data)
{
    g_ptr_array_unref(data);
}

struct nominations *nominations_new(struct ledger *ledger)
{
    struct nominations *nominations = g_new0(struct nominations, 1);

    nominations->ledger = ledger;
    nominations->pods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, nomination_free);
    nominations->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_list);
    return nominations;
}

void nominations_free(struct nominations *nominations)
{
    g_hash_table_unref(nominations->nodes);
    g_hash_table_unref(nominations->pods);
    g_free(nominations);
}

static gint compare(gconstpointer a, gconstpointer b)
{
    const struct nomination *const *left = a, *const *right = b;

    if ((*left)->priority != (*right)->priority)
        return (*left)->priority > (*right)->priority ? -1 : 1;
    return (*left)->number < (*right)->number ? -1 : 1;
}

static void add(struct nominations *nominations, struct nomination *take_nomination)
{
    GPtrArray *list = g_hash_table_lookup(nominations->nodes, take_nomination->node);

    if (!list) {
        list = g_ptr_array_new();
        g_hash_table_insert(nominations->nodes, g_strdup(take_nomination->node), list);
    }
    g_ptr_array_add(list, take_nomination);
    g_ptr_array_sort(list, compare);
    g_hash_table_insert(nominations->pods, take_nomination->uid, take_nomination);
}

void nominations_forget(struct nominations *nominations, const char *uid)
{
    struct nomination *nomination = g_hash_table_lookup(nominations->pods, uid);

    if (!nomination)
        return;
    GPtrArray *list = g_hash_table_lookup(nominations->nodes, nomination->node);
    ledger_mark_freed(nominations->ledger, nomination->node);
    g_ptr_array_remove(list, nomination);
    if (list->len == 0)
        g_hash_table_remove(nominations->nodes, nomination->node);
    g_hash_table_remove(nominations->pods, nomination->uid);
}

/* The node is as others find it only while nothing is known to have become free of it. */
static void change(struct nominations *nominations, struct nomination *nomination,
                   int64_t priority, const struct request *request)
{
    if (nomination->request == request && nomination->priority == priority)
        return;
    nomination->request = request;
    nomination->priority = priority;
    g_ptr_array_sort(g_hash_table_lookup(nominations->nodes, nomination->node), compare);
    ledger_mark_freed(nominations->ledger, nomination->node);
}

void nominations_note(struct nominations *nominations, const struct pod_view *pod,
                      const struct request *request)
{
    struct nomination *known = g_hash_table_lookup(nominations->pods, pod->uid);
    const char *node = pod->nominated_node && !pod->terminating ? pod->nominated_node : "";

    if (known && g_str_equal(known->node, node)) {
        change(nominations, known, pod->priority, request);
        return;
    }
    if (!known && !*node)
        return;
    nominations_forget(nominations, pod->uid);
    if (!*node)
        return;
    struct nomination *nomination = g_new(struct nomination, 1);
    *nomination = (struct nomination){
        .uid = g_strdup(pod->uid),
        .node = g_strdup(node),
        .priority = pod->priority,
        .number = nominations->number++,
        .request = request,
    };
    add(nominations, nomination);
}

bool nominations_have(const struct nominations *nominations, const char *uid)
{
    return g_hash_table_contains(nominations->pods, uid);
}

void nominations_copy(struct nominations *nominations, const struct nominations *from,
                      const char *uid, const struct request *request)
{
    const struct nomination *known = g_hash_table_lookup(from->pods, uid);

    if (!known)
        return;
    struct nomination *copy = g_memdup2(known, sizeof *copy);
    copy->uid = g_strdup(known->uid);
    copy->node = g_strdup(known->node);
    copy->request = request;
    nominations->number = MAX(nominations->number, copy->number + 1);
    add(nominations, copy);
}

/* --- nodes as a pod finds them -------------------------------------------------------------- */

static bool finds_room(const struct node *node, void *data)
{
    return dialect_admits(node, data) == ADMISSION_YES;
}

/* Takes away whom the pod would have to end, among those at last who are being deleted. False:
 * whatever ends, the pod finds no room. */
static bool clear_way(struct what_if *what_if, const struct nomination *nomination,
                      struct admission_query *admission)
{
    const GPtrArray *all = what_if->allocations;
    g_autofree struct victim *victims = g_new0(struct victim, all->len + 1);
    const struct victims_query query = {
        .admits = finds_room,
        .data = admission,
        .one_card = dialect_asks_one_card(what_if->node, nomination->request),
        .fickle = dialect_is_fickle(nomination->request),
    };
    struct victims_cost cost;
    size_t n = 0;

    for (guint i = 0; i < all->len; i++) {
        struct allocation *allocation = g_ptr_array_index(all, i);
        if (allocation->state == ALLOCATION_CONFIRMED &&
            allocation->priority < nomination->priority)
            victims[n++].allocation = allocation;
    }
    if (!victims_choose(what_if, &query, victims, n, &cost))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (victims[i].chosen)
            what_if_without(what_if, victims[i].allocation);
    }
    return true;
}

/* Adds what the nominated pod will hold; those whom it waits for are still there, too. */
static void place(struct what_if *what_if, const struct nomination *nomination,
                  const struct nominees *nominees)
{
    g_autoptr(what_if) later = what_if_new(what_if->node);
    struct admission_query admission = nominees->admission;
    struct placement placement;
    enum reason reason;

    admission.request = nomination->request;
    later->node->n_waiting = 0; /* whom the node side has not matched yet it will have by then */
    g_clear_pointer(&later->node->departed, g_array_unref);
    if (!clear_way(later, nomination, &admission) ||
        dialect_admit(later->node, &admission, &placement, &reason) != ADMISSION_YES)
        return;
    what_if_add(what_if, what_if_allocation(nomination->uid, nomination->priority, &placement));
}

static void free_what_if(gpointer data)
{
    what_if_free(data);
}

static bool counts(const struct nominees *nominees, const struct nomination *nomination)
{
    return nomination->priority >= nominees->priority &&
           g_strcmp0(nomination->uid, nominees->uid) != 0 &&
           !ledger_get(nominees->ledger, nomination->uid);
}

const struct node *nominees_see(struct nominees *nominees, const struct node *node)
{
    struct what_if *what_if = NULL;

    /* The usual case, asked for every node. */
    if (!node || g_hash_table_size(nominees->nominations->nodes) == 0)
        return node;
    const GPtrArray *list = g_hash_table_lookup(nominees->nominations->nodes, node->name);
    if (!list)
        return node;
    if (nominees->what_ifs && (what_if = g_hash_table_lookup(nominees->what_ifs, node->name)))
        return what_if->node;
    for (guint i = 0; i < list->len; i++) {
        const struct nomination *nomination = g_ptr_array_index(list, i);
        if (!counts(nominees, nomination))
            continue;
        if (!what_if)
            what_if = what_if_new(node);
        place(what_if, nomination, nominees);
    }
    if (!what_if)
        return node;
    if (!nominees->what_ifs)
        nominees->what_ifs = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_what_if);
    g_hash_table_insert(nominees->what_ifs, (gpointer)what_if->node->name, what_if);
    return what_if->node;
}

void nominees_clear(struct nominees *nominees)
{
    g_clear_pointer(&nominees->what_ifs, g_hash_table_unref);
}

void nominations_flag(const struct nominations *nominations, struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, nominations->nodes);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        ledger_flag(ledger, name);
}
