/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/nominations_state.h"

#include "core/ledger.h"
#include "queue/pod_rules.h"

#include <string.h>

static void nomination_free(gpointer data)
{
    struct nomination *nomination = data;

    kept_room_free(nomination->room);
    g_free(nomination->uid);
    g_free(nomination->node);
    g_free(nomination->created);
    g_free(nomination->scheduler);
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
    nominations->earliest_ns = INT64_MAX;
    nominations->pods = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, nomination_free);
    nominations->rooms = g_ptr_array_new_with_free_func(nomination_free);
    nominations->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_list);
    nominations->claims = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_list);
    nominations->claimed = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    return nominations;
}

void nominations_free(struct nominations *nominations)
{
    g_hash_table_unref(nominations->nodes);
    g_hash_table_unref(nominations->pods);
    g_ptr_array_unref(nominations->rooms);
    g_hash_table_unref(nominations->claimed);
    g_hash_table_unref(nominations->claims);
    g_free(nominations);
}

/* By what the API server says alone, in whatever order it came: the answers of every replica, and of a record
 * that begins anew, are the same. Rooms are of certain cards, so that others find what is left. */
static gint compare(gconstpointer a, gconstpointer b)
{
    const struct nomination *left = *(const struct nomination *const *)a;
    const struct nomination *right = *(const struct nomination *const *)b;

    if (left->priority != right->priority)
        return left->priority > right->priority ? -1 : 1;
    if (!left->room != !right->room)
        return left->room ? -1 : 1;
    const int age = g_strcmp0(left->created, right->created);
    return age != 0 ? age : strcmp(left->uid, right->uid);
}

static void enlist(struct nominations *nominations, struct nomination *take_nomination)
{
    GPtrArray *list = g_hash_table_lookup(nominations->nodes, take_nomination->node);

    if (!list) {
        list = g_ptr_array_new();
        g_hash_table_insert(nominations->nodes, g_strdup(take_nomination->node), list);
    }
    g_ptr_array_add(list, take_nomination);
    g_ptr_array_sort(list, compare);
    nominations->n_kept++;
}

uint64_t nominations_kept(const struct nominations *nominations)
{
    return nominations->n_kept;
}

static void add(struct nominations *nominations, struct nomination *take_nomination)
{
    enlist(nominations, take_nomination);
    g_hash_table_insert(nominations->pods, take_nomination->uid, take_nomination);
}

static void unlist(struct nominations *nominations, struct nomination *nomination)
{
    GPtrArray *list = g_hash_table_lookup(nominations->nodes, nomination->node);

    ledger_mark_freed(nominations->ledger, nomination->node);
    g_ptr_array_remove(list, nomination);
    if (list->len == 0)
        g_hash_table_remove(nominations->nodes, nomination->node);
}

void nominations_forget(struct nominations *nominations, const char *uid)
{
    struct nomination *nomination = g_hash_table_lookup(nominations->pods, uid);

    if (!nomination)
        return;
    unlist(nominations, nomination);
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
    const struct claimed *claimed = g_hash_table_lookup(nominations->claimed, pod->uid);
    const struct room_claim *claim = claimed ? claimed->claim : NULL;
    const char *node = claimed ? claimed->node : pod->nominated_node;

    node = node && !pod->terminating ? node : "";
    if (known && g_str_equal(known->node, node) && known->claim == claim) {
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
        .created = g_strdup(pod->created),
        .scheduler = g_strdup(scheduler_of_pod(pod)),
        .comes_until_ns = claim ? 0 : COMES_UNKNOWN,
        .request = request,
        .claim = claim,
    };
    nominations->any_unsettled |= !claim;
    add(nominations, nomination);
}

bool nominations_have(const struct nominations *nominations, const char *uid)
{
    return g_hash_table_contains(nominations->pods, uid);
}

bool nominations_keep_for(const struct nominations *nominations, const char *node, const char *uid)
{
    const GPtrArray *list = g_hash_table_lookup(nominations->nodes, node);

    for (guint i = 0; list && i < list->len; i++) {
        const struct nomination *one = list->pdata[i];
        if (one->room && g_strcmp0(one->room->uid, uid) == 0)
            return true;
    }
    return false;
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
    copy->created = g_strdup(known->created);
    copy->scheduler = g_strdup(known->scheduler);
    copy->request = request;
    copy->claim = nominations_claim(nominations, uid, NULL);
    nominations->any_unsettled |= copy->comes_until_ns < 0;
    nominations_expect(nominations, copy->comes_until_ns);
    add(nominations, copy);
}

/* --- rooms of plans ------------------------------------------------------------------------- */

static void drop_room(struct nominations *nominations, struct nomination *nomination)
{
    unlist(nominations, nomination);
    g_ptr_array_remove(nominations->rooms, nomination);
}

