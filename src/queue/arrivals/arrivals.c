/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/arrivals/arrival.h"

#include "core/ledger.h"
#include "queue/pod_rules.h"

#include <string.h>

#define WALKED_AT_ONCE 16

static void arrival_free(gpointer data)
{
    struct arrival *arrival = data;
    reservation_unref(arrival->place);
    g_free(arrival->uid);
    g_free(arrival->ns);
    g_free(arrival->title);
    g_free(arrival->created);
    g_free(arrival->scheduler);
    g_free(arrival->controller);
    pod_facts_unref(arrival->facts);
    g_free(arrival);
}

gint arrival_compare_age(const char *created, uint64_t number, const char *other_created,
                         uint64_t other_number)
{
    const int order = created && other_created ? strcmp(created, other_created) : 0;

    if (order != 0)
        return order;
    return number < other_number ? -1 : number > other_number;
}

gint arrival_compare(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct arrival *left = a, *right = b;

    return arrival_compare_age(left->created, left->number, right->created, right->number);
}

static gint compare_pointers(gconstpointer a, gconstpointer b, gpointer data)
{
    return arrival_compare(*(const struct arrival *const *)a, *(const struct arrival *const *)b,
                           data);
}

struct arrivals *arrivals_new(void)
{
    struct arrivals *arrivals = g_new0(struct arrivals, 1);

    arrivals->in_order = g_sequence_new(arrival_free);
    arrivals->places = g_hash_table_new(g_str_hash, g_str_equal);
    arrivals->schedulers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    arrivals->placed = g_ptr_array_new();
    roll_init(&arrivals->roll);
    arrivals->n_changes = 1;
    return arrivals;
}

void arrivals_free(struct arrivals *arrivals)
{
    g_hash_table_unref(arrivals->schedulers);
    g_ptr_array_unref(arrivals->placed);
    g_hash_table_unref(arrivals->places);
    g_sequence_free(arrivals->in_order);
    roll_clear(&arrivals->roll);
    g_free(arrivals);
}

void arrival_change(struct arrival *arrival)
{
    roll_change(&arrival->arrivals->roll, &arrival->entry);
}

void arrival_enlist_place(struct arrival *arrival)
{
    struct arrivals *arrivals = arrival->arrivals;

    g_ptr_array_add(arrivals->placed, arrival);
    g_ptr_array_sort_with_data(arrivals->placed, compare_pointers, NULL);
}

void arrival_drop_place(struct arrival *arrival)
{
    if (!arrival->place)
        return;
    g_clear_pointer(&arrival->place, reservation_unref);
    g_ptr_array_remove(arrival->arrivals->placed, arrival);
    arrival->arrivals->n_changes++;
}

struct arrival_stamp arrival_stamp_of(const struct arrivals *arrivals, const struct ledger *ledger,
                                      const struct nominations *nominations,
                                      const struct reservation *place)
{
    const struct node *node = place ? ledger_node(ledger, place->node) : NULL;

    return (struct arrival_stamp){
        .freed = node ? ledger_freed_on(ledger, node) : ledger_freed(ledger),
        .size = node ? node->allocations->len : ledger_size(ledger),
        .places = arrivals->n_changes,
        .kept = place ? nominations_kept(nominations) : 0, /* which leaves less */
    };
}

bool arrival_stamps_agree(const struct arrival_stamp *a, const struct arrival_stamp *b)
{
    return a->freed == b->freed && a->size == b->size && a->places == b->places &&
           a->kept == b->kept;
}

/* What it asks for now it may find elsewhere. Its turn, and how long it has been waited for, stay. */
static void change(struct arrival *arrival, const struct arrivals_pod *pod)
{
    arrival->plain = pod->plain; /* gates go */
    arrival->grouped = pod->grouped;
    if (arrival->request == pod->request && arrival->priority == pod->view->priority &&
        g_strcmp0(arrival->controller, pod->view->controller) == 0)
        return;
    arrival_change(arrival);
    g_free(arrival->controller);
    arrival->controller = g_strdup(pod->view->controller);
    pod_facts_unref(arrival->facts);
    arrival->facts = pod_facts_ref(pod->facts);
    arrival->request = pod->request;
    arrival->priority = pod->view->priority;
    arrival->hopeless_ms = 0;
    arrival->seen = (struct arrival_stamp){0};
    arrival_drop_place(arrival);
}

