/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/keeping.h"

#include "base/worker.h"
#include "core/fail.h"
#include "kube/clock.h"
#include "wire/kubernetes.h"

#define CALL_MS 10000
#define TRIES_MAX 5
#define RENEWAL_FAILED "what is kept cannot be renewed"

struct keeping {
    struct keeping_options options;
    struct worker renewer; /* its lock is that of what follows, also while it is written */
    GHashTable *marks;     /* node -> struct plan_mark */
    int64_t renewed_ms;
    bool ended;
};

/* --- one node --------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    return g_get_real_time() * 1000;
}

/* What is to be written on a node. */
struct write {
    struct api_client *client;
    const char *node, *by;
    const struct plan_mark *mark; /* NULL: nothing of ours is to be there, or that is over */
    bool again;                   /* of a node that has gone nothing has to be kept any more */
};

static enum outcome read_node(const struct write *write, const char *path, struct json_arena *arena,
                              struct node_view *ret_node, GError **error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(write->client, &call, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);
    return object && node_view_decode(arena, object, ret_node, error) ? OUTCOME_OK
                                                                      : OUTCOME_REFUSED;
}

/* Another plan that goes on; NULL: the annotation that is there may be written over. */
static struct plan_mark *read_other(const struct write *write, const char *text)
{
    g_autoptr(plan_mark) there = text ? plan_mark_parse(text, NULL, NULL) : NULL;

    return there && plan_mark_lives(there, now_ns()) && g_strcmp0(there->by, write->by) != 0
               ? g_steal_pointer(&there)
               : NULL;
}

static bool refuse(const struct write *write, const struct plan_mark *other, GError **error)
{
    const int64_t left_s = (other->until_ns - now_ns()) / 1000000000 + 1;

    return fail_with(
        error, GPULEDGER_ERROR_CONFLICT,
        "another plan is at work on node '%s', or was until a moment ago (then try again "
        "in %" G_GINT64_FORMAT " s): %s",
        write->node, left_s, other->doing);
}

static enum outcome patch_node(const struct write *write, const char *path,
                               const struct node_view *node, GError **error)
{
    g_autofree char *text = write->mark ? plan_mark_format(write->mark) : NULL;
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    node_annotation_encode(&writer, &(struct node_annotation){.node = write->node,
                                                              .version = node->resource_version,
                                                              .key = PLAN_MARK,
                                                              .value = text});
    return api_client_call(
        write->client,
        &(struct api_call){
            .method = "PATCH", .path = path, .body = body, .deadline_ms = clock_ms() + CALL_MS},
        reply, error);
}

static enum outcome try_write(const struct write *write, const char *path, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct node_view node;
    const enum outcome outcome = read_node(write, path, arena, &node, error);

    if (outcome == OUTCOME_NOT_FOUND && (!write->mark || write->again)) {
        g_clear_error(error);
        return OUTCOME_OK;
    }
    if (outcome != OUTCOME_OK)
        return outcome;
    const char *there = string_pairs_get(&node.annotations, PLAN_MARK);
    g_autoptr(plan_mark) other = read_other(write, there);
    if (!write->mark && (!there || other))
        return OUTCOME_OK;
    if (other) {
        refuse(write, other, error);
        return OUTCOME_REFUSED;
    }
    return patch_node(write, path, &node, error);
}

/* Until nobody else has written between. */
static bool write_node(const struct write *write, GError **error)
{
    g_autofree char *escaped = transport_escape(write->node, "node", error);
    enum outcome outcome = OUTCOME_CONFLICT;

    if (!escaped)
        return false;
    g_autofree char *path = g_strconcat("/api/v1/nodes/", escaped, NULL);
    for (int i = 0; i < TRIES_MAX && outcome == OUTCOME_CONFLICT; i++) {
        g_clear_error(error);
        outcome = try_write(write, path, error);
    }
    return outcome == OUTCOME_OK;
}

bool keeping_clean(struct api_client *client, const char *node, GError **error)
{
    return write_node(&(struct write){.client = client, .node = node, .by = ""}, error);
}

/* --- all of them ------------------------------------------------------------------------------ */

static bool write_mark(const struct keeping *keeping, const char *node,
                       const struct plan_mark *mark, bool again, GError **error)
{
    return write_node(&(struct write){.client = keeping->options.client,
                                      .node = node,
                                      .by = keeping->options.by,
                                      .mark = mark,
                                      .again = again},
                      error);
}

static void complain_of(const struct keeping *keeping, const char *what, const GError *failure)
{
    g_autofree char *text = g_strdup_printf("%s: %s", what, failure->message);

    keeping->options.tell(keeping->options.data, text);
}

/* Under the lock. All of them, with a new time: one that cannot be written keeps no other from it. False, with the
 * first error. */
static bool write_all(struct keeping *keeping, bool again, GError **error)
{
    const int64_t begun_ms = clock_ms();
    GHashTableIter iter;
    gpointer node, mark;
    GError *first = NULL;

    g_hash_table_iter_init(&iter, keeping->marks);
    while (g_hash_table_iter_next(&iter, &node, &mark)) {
        ((struct plan_mark *)mark)->until_ns = now_ns() + KEEPING_LIFE_MS * INT64_C(1000000);
        write_mark(keeping, node, mark, again, first ? NULL : &first);
    }
    if (first) {
        g_propagate_error(error, first);
        return false;
    }
    keeping->renewed_ms = begun_ms;
    return true;
}