static void add_room(struct nominations *nominations, const char *node, struct kept_room *take_room)
{
    struct nomination *nomination = g_new(struct nomination, 1);

    *nomination = (struct nomination){
        .uid = g_strdup(take_room->held->uid),
        .node = g_strdup(node),
        .priority = take_room->held->priority,
        .room = take_room,
    };
    enlist(nominations, nomination);
    g_ptr_array_add(nominations->rooms, nomination);
}

/* But for how long. */
static bool is_same(const struct kept_room *room, const struct kept_room *other)
{
    const struct allocation *held = room->held, *its = other->held;
    bool same = g_str_equal(held->uid, its->uid) && held->n_shares == its->n_shares &&
                held->priority == its->priority && held->work_class == its->work_class &&
                g_strcmp0(room->asks, other->asks) == 0 && g_strcmp0(room->uid, other->uid) == 0 &&
                g_strcmp0(room->ns, other->ns) == 0 &&
                g_strcmp0(room->controller, other->controller) == 0 &&
                g_strcmp0(room->group, other->group) == 0;

    for (uint32_t i = 0; same && i < held->n_shares; i++)
        same = held->shares[i].card == its->shares[i].card &&
               held->shares[i].memory.value == its->shares[i].memory.value &&
               held->shares[i].core == its->shares[i].core;
    return same;
}

/* A room that was there keeps who has taken it: the store has seen that, not the plan. */
static void renew(struct nominations *nominations, const char *node, GPtrArray *rooms)
{
    for (guint i = nominations->rooms->len; i-- > 0;) {
        struct nomination *old = nominations->rooms->pdata[i];
        bool kept = false;

        if (!g_str_equal(old->node, node))
            continue;
        for (guint j = 0; j < rooms->len && !kept; j++) {
            const struct kept_room *room = rooms->pdata[j];
            if (!is_same(old->room, room))
                continue;
            old->room->until_ns = room->until_ns;
            g_ptr_array_remove_index(rooms, j);
            kept = true;
        }
        if (!kept)
            drop_room(nominations, old);
    }
}

void nominations_keep(struct nominations *nominations, const char *node, const GPtrArray *rooms)
{
    g_autoptr(GPtrArray) fresh = g_ptr_array_new();

    for (guint i = 0; i < rooms->len; i++)
        g_ptr_array_add(fresh, rooms->pdata[i]);
    renew(nominations, node, fresh);
    for (guint i = 0; i < fresh->len; i++)
        add_room(nominations, node, kept_room_dup(fresh->pdata[i]));
}

bool nominations_end(struct nominations *nominations, int64_t now_ns)
{
    bool any = nominations_end_coming(nominations, now_ns);

    for (guint i = nominations->rooms->len; i-- > 0;) {
        struct nomination *one = nominations->rooms->pdata[i];
        if (one->room->until_ns > now_ns)
            continue;
        drop_room(nominations, one);
        any = true;
    }
    return any;
}

void nominations_copy_rooms(struct nominations *nominations, const struct nominations *from)
{
    for (guint i = 0; i < from->rooms->len; i++) {
        const struct nomination *one = from->rooms->pdata[i];
        add_room(nominations, one->node, kept_room_dup(one->room));
    }
}

void nominations_each_group(const struct nominations *nominations,
                            void (*visit)(const char *ns, const char *group, void *data),
                            void *data)
{
    for (guint i = 0; i < nominations->rooms->len; i++) {
        const struct kept_room *room =
            ((const struct nomination *)nominations->rooms->pdata[i])->room;
        if (room->group)
            visit(room->ns, room->group, data);
    }
}

/* As the node side of what is kept reads it. */
static bool asks_for(const struct request *request, const struct kept_room *room)
{
    while (request && request->dialect != room->held->dialect)
        request = request->alternative;
    g_autofree char *asks = request ? kept_room_asks(request) : NULL;
    return asks && g_strcmp0(asks, room->asks) == 0;
}

bool nomination_is_for(const struct kept_room *room, const struct kept_room_taker *pod)
{
    return !room->uid && pod->controller && g_strcmp0(room->controller, pod->controller) == 0 &&
           g_strcmp0(room->ns, pod->ns) == 0 && asks_for(pod->request, room);
}

bool nominations_await(const struct nominations *nominations, const char *node,
                       const char *controller)
{
    for (guint i = 0; controller && i < nominations->rooms->len; i++) {
        const struct nomination *one = nominations->rooms->pdata[i];
        if (g_str_equal(one->node, node) && g_strcmp0(one->room->controller, controller) == 0)
            return true;
    }
    return false;
}

void nominations_take(struct nominations *nominations, const struct kept_room_taker *taker)
{
    for (guint i = 0; taker->controller && i < nominations->rooms->len; i++) {
        struct nomination *one = nominations->rooms->pdata[i];
        if (g_strcmp0(one->room->taken, taker->uid) == 0)
            return;
        if (!g_str_equal(one->node, taker->node) || !nomination_is_for(one->room, taker) ||
            (taker->created_s != 0 && taker->created_s < one->room->since_s) ||
            (one->room->taken && ledger_get(nominations->ledger, one->room->taken)))
            continue;
        g_free(one->room->taken);
        one->room->taken = g_strdup(taker->uid);
        return;
    }
}