void arrivals_add(struct arrivals *arrivals, const struct arrivals_pod *entry)
{
    const struct pod_view *pod = entry->view;
    GSequenceIter *known = g_hash_table_lookup(arrivals->places, pod->uid);

    if (known) {
        change(g_sequence_get(known), entry);
        return;
    }
    struct arrival *arrival = g_new0(struct arrival, 1);
    arrival->arrivals = arrivals;
    arrival->uid = g_strdup(pod->uid);
    arrival->ns = g_strdup(pod->ns ? pod->ns : "");
    arrival->title = g_strdup_printf("%s/%s", arrival->ns, pod->name ? pod->name : "");
    arrival->created = g_strdup(pod->created);
    arrival->number = arrivals->number++;
    arrival->scheduler = g_strdup(scheduler_of_pod(pod));
    arrival->controller = g_strdup(pod->controller);
    arrival->facts = pod_facts_ref(entry->facts);
    arrival->plain = entry->plain;
    arrival->grouped = entry->grouped;
    arrival->priority = pod->priority;
    arrival->request = entry->request;
    g_hash_table_insert(
        arrivals->places, arrival->uid,
        g_sequence_insert_sorted(arrivals->in_order, arrival, arrival_compare, NULL));
    roll_add(&arrivals->roll, &arrival->entry);
}

static guint count_brought(const struct arrivals *arrivals, const char *ns)
{
    GHashTableIter iter;
    gpointer by;
    guint n = 0;

    g_hash_table_iter_init(&iter, arrivals->schedulers);
    while (g_hash_table_iter_next(&iter, NULL, &by))
        n += g_strcmp0(by, ns) == 0;
    return n;
}

void arrivals_note_scheduler(struct arrivals *arrivals, const char *name, const char *ns)
{
    if (g_hash_table_size(arrivals->schedulers) < ARRIVALS_SCHEDULERS_MAX &&
        !g_hash_table_contains(arrivals->schedulers, name) &&
        (!ns || count_brought(arrivals, ns) < ARRIVALS_SCHEDULERS_MAX / 2))
        g_hash_table_insert(arrivals->schedulers, g_strdup(name), g_strdup(ns));
}

void arrivals_note_kept(struct arrivals *arrivals)
{
    arrivals->n_changes++;
}

GHashTable *arrivals_schedulers(const struct arrivals *arrivals)
{
    return arrivals->schedulers;
}

void arrivals_copy_common(struct arrivals *arrivals, const struct arrivals *from)
{
    GHashTableIter iter;
    gpointer name, ns;

    g_hash_table_iter_init(&iter, from->schedulers);
    while (g_hash_table_iter_next(&iter, &name, &ns))
        arrivals_note_scheduler(arrivals, name, ns);
}

void arrivals_ask(struct arrivals *arrivals, const char *uid, int64_t now_ms)
{
    GSequenceIter *at = g_hash_table_lookup(arrivals->places, uid);

    if (!at)
        return;
    struct arrival *arrival = g_sequence_get(at);
    arrivals_note_scheduler(arrivals, arrival->scheduler, arrival->ns);
    arrival_change(arrival);
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
    copy->arrivals = arrivals;
    copy->uid = g_strdup(copy->uid);
    copy->ns = g_strdup(copy->ns);
    copy->title = g_strdup(copy->title);
    copy->created = g_strdup(copy->created);
    copy->scheduler = g_strdup(copy->scheduler);
    copy->controller = g_strdup(copy->controller);
    copy->facts = pod_facts_ref(copy->facts);
    copy->request = request;
    copy->place = copy->place ? reservation_ref(copy->place) : NULL;
    copy->seen = (struct arrival_stamp){0};
    arrivals->number = MAX(arrivals->number, copy->number + 1);
    g_hash_table_insert(arrivals->places, copy->uid,
                        g_sequence_insert_sorted(arrivals->in_order, copy, arrival_compare, NULL));
    roll_add(&arrivals->roll, &copy->entry);
    if (copy->place)
        arrival_enlist_place(copy);
}

