/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a record is told of the queue where a file ends is of one moment, however much happens while it is
 * taken: pods that wait, come, ask, change, go, vanish and are rejected between any two portions. The
 * oracle is the same account taken at once, before anything else happens.
 */
#include "chance.h"
#include "../unit/objects.h"
#include "../unit/literals.h"

#include "base/log.h"
#include "record/record.h"
#include "store/images/queue_image.h"
#include "verbs/extender.h"
#include "gate/node_backoff/node_backoff.h"
#include "wire/rejection.h"

#include <stdlib.h>
#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define GROUP "gang.scheduling.koordinator.sh/"
#define NODES 8
#define PODS 900   /* UIDs */
#define AT_MOST 60 /* events between two portions */

static struct extender extender;
static struct moment now;
static uint64_t number;
static GPtrArray *told; /* struct record *; NULL: nobody listens */
static unsigned n_images, n_portions, n_pods_told;

static uint64_t give_number(struct observer *observer)
{
    return told ? ++number : 0;
}

static void keep(struct observer *observer, const struct observation *observation)
{
    struct record *record = record_new(observation);

    if (record && told)
        g_ptr_array_add(told, record);
}

static struct observer observer = {give_number, keep};

/* --- events ------------------------------------------------------------------------------------ */

static const char *const group_of[] = {NULL, NULL, NULL, "a", "b", "c", "d"};

/* All that a UID stands for follows from it, but for where it is and what it asks for. */
static void apply(unsigned i, const char *node, bool matched)
{
    g_autofree char *uid = g_strdup_printf("u%u", i);
    g_autofree char *created = g_strdup_printf("2026-01-01T00:%02u:%02uZ", i * 7 % 60, i % 60);
    g_autofree char *amount = g_strdup_printf("%u", 1 + chance_below(12));
    g_autofree char *card = g_strdup_printf("%u", chance_below(2));
    const char *group = group_of[i % G_N_ELEMENTS(group_of)];
    const struct string_pair limits[] = {{MEM, amount}};
    const struct string_pair pairs[] = {
        {GROUP "name", group},
        {GROUP "min-available", "3"},
        {"ALIYUN_COM_GPU_MEM_IDX", card},
        {"ALIYUN_COM_GPU_MEM_POD", amount},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", matched ? "true" : "false"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1700000000000000000"},
    };
    static const struct constraints picky = {.overlooked = 1U << OVERLOOKED_VOLUMES};
    const size_t from = group ? 0 : 2, to = node ? G_N_ELEMENTS(pairs) : 2;
    const struct container_view container = {.name = "c", .limits = {limits, 1}};
    const struct pod_view view = {.ns = i % 3 ? "ml" : "web",
                                  .name = uid,
                                  .uid = uid,
                                  .created = created,
                                  .priority = i % 11 == 0,
                                  .phase = matched ? "Running" : "Pending",
                                  .node_name = node,
                                  .started = node && chance_percent(30),
                                  .constraints = chance_percent(20) ? &picky : NULL,
                                  .annotations = {pairs + from, to - from},
                                  .containers = &container,
                                  .n_containers = 1};

    store_apply_pod(extender.store, &view);
}

static char *any_node(void)
{
    return g_strdup_printf("n%u", chance_below(NODES));
}

static void come(void *world)
{
    apply(chance_below(PODS), NULL, false);
}

static void run(void *world)
{
    g_autofree char *node = any_node();

    apply(chance_below(PODS), node, chance_percent(50));
}

static void end(void *world)
{
    g_autofree char *uid = g_strdup_printf("u%u", chance_below(PODS));

    (chance_percent(50) ? store_delete_pod : store_vanish_pod)(extender.store, uid);
}

/* As binds of a group's pods do: they come, leave again, or go on, and are seen bound. */
static void bind(void *world)
{
    const unsigned i = chance_below(PODS);
    g_autofree char *uid = g_strdup_printf("u%u", i), *node = NULL;
    const struct ledger *ledger = store_lock(extender.store);
    struct gangs *gangs = store_gangs(extender.store);
    const struct allocation *held = ledger_get(ledger, uid);

    if (chance_percent(20)) {
        gangs_depart(gangs, uid);
    } else if (chance_percent(10)) {
        gangs_lose(gangs, uid);
    } else if (gangs_arrive(gangs, uid, now.now_ms, NULL) == GANG_YES && chance_percent(60) &&
               held && held->state == ALLOCATION_HELD) {
        node = g_strdup(held->node->name);
        gangs_book(gangs, uid);
        gangs_settle(gangs, uid, true);
    }
    store_unlock(extender.store);
    if (node)
        apply(i, node, true);
}

static void declare(void *world)
{
    const char *group = group_of[3 + chance_below(4)];
    const struct pod_group_view view = {.ns = "web",
                                        .name = group,
                                        .min = 2 + chance_below(3),
                                        .timeout_ms = 5000,
                                        .failure = chance_percent(20) ? "it has failed" : NULL};

    (chance_percent(60) ? store_put_group : store_drop_group)(extender.store, &view);
}

static void reject(void *world)
{
    g_autofree char *uid = g_strdup_printf("u%u", chance_below(PODS));
    const struct rejection rejection = {.kind = chance_below(REJECTION_N),
                                        .refused = chance_percent(80)};

    store_reject_pod(extender.store, uid, &rejection);
}