/* --- claims --------------------------------------------------------------------------------- */

/* Of several the latest; of one time, that of the node whose name is the first. */
static bool is_before(const struct claimed *claimed, const char *node,
                      const struct room_claim *claim)
{
    if (!claimed)
        return false;
    return claimed->claim->since_s != claim->since_s ? claimed->claim->since_s > claim->since_s
                                                     : strcmp(claimed->node, node) < 0;
}

static void choose_one(const char *node, const struct room_claim *claim, void *data)
{
    struct nominations *nominations = data;
    struct claimed *claimed = g_hash_table_lookup(nominations->claimed, claim->uid);

    if (is_before(claimed, node, claim))
        return;
    claimed = g_new(struct claimed, 1);
    *claimed = (struct claimed){node, claim};
    g_hash_table_replace(nominations->claimed, claim->uid, claimed);
}

struct choosing {
    struct nominations *nominations;
    const GPtrArray *claims; /* of whose pods one is chosen anew */
};

static void choose_again(const char *node, const struct room_claim *claim, void *data)
{
    const struct choosing *choosing = data;

    for (guint i = 0; i < choosing->claims->len; i++) {
        if (g_str_equal(((const struct room_claim *)choosing->claims->pdata[i])->uid, claim->uid)) {
            choose_one(node, claim, choosing->nominations);
            return;
        }
    }
}

/* They count no more, and what is kept for their pods is to be noted again. */
static void unclaim(struct nominations *nominations, const GPtrArray *claims)
{
    for (guint i = 0; i < claims->len; i++) {
        const struct room_claim *claim = claims->pdata[i];
        nominations_forget(nominations, claim->uid);
        g_hash_table_remove(nominations->claimed, claim->uid);
    }
}

void nominations_set_claims(struct nominations *nominations, const char *node,
                            GPtrArray *take_claims)
{
    gpointer key = NULL, value = NULL;

    g_hash_table_steal_extended(nominations->claims, node, &key, &value);
    g_autoptr(GPtrArray) old = value;
    g_free(key);
    if (old)
        unclaim(nominations, old);
    if (take_claims && take_claims->len > 0) {
        unclaim(nominations, take_claims);
        g_hash_table_insert(nominations->claims, g_strdup(node), take_claims);
        nominations_each_claim(nominations, choose_again,
                               &(struct choosing){nominations, take_claims});
    } else {
        g_clear_pointer(&take_claims, g_ptr_array_unref);
    }
    if (old)
        nominations_each_claim(nominations, choose_again, &(struct choosing){nominations, old});
}

static GPtrArray *copy_claims(const GPtrArray *claims)
{
    GPtrArray *copy = g_ptr_array_new_with_free_func((GDestroyNotify)claim_free);

    for (guint i = 0; i < claims->len; i++)
        g_ptr_array_add(copy, claim_dup(claims->pdata[i]));
    return copy;
}

void nominations_copy_claims(struct nominations *nominations, const struct nominations *from)
{
    GHashTableIter iter;
    gpointer node, claims;

    g_hash_table_iter_init(&iter, from->claims);
    while (g_hash_table_iter_next(&iter, &node, &claims))
        nominations_set_claims(nominations, node, copy_claims(claims));
}

const GPtrArray *nominations_claims(const struct nominations *nominations, const char *node)
{
    return g_hash_table_lookup(nominations->claims, node);
}

const struct room_claim *nominations_claim(const struct nominations *nominations, const char *uid,
                                           const char **ret_node)
{
    const struct claimed *claimed = g_hash_table_lookup(nominations->claimed, uid);

    if (claimed && ret_node)
        *ret_node = claimed->node;
    return claimed ? claimed->claim : NULL;
}

void nominations_each_claim(const struct nominations *nominations,
                            void (*visit)(const char *node, const struct room_claim *claim,
                                          void *data),
                            void *data)
{
    GHashTableIter iter;
    gpointer node, claims;

    g_hash_table_iter_init(&iter, nominations->claims);
    while (g_hash_table_iter_next(&iter, &node, &claims)) {
        for (guint i = 0; i < ((const GPtrArray *)claims)->len; i++)
            visit(node, ((const GPtrArray *)claims)->pdata[i], data);
    }
}

bool nominations_concern(const struct nominations *nominations, const struct node *node)
{
    return g_hash_table_size(nominations->nodes) > 0 &&
           g_hash_table_contains(nominations->nodes, node->name);
}

void nominations_flag(const struct nominations *nominations, struct ledger *ledger)
{
    GHashTableIter iter;
    gpointer name;

    g_hash_table_iter_init(&iter, nominations->nodes);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        ledger_flag(ledger, name);
}