void arrivals_forget(struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *place = g_hash_table_lookup(arrivals->places, uid);

    if (!place)
        return;
    struct arrival *arrival = g_sequence_get(place);
    roll_remove(&arrivals->roll, &arrival->entry);
    arrival_drop_place(arrival);
    g_hash_table_remove(arrivals->places, uid);
    g_sequence_remove(place);
}

const struct reservation *arrivals_place(const struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *at = g_hash_table_lookup(arrivals->places, uid);
    const struct arrival *arrival = at ? g_sequence_get(at) : NULL;

    return arrival && arrival->place && !reservation_is_open(arrival->place) ? arrival->place
                                                                             : NULL;
}

void arrivals_renew(struct arrivals *arrivals, const char *uid)
{
    GSequenceIter *place = g_hash_table_lookup(arrivals->places, uid);

    if (!place)
        return;
    arrival_change(g_sequence_get(place));
    ((struct arrival *)g_sequence_get(place))->until_ms = 0;
}

void arrivals_cursor_clear(struct arrivals_cursor *cursor)
{
    g_free(cursor->created);
    *cursor = (struct arrivals_cursor){0};
}

/* The first behind it, whether the one that it names is still there or not. */
static GSequenceIter *find_behind(const struct arrivals *arrivals,
                                  const struct arrivals_cursor *cursor)
{
    struct arrival named = {.created = cursor->created, .number = cursor->number};

    return cursor->begun ? g_sequence_search(arrivals->in_order, &named, arrival_compare, NULL)
                         : g_sequence_get_begin_iter(arrivals->in_order);
}

bool arrivals_walk(const struct arrivals *arrivals, struct arrivals_cursor *cursor,
                   arrivals_visit visit, void *data)
{
    GSequenceIter *at = find_behind(arrivals, cursor);
    const struct arrival *arrival = NULL;
    bool go_on = true;

    for (int i = 0; i < WALKED_AT_ONCE && go_on && !g_sequence_iter_is_end(at); i++) {
        arrival = g_sequence_get(at);
        at = g_sequence_iter_next(at);
        go_on = visit(
            &(struct arrivals_row){
                .uid = arrival->uid,
                .ns = arrival->ns,
                .title = arrival->title,
                .created = arrival->created,
                .priority = arrival->priority,
                .request = arrival->request,
                .place = arrival->place,
                .asked = arrival->asked,
                .asking_ms = arrival->asking_ms,
            },
            data);
    }
    arrivals_cursor_clear(cursor);
    if (!arrival || !go_on || g_sequence_iter_is_end(at))
        return false;
    *cursor = (struct arrivals_cursor){true, g_strdup(arrival->created), arrival->number};
    return true;
}

guint arrivals_n(const struct arrivals *arrivals)
{
    return arrivals->roll.entries->len;
}

/* --- for who goes on from it ------------------------------------------------------------------ */

static void forget_entries(struct arrivals *arrivals)
{
    GSequenceIter *at = g_sequence_get_begin_iter(arrivals->in_order);

    for (; !g_sequence_iter_is_end(at); at = g_sequence_iter_next(at)) {
        struct arrival *arrival = g_sequence_get(at);
        arrival_drop_place(arrival);
        arrival->asked = false;
        arrival->asking_ms = arrival->looked_ms = 0;
        arrival->until_ms = 0;
        arrival->hopeless_ms = 0;
        arrival->seen = (struct arrival_stamp){0};
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
        arrival_drop_place(arrival); /* named twice */
        arrival->asked = entry->asked;
        arrival->asking_ms = entry->asking_ms;
        arrival->looked_ms = entry->looked_ms;
        arrival->until_ms = entry->until_ms;
        arrival->hopeless_ms = entry->hopeless_ms;
        arrival->place = entry->place ? reservation_ref(entry->place) : NULL;
        if (arrival->place)
            g_ptr_array_add(arrivals->placed, arrival);
        if (entry->settled)
            arrival->seen = arrival_stamp_of(arrivals, ledger, nominations, arrival->place);
    }
    g_ptr_array_sort_with_data(arrivals->placed, compare_pointers, NULL);
}
