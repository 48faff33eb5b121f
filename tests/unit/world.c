/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include "base/log.h"
#include "inspect/views.h"

#include <check.h>
#include <string.h>

#define BIND_TIMEOUT_MS 3000

static struct store *new_store(void)
{
    const struct store_options options = {.policy = &policies[0], .patience_ms = 60000};
    return store_new(&options);
}

void world_init(struct world *world)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    world->store = new_store();
    world->cluster = fake_cluster_new();
    world->extender = (struct extender){
        .store = world->store,
        .cluster = fake_cluster_base(world->cluster),
        .bind_timeout_ms = BIND_TIMEOUT_MS,
        .denials = denials_new("", false),
    };
}

void world_release(struct world *world)
{
    store_free(world->store);
    fake_cluster_free(world->cluster);
    denials_free(world->extender.denials);
}

static void list_all(struct fake_cluster *cluster, struct store *store)
{
    for (int feed = 0; feed < FEED_N; feed++)
        fake_cluster_list(cluster, store, feed);
}

void world_sync(struct world *world)
{
    list_all(world->cluster, world->store);
}

void world_catch_up(struct world *world)
{
    fake_cluster_deliver_all(world->cluster, world->store);
}

void world_populate(struct world *world)
{
    fake_cluster_put_node(world->cluster, "duo", 20, 2);
    fake_cluster_put_node(world->cluster, "mono", 10, 1);
    fake_cluster_put_node(world->cluster, "plain", 0, 0);
    world_sync(world);
}

void world_add_bound(struct world *world, const char *pod, const char *node, int64_t mem,
                     const char *card)
{
    fake_cluster_add_pod(
        world->cluster,
        &(struct fake_pod){
            .name = pod, .node = node, .mem = mem, .card = card, .phase = "Running"});
    world_catch_up(world);
}

void world_add_pending(struct world *world, const char *pod, int64_t mem)
{
    fake_cluster_add_pod(world->cluster, &(struct fake_pod){.name = pod, .mem = mem});
    world_catch_up(world);
}

/* --- verbs ---------------------------------------------------------------------------------- */

char *world_filter_body(struct world *world, const char *pod, const char *nodes)
{
    g_autofree char *object = fake_cluster_pod_json(world->cluster, pod);
    g_auto(GStrv) names = g_strsplit(nodes, ",", -1);
    g_autofree char *list = g_strjoinv("\",\"", names);

    ck_assert_ptr_nonnull(object);
    return g_strdup_printf("{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[\"%s\"]}", object, list);
}

char *world_filter(struct world *world, const char *pod, const char *nodes)
{
    g_autofree char *body = world_filter_body(world, pod, nodes);
    GString *reply = g_string_new(NULL);

    extender_filter(&world->extender, body, strlen(body), reply);
    return g_string_free(reply, FALSE);
}

char *world_prioritize(struct world *world, enum prioritize_pods pods, const char *pod,
                       const char *nodes)
{
    g_autofree char *body = world_filter_body(world, pod, nodes);
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GHashTable) marks = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GError) error = NULL;
    const cJSON *item;

    if (!extender_prioritize(&world->extender, pods, body, strlen(body), reply, &error))
        return g_strdup(error->message);
    const cJSON *json = json_parse(arena, reply->str, reply->len, NULL);
    ck_assert_msg(cJSON_IsArray(json), "%s", reply->str);
    cJSON_ArrayForEach (item, json) {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(item, "Host");
        const cJSON *score = cJSON_GetObjectItemCaseSensitive(item, "Score");
        ck_assert_msg(cJSON_IsString(host) && cJSON_IsNumber(score) && score->valueint > 0, "%s",
                      reply->str);
        g_hash_table_insert(marks, host->valuestring, GINT_TO_POINTER(score->valueint));
    }
    g_auto(GStrv) names = g_strsplit(nodes, ",", -1);
    for (char **name = names; *name; name++)
        g_string_append_printf(text, "%s%s=%d", text->len ? " " : "", *name,
                               GPOINTER_TO_INT(g_hash_table_lookup(marks, *name)));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *world_bind_body(const char *pod, const char *uid, const char *node)
{
    return g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"ml\",\"PodUID\":\"%s\","
                           "\"Node\":\"%s\"}",
                           pod, uid, node);
}

char *world_bind_uid(struct world *world, const char *pod, const char *uid, const char *node)
{
    g_autofree char *body = world_bind_body(pod, uid, node);
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();

    extender_bind(&world->extender, body, strlen(body), reply);
    const cJSON *json = json_parse(arena, reply->str, reply->len, NULL);
    ck_assert_msg(cJSON_GetArraySize(json) == 1, "%s", reply->str);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "Error"));
    ck_assert_msg(text != NULL, "%s", reply->str);
    return g_strdup(text);
}