static void resume(void *world)
{
    g_autofree char *node = any_node();

    store_order(extender.store, "resume", node);
}

static void put_node(unsigned i)
{
    g_autofree char *name = g_strdup_printf("n%u", i);
    const struct node_view view = {.name = name, .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})};

    store_apply_node(extender.store, &view);
}

static void change_node(void *world)
{
    g_autofree char *name = any_node();

    if (chance_percent(30))
        store_delete_node(extender.store, name);
    else
        put_node(chance_below(NODES));
}

static void ask(void *world)
{
    const unsigned i = chance_below(PODS);
    const char *group = group_of[i % G_N_ELEMENTS(group_of)];
    g_autofree char *annotations =
        group ? g_strdup_printf("\"" GROUP "name\":\"%s\",\"" GROUP "min-available\":\"3\"", group)
              : g_strdup("");
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"u%u\",\"namespace\":\"%s\",\"uid\":\"u%u\","
        "\"annotations\":{%s}},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
        "{\"" MEM "\":\"%u\"}}}]}},\"NodeNames\":[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\","
        "\"n7\"]}",
        i, i % 3 ? "ml" : "web", i, annotations, 1 + chance_below(12));
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
}

static void pass_time(void *world)
{
    now.now_ms += chance_between(1, chance_percent(5) ? 400000 : 2000);
    store_end_waits(extender.store);
}

static const struct chance_action actions[] = {
    {"come", 60, come},
    {"run", 14, run},
    {"end", 14, end},
    {"ask", 24, ask},
    {"pass time", 8, pass_time},
    {"reject", 4, reject},
    {"resume", 1, resume},
    {"node", 2, change_node},
    {"bind", 30, bind},
    {"declare", 1, declare},
    {NULL, 0, NULL},
};

/* --- accounts ---------------------------------------------------------------------------------- */

static gint compare_numbers(gconstpointer a, gconstpointer b)
{
    const struct record *left = *(struct record *const *)a, *right = *(struct record *const *)b;

    return (left->number > right->number) - (left->number < right->number);
}

/* What was told of the queue, without the numbers. */
static char *tell_all(GPtrArray *take_told)
{
    GString *text = g_string_new(NULL);

    g_ptr_array_sort(take_told, compare_numbers);
    for (guint i = 0; i < take_told->len; i++) {
        const struct record *record = take_told->pdata[i];
        g_string_append_printf(text, "%s %s\n", record_kind_name(record->kind, record->feed),
                               record->text->str + record->object_at);
    }
    g_ptr_array_unref(take_told);
    return g_string_free(text, FALSE);
}

static void free_record(gpointer record)
{
    record_free(record);
}

static GPtrArray *listen_on(void)
{
    told = g_ptr_array_new_with_free_func(free_record);
    return told;
}

static void take_in_portions(void)
{
    g_autofree char *expected = NULL, *got = NULL;
    GPtrArray *before = listen_on();

    HOLDS(store_tell_known(extender.store) > 0, "nothing is told");
    expected = tell_all(before);
    GPtrArray *image_told = listen_on();
    struct queue_image *image = queue_image_begin(extender.store);
    do {
        told = NULL; /* what happens now is not what is compared */
        for (uint32_t i = chance_below(AT_MOST); i > 0 && chance_next_event(); i--)
            chance_act(actions, NULL);
        told = image_told;
        n_portions++;
    } while (queue_image_take(image));
    HOLDS(queue_image_tell(image) > 0, "not all is told");
    told = NULL;
    got = tell_all(image_told);
    for (const char *at = expected; (at = strstr(at, "\"uid\"")); at++)
        n_pods_told++;
    HOLDS(g_str_equal(expected, got), "taken at once:\n%s\nin portions:\n%s", expected, got);
    n_images++;
}

static void live(void)
{
    struct store_options options = {.patience_ms = 10000,
                                    .hold_ms = 60000,
                                    .n_places = 8,
                                    .gangs = true,
                                    .gang_room_ms = 60000,
                                    NODE_BACKOFF_SETTINGS(2, 600000)};

    now = (struct moment){.now_ns = INT64_C(1767225600000000000), .now_ms = 1000000};
    extender = (struct extender){.store = store_new(&options)};
    store_set_moment(extender.store, &now);
    store_set_observer(extender.store, &observer);
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(extender.store, feed);
        for (unsigned i = 0; feed == FEED_NODES && i < NODES; i++)
            put_node(i);
        store_list_end(extender.store, feed);
    }
    for (int i = 0; i < 20 && chance_events() > 0; i++) {
        for (uint32_t n = chance_below(1500); n > 0 && chance_next_event(); n--)
            chance_act(actions, NULL);
        take_in_portions();
    }
    store_free(extender.store);
}

int main(void)
{
    chance_init("what is told of the queue is of one moment", 60000);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    do
        live();
    while (chance_next_event());
    g_print("%u accounts in %u portions, of %u pods in all\n", n_images, n_portions, n_pods_told);
    HOLDS(n_portions > 2 * n_images, "hardly anything was taken in portions");
    return EXIT_SUCCESS;
}