/* Under the lock. */
static void erase(struct keeping *keeping, const char *node)
{
    g_autoptr(GError) failure = NULL;

    if (!write_mark(keeping, node, NULL, true, &failure))
        complain_of(keeping, "what is kept ends by itself in two minutes", failure);
}

static void *renew(void *data)
{
    struct keeping *keeping = data;

    worker_lock(&keeping->renewer);
    while (worker_wait(&keeping->renewer, clock_ms() + KEEPING_RENEW_MS)) {
        g_autoptr(GError) failure = NULL;
        if (!keeping->ended && !write_all(keeping, true, &failure))
            complain_of(keeping, RENEWAL_FAILED, failure);
    }
    worker_unlock(&keeping->renewer);
    return NULL;
}

static void free_mark(gpointer mark)
{
    plan_mark_free(mark);
}

struct keeping *keeping_new(const struct keeping_options *options)
{
    struct keeping *keeping = g_new0(struct keeping, 1);
    g_autoptr(GError) failure = NULL;

    keeping->options = *options;
    keeping->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_mark);
    keeping->renewed_ms = clock_ms();
    worker_init(&keeping->renewer);
    if (!worker_start(&keeping->renewer, renew, keeping, &failure))
        complain_of(keeping, RENEWAL_FAILED, failure); /* keeping_check() finds it later */
    return keeping;
}

void keeping_adopt(struct keeping *keeping, const char *node, struct plan_mark *take_mark)
{
    worker_lock(&keeping->renewer);
    g_hash_table_replace(keeping->marks, g_strdup(node), take_mark);
    worker_unlock(&keeping->renewer);
}

void keeping_abandon(struct keeping *keeping)
{
    worker_lock(&keeping->renewer);
    keeping->ended = true;
    worker_unlock(&keeping->renewer);
}

void keeping_end(struct keeping *keeping)
{
    GHashTableIter iter;
    gpointer node;

    worker_lock(&keeping->renewer);
    g_hash_table_iter_init(&iter, keeping->marks);
    while (!keeping->ended && g_hash_table_iter_next(&iter, &node, NULL))
        erase(keeping, node);
    keeping->ended = true;
    worker_unlock(&keeping->renewer);
}

void keeping_free(struct keeping *keeping)
{
    keeping_end(keeping);
    worker_release(&keeping->renewer);
    g_hash_table_unref(keeping->marks);
    g_free(keeping);
}

static GHashTable *marks_of(const struct keeping *keeping, const char *doing,
                            const struct keeping_place *places, guint n)
{
    GHashTable *marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_mark);

    for (guint i = 0; i < n; i++) {
        struct plan_mark *mark = g_hash_table_lookup(marks, places[i].node);
        if (!mark) {
            mark = plan_mark_new();
            mark->doing = g_strdup(doing);
            mark->by = g_strdup(keeping->options.by);
            g_hash_table_insert(marks, g_strdup(places[i].node), mark);
        }
        if (places[i].room) {
            struct kept_room *room = kept_room_dup(places[i].room);
            room->since_s = now_ns() / 1000000000;
            g_ptr_array_add(mark->rooms, room);
        }
    }
    return marks;
}

bool keeping_set(struct keeping *keeping, const char *doing, const struct keeping_place *places,
                 guint n, GError **error)
{
    GHashTableIter iter;
    gpointer node;
    bool ok = true;

    worker_lock(&keeping->renewer);
    if (!keeping->ended) {
        g_autoptr(GHashTable) before = keeping->marks;
        keeping->marks = marks_of(keeping, doing, places, n);
        g_hash_table_iter_init(&iter, before);
        while (g_hash_table_iter_next(&iter, &node, NULL)) {
            if (!g_hash_table_contains(keeping->marks, node))
                erase(keeping, node);
        }
        ok = write_all(keeping, false, error);
    }
    worker_unlock(&keeping->renewer);
    return ok;
}

/* Whether any is left. */
static bool drop_singles(struct plan_mark *mark)
{
    for (guint i = mark->rooms->len; i-- > 0;) {
        if (!((const struct kept_room *)mark->rooms->pdata[i])->group)
            g_ptr_array_remove_index(mark->rooms, i);
    }
    return mark->rooms->len > 0;
}

bool keeping_narrow(struct keeping *keeping, GError **error)
{
    GHashTableIter iter;
    gpointer node, mark;
    bool ok = true;

    worker_lock(&keeping->renewer);
    g_hash_table_iter_init(&iter, keeping->marks);
    while (!keeping->ended && g_hash_table_iter_next(&iter, &node, &mark)) {
        if (drop_singles(mark))
            continue;
        erase(keeping, node);
        g_hash_table_iter_remove(&iter);
    }
    if (!keeping->ended)
        ok = write_all(keeping, true, error);
    worker_unlock(&keeping->renewer);
    return ok;
}

bool keeping_check(struct keeping *keeping, GError **error)
{
    worker_lock(&keeping->renewer);
    const bool lost = clock_ms() - keeping->renewed_ms >= KEEPING_LIFE_MS;
    worker_unlock(&keeping->renewer);
    return !lost || fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                              "what was kept could not be renewed in time, so others may have it");
}