char *world_bind(struct world *world, const char *pod, const char *node)
{
    g_autofree char *uid = g_strdup_printf("uid-%s", pod);
    return world_bind_uid(world, pod, uid, node);
}

void world_expect_bind(struct world *world, const char *pod, const char *node, const char *error)
{
    const int64_t timeout_ms = world->extender.bind_timeout_ms;
    const bool longer = !*error && timeout_ms < BIND_TIMEOUT_MS;

    if (longer)
        world->extender.bind_timeout_ms = BIND_TIMEOUT_MS;
    g_autofree char *text = world_bind(world, pod, node);
    if (longer)
        world->extender.bind_timeout_ms = timeout_ms;
    ck_assert_msg(g_str_equal(text, error), "bind %s to %s: '%s', not '%s'", pod, node, text,
                  error);
}

/* --- the ledger ----------------------------------------------------------------------------- */

/* The demand is what has been seen, so that two stores with equal ledgers may expect different
 * pods. */
static char *describe(struct store *store)
{
    g_autoptr(GString) text = g_string_new(NULL);

    ck_assert(view_nodes(store, NULL, text));
    g_autoptr(GRegex) states =
        g_regex_new("\"state\":\"(reserved|unknown|bound|confirmed)\"", 0, 0, NULL);
    g_autoptr(GRegex) guesses = g_regex_new("\"fragmentedGpuThousandths\":[0-9]+,", 0, 0, NULL);
    g_autofree char *known =
        g_regex_replace_literal(guesses, text->str, (gssize)text->len, 0, "", 0, NULL);
    return g_regex_replace_literal(states, known, -1, 0, "\"state\":\"held\"", 0, NULL);
}

char *world_nodes(struct world *world)
{
    return describe(world->store);
}

static void collect_uid(struct allocation *allocation, void *data)
{
    g_ptr_array_add(data, g_strdup(allocation->uid));
}

char *world_copied(struct world *world)
{
    g_autoptr(store) copy = store_copy(world->store);
    g_autoptr(GPtrArray) uids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    char *text = describe(copy);
    struct ledger *ledger = store_lock(copy);

    ck_assert_msg(ledger_verify(ledger, &error), "%s", error ? error->message : "");
    ledger_each(ledger, collect_uid, uids);
    for (guint i = 0; i < uids->len; i++)
        ck_assert(ledger_drop(ledger, uids->pdata[i]));
    ck_assert_uint_eq(ledger_size(ledger), 0);
    store_unlock(copy);
    return text;
}

char *world_replay(struct world *world)
{
    g_autoptr(store) fresh = new_store();

    list_all(world->cluster, fresh);
    return describe(fresh);
}

int64_t world_used(struct world *world, const char *node, int32_t card)
{
    struct ledger *ledger = store_lock(world->store);
    const struct node *found = ledger_node(ledger, node);
    const struct card *on = found ? node_card(found, card) : NULL;
    int64_t used = on ? on->memory_used / found->memory_unit : -1;
    store_unlock(world->store);
    return used;
}

int64_t world_unplaced(struct world *world, const char *node)
{
    struct ledger *ledger = store_lock(world->store);
    const struct node *found = ledger_node(ledger, node);
    int64_t unplaced = found ? found->unplaced_memory / found->memory_unit : 0;
    store_unlock(world->store);
    return unplaced;
}

int world_state(struct world *world, const char *uid)
{
    const struct allocation *held = ledger_get(store_lock(world->store), uid);
    int state = held ? (int)held->state : -1;
    store_unlock(world->store);
    return state;
}

int world_card(struct world *world, const char *uid)
{
    const struct allocation *held = ledger_get(store_lock(world->store), uid);
    int card = held ? held->shares[0].card : -2;
    store_unlock(world->store);
    return card;
}

void world_age(struct world *world, const char *uid, int64_t ms)
{
    struct allocation *held = ledger_get(store_lock(world->store), uid);
    if (held)
        held->since_ms -= ms;
    store_unlock(world->store);
}

static void age(struct allocation *allocation, void *data)
{
    allocation->since_ms -= 200000;
}

void world_settle_down(struct world *world)
{
    fake_cluster_set_chaos(world->cluster, 1, 0);
    fake_cluster_carry_out(world->cluster);
    world_catch_up(world);
    ledger_each(store_lock(world->store), age, NULL);
    store_unlock(world->store);
    extender_reconcile(&world->extender, 0);
    ck_assert_uint_eq(extender_reconcile(&world->extender, 0), 0);
    world_catch_up(world);
}

void world_verify(struct world *world)
{
    g_autoptr(GError) error = NULL;
    bool sound = ledger_verify(store_lock(world->store), &error);
    store_unlock(world->store);
    ck_assert_msg(sound, "%s", error ? error->message : "");
}
