/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"
#include "store/kinds/kind.h"

#include "base/metrics.h"
#include "inspect/views.h"
#include "suite.h"

#include <string.h>

static struct world world;
static struct fake_cluster *cluster;

static void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
}

static void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

static void add_bound(const char *name, const char *node, int64_t mem, const char *card)
{
    fake_cluster_add_pod(
        cluster, &(struct fake_pod){
                     .name = name, .node = node, .mem = mem, .card = card, .phase = "Running"});
}

typedef bool (*node_view)(struct store *store, const char *node, GString *reply);

/* What a view appends to what is there. */
static void expect(node_view view, const char *node, bool found, const char *expected)
{
    g_autoptr(GString) reply = g_string_new("before ");

    world_catch_up(&world);
    ck_assert_int_eq(view(world.store, node, reply), found);
    ck_assert(g_str_has_prefix(reply->str, "before "));
    ck_assert_str_eq(reply->str + 7, expected);
}

/* --- the view of the Aliyun command-line tool ----------------------------------------------- */

START_TEST(inspect_is_what_the_aliyun_tool_reads)
{
    static const char *const all =
        "{\"nodes\":[{\"name\":\"n1\",\"totalGPU\":30,\"usedGPU\":6,\"devs\":[{\"id\":0,"
        "\"totalGPU\":15,\"usedGPU\":6,\"pods\":[{\"name\":\"a-0\",\"namespace\":\"ml\","
        "\"usedGPU\":6}]},{\"id\":1,\"totalGPU\":15,\"usedGPU\":0,\"pods\":[]}]}]}";

    fake_cluster_put_node(cluster, "n1", 30, 2);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    add_bound("a-0", "n1", 6, "0");
    expect(view_inspect, NULL, true, all);
    expect(view_inspect, "n1", true, all);
}
END_TEST

START_TEST(inspect_of_nothing)
{
    expect(view_inspect, NULL, true, "{\"nodes\":[]}");
    expect(view_inspect, "n\"1", false, "{\"nodes\":[],\"error\":\"node 'n\\\"1' is not known\"}");
    fake_cluster_put_node(cluster, "plain", 0, 0);
    expect(view_inspect, NULL, true, "{\"nodes\":[]}");
    expect(view_inspect, "plain", true,
           "{\"nodes\":[{\"name\":\"plain\",\"totalGPU\":0,\"usedGPU\":0,\"devs\":[]}]}");
}
END_TEST

START_TEST(inspect_is_in_order_whatever_came_first)
{
    fake_cluster_put_node(cluster, "n2", 10, 1);
    fake_cluster_put_node(cluster, "n1", 8192, 1); /* MiB */
    add_bound("b", "n2", 2, "0");
    add_bound("zz/a", "n2", 1, "0");
    add_bound("a", "n2", 3, NULL); /* there is but one card it can be on */
    expect(view_inspect, NULL, true,
           "{\"nodes\":[{\"name\":\"n1\",\"totalGPU\":8192,\"usedGPU\":0,\"devs\":[{\"id\":0,"
           "\"totalGPU\":8192,\"usedGPU\":0,\"pods\":[]}]},{\"name\":\"n2\",\"totalGPU\":10,"
           "\"usedGPU\":6,\"devs\":[{\"id\":0,\"totalGPU\":10,\"usedGPU\":6,\"pods\":["
           "{\"name\":\"a\",\"namespace\":\"ml\",\"usedGPU\":3},"
           "{\"name\":\"b\",\"namespace\":\"ml\",\"usedGPU\":2},"
           "{\"name\":\"a\",\"namespace\":\"zz\",\"usedGPU\":1}]}]}]}");
}
END_TEST

START_TEST(inspect_shows_reservations_too)
{
    fake_cluster_put_node(cluster, "n1", 30, 2);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 4});
    world_sync(&world);
    world_expect_bind(&world, "p", "n1", "");
    g_autoptr(GString) reply = g_string_new(NULL);
    ck_assert(view_inspect(world.store, "n1", reply));
    ck_assert_ptr_nonnull(
        strstr(reply->str, "\"pods\":[{\"name\":\"p\",\"namespace\":\"ml\",\"usedGPU\":4}]"));
}
END_TEST

/* --- nodes and pods as JSON ----------------------------------------------------------------- */

START_TEST(nodes_show_cards_and_pods)
{
    static const char *const n1 =
        "{\"name\":\"n1\",\"dialects\":[\"gpushare\"],\"present\":true,"
        "\"memoryUnitBytes\":1073741824,\"unplacedMemoryBytes\":2147483648,"
        "\"fragmentedGpuThousandths\":0,\"cards\":["
        "{\"index\":0,\"uuid\":null,\"model\":null,\"healthy\":true,\"closed\":false,"
        "\"memoryBytes\":10737418240,\"memoryUsedBytes\":6442450944,"
        "\"memoryFreeBytes\":2147483648,\"coreThousandths\":1000,\"coreUsedThousandths\":0,"
        "\"holders\":1,\"slots\":null},"
        "{\"index\":1,\"uuid\":null,\"model\":null,\"healthy\":false,\"closed\":false,"
        "\"memoryBytes\":10737418240,\"memoryUsedBytes\":0,"
        "\"memoryFreeBytes\":8589934592,\"coreThousandths\":1000,\"coreUsedThousandths\":0,"
        "\"holders\":0,\"slots\":null}],\"pools\":[],\"pods\":["
        "{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\",\"node\":\"n1\","
        "\"dialect\":\"gpushare\",\"state\":\"assigned\",\"waiting\":false,\"shares\":["
        "{\"card\":0,\"container\":0,\"memoryBytes\":6442450944,\"coreThousandths\":0,"
               "\"resource\":null,\"devices\":0}]},"
        "{\"namespace\":\"ml\",\"name\":\"b\",\"uid\":\"uid-b\",\"node\":\"n1\","
        "\"dialect\":\"gpushare\",\"state\":\"assigned\",\"waiting\":false,\"shares\":["
        "{\"card\":null,\"container\":null,\"memoryBytes\":2147483648,\"coreThousandths\":0,"
               "\"resource\":null,\"devices\":0}]}]}";
    g_autofree char *all = g_strdup_printf("{\"nodes\":[%s]}", n1);

#define GPU "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}"
    fake_cluster_put_node(cluster, "n1", 20, 2);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    fake_cluster_put_unhealthy(cluster, "n1", "1");
    add_bound("a", "n1", 6, "0");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "b",
                                                     .node = "n1",
                                                     .phase = "Running",
                                                     .card = "?",
                                                     .containers = "[" GPU "," GPU "]"});
    expect(view_nodes, NULL, true, all);
    expect(view_nodes, "n1", true, n1);
    expect(view_nodes, "n2", false, "");
}
END_TEST

START_TEST(overbooked_cards_have_nothing_free)
{
    g_autoptr(GString) reply = g_string_new(NULL);

    fake_cluster_put_node(cluster, "n1", 4, 2);
    add_bound("a", "n1", 3, "0");
    add_bound("b", "n1", 1, "lost");
    world_catch_up(&world);
    ck_assert(view_nodes(world.store, "n1", reply));
    ck_assert_ptr_nonnull(
        strstr(reply->str, "\"memoryUsedBytes\":3221225472,\"memoryFreeBytes\":0,"));
}
END_TEST

START_TEST(nodes_that_are_gone_show_their_pods)
{
    g_autoptr(GString) reply = g_string_new(NULL);

    add_bound("a", "n1", 6, "0");
    world_catch_up(&world);
    ck_assert(view_nodes(world.store, NULL, reply));
    ck_assert_ptr_nonnull(strstr(reply->str, "\"name\":\"n1\",\"dialects\":[],"
                                             "\"present\":false,"));
    ck_assert_ptr_nonnull(strstr(reply->str, "\"uid\":\"uid-a\",\"node\":\"n1\""));
    expect(view_inspect, "n1", true,
           "{\"nodes\":[{\"name\":\"n1\",\"totalGPU\":0,\"usedGPU\":0,\"devs\":[]}]}");
}
END_TEST

/* A ConfigMap may outlive its node, and come before it. */
START_TEST(a_node_of_which_only_a_configmap_speaks_is_not_known)
{
    fake_cluster_put_unhealthy(cluster, "ghost", "0");
    expect(view_nodes, "ghost", false, "");
    expect(view_nodes_table, "ghost", false, "");
    expect(view_inspect, "ghost", false, "{\"nodes\":[],\"error\":\"node 'ghost' is not known\"}");
}
END_TEST

static void expect_pod(const char *ns, const char *name, bool found, const char *part)
{
    g_autoptr(GString) reply = g_string_new(NULL);

    world_catch_up(&world);
    ck_assert_int_eq(view_pod(world.store, ns, name, reply), found);
    ck_assert_msg(found ? strstr(reply->str, part) != NULL : reply->len == 0, "%s", reply->str);
}

START_TEST(pods_are_found_by_namespace_and_name)
{
    fake_cluster_put_node(cluster, "n1", 20, 2);
    add_bound("a", "n1", 6, "1");
    add_bound("zz/a", "n1", 2, "0");
    expect_pod("ml", "a", true,
               "{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\",\"node\":\"n1\","
               "\"dialect\":\"gpushare\",\"state\":\"assigned\",\"waiting\":false,\"shares\":["
               "{\"card\":1,\"container\":0,\"memoryBytes\":6442450944,\"coreThousandths\":0,"
               "\"resource\":null,\"devices\":0}]}");
    expect_pod("zz", "a", true, "\"card\":0");
    expect_pod("ml", "b", false, "");
    expect_pod("a", "ml", false, "");
}
END_TEST

START_TEST(the_state_of_a_pod_can_be_followed)
{
    fake_cluster_put_node(cluster, "n1", 20, 2);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 6});
    world_sync(&world);
    world.extender.bind_timeout_ms = WORLD_ONE_TRY_MS;
    fake_cluster_script_bind(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    fake_cluster_script_get(cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    g_free(world_bind(&world, "p", "n1"));
    expect_pod("ml", "p", true, "\"state\":\"unknown\",\"waiting\":true");
    world_expect_bind(&world, "p", "n1", "");
    g_autoptr(GString) reply = g_string_new(NULL);
    ck_assert(view_pod(world.store, "ml", "p", reply));
    ck_assert_ptr_nonnull(strstr(reply->str, "\"state\":\"bound\",\"waiting\":true"));
    expect_pod("ml", "p", true, "\"state\":\"confirmed\",\"waiting\":true");
    fake_cluster_assign(cluster, "p");
    fake_cluster_start(cluster, "p");
    expect_pod("ml", "p", true, "\"state\":\"assigned\",\"waiting\":false");
}
END_TEST

/* --- the table ------------------------------------------------------------------------------ */

START_TEST(the_table_is_for_people)
{
    static const char *const table =
        "NODE        CARD  MEMORY                USED/TOTAL         HEALTH     PODS\n"
        "gpu-node-1     0  ############........  6GiB/10GiB         healthy    ml/a(6GiB)\n"
        "gpu-node-1     1  ....................  0GiB/10GiB         UNHEALTHY  -\n"
        "gpu-node-1     ?  on no known card, counted on each: 2GiB: ml/lost(2GiB)\n"
        "n2             0  ####################  9000MiB/8192MiB    healthy    ml/b(3000MiB)"
        " zz/w(6000MiB, waiting)\n";

    fake_cluster_put_node(cluster, "gpu-node-1", 20, 2);
    fake_cluster_put_node(cluster, "n2", 8192, 1);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    fake_cluster_put_unhealthy(cluster, "gpu-node-1", "1");
    add_bound("a", "gpu-node-1", 6, "0");
    add_bound("lost", "gpu-node-1", 2, "?");
    add_bound("b", "n2", 3000, "0");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "zz/w", .node = "n2", .mem = 6000});
    expect(view_nodes_table, NULL, true, table);
}
END_TEST

START_TEST(the_table_of_one_node)
{
    fake_cluster_put_node(cluster, "n1", 10, 1);
    fake_cluster_put_node(cluster, "n2", 10, 1);
    add_bound("a", "n1", 1, "0");
    expect(view_nodes_table, "n1", true,
           "NODE  CARD  MEMORY                USED/TOTAL         HEALTH     PODS\n"
           "n1       0  ##..................  1GiB/10GiB         healthy    ml/a(1GiB)\n");
    expect(view_nodes_table, "n3", false, "");
}
END_TEST

START_TEST(a_card_that_does_not_exist_is_no_known_card)
{
    fake_cluster_put_node(cluster, "n1", 20, 2);
    add_bound("a", "n1", 3, "7");
    expect(view_nodes_table, NULL, true,
           "NODE  CARD  MEMORY                USED/TOTAL         HEALTH     PODS\n"
           "n1       0  ....................  0GiB/10GiB         healthy    -\n"
           "n1       1  ....................  0GiB/10GiB         healthy    -\n"
           "n1       ?  on no known card, counted on each: 3GiB: ml/a(3GiB)\n");
}
END_TEST

/* --- devices by count ----------------------------------------------------------------------- */

static void feed_pool(void)
{
    world_sync(&world);
    feed_event(world.store, FEED_NODES, false,
               "{\"metadata\":{\"name\":\"n1\",\"labels\":{"
               "\"nvidia.com/gpu.product\":\"Tesla-T4-SHARED\",\"nvidia.com/gpu.count\":\"1\","
               "\"nvidia.com/gpu.replicas\":\"4\",\"nvidia.com/gpu.memory\":\"15360\"}},"
               "\"status\":{\"capacity\":{\"nvidia.com/gpu\":\"4\"}}}");
    feed_event(world.store, FEED_PODS, false,
               "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\"},"
               "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":"
               "{\"limits\":{\"nvidia.com/gpu\":\"3\"}}}]},\"status\":{\"phase\":\"Running\"}}");
}

START_TEST(devices_are_shown_by_pool)
{
    feed_pool();
    expect(view_nodes, "n1", true,
           "{\"name\":\"n1\",\"dialects\":[\"nvidia\"],\"present\":true,"
           "\"memoryUnitBytes\":1,\"unplacedMemoryBytes\":0,"
           "\"fragmentedGpuThousandths\":0,\"cards\":[],\"pools\":["
           "{\"resource\":\"nvidia.com/gpu\",\"model\":\"Tesla-T4\",\"shared\":true,"
           "\"capacity\":4,\"used\":3,\"memoryBytes\":16106127360}],\"pods\":["
           "{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"uid-a\",\"node\":\"n1\","
           "\"dialect\":\"nvidia\",\"state\":\"confirmed\",\"waiting\":false,\"shares\":["
           "{\"card\":null,\"container\":0,\"memoryBytes\":0,\"coreThousandths\":0,"
           "\"resource\":\"nvidia.com/gpu\",\"devices\":3}]}]}");
    expect(view_nodes_table, NULL, true,
           "NODE  CARD  MEMORY                USED/TOTAL         HEALTH     PODS\n"
           "n1       *  ###############.....  3/4                shared     nvidia.com/gpu: "
           "ml/a(3)\n");
    expect(view_inspect, NULL, true, "{\"nodes\":[]}");
}
END_TEST

/* --- metrics -------------------------------------------------------------------------------- */

/* The rules of the Prometheus text format 0.0.4 that a scrape dies of, or that promtool reports. */
static void lint(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autoptr(GHashTable) families = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) series = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GRegex) sample = g_regex_new(
        "^([a-z][a-z0-9_]*)(\\{[a-z_]+=\"(\\\\[\\\\n\"]|[^\\\\\"])*\"(,[a-z_]+=\"(\\\\[\\\\n\"]|"
        "[^\\\\\"])*\")*\\})? (-?[0-9.]+(e[-+][0-9]+)?|\\+Inf)$",
        0, 0, NULL);
    g_autofree char *family = NULL;

    ck_assert(g_str_has_suffix(text, "\n"));
    for (char **line = lines; line[0] && line[1]; line++) {
        g_autoptr(GMatchInfo) match = NULL;
        if (g_str_has_prefix(*line, "# HELP ")) {
            g_auto(GStrv) words = g_strsplit(*line, " ", 4);
            g_autofree char *type = g_strdup_printf("# TYPE %s ", words[2]);
            ck_assert_msg(words[3] && *words[3], "%s", *line);
            ck_assert_msg(g_hash_table_add(families, g_strdup(words[2])), "again: %s", *line);
            ck_assert_msg(g_str_has_prefix(line[1], type), "%s", line[1]);
            g_free(family);
            family = g_strdup(words[2]);
            line++;
            continue;
        }
        ck_assert_msg(g_regex_match(sample, *line, 0, &match), "%s", *line);
        ck_assert_msg(family && g_str_has_prefix(*line, family), "%s", *line);
        const char *value = strrchr(*line, ' ');
        ck_assert_msg(g_hash_table_add(series, g_strndup(*line, (gsize)(value - *line))),
                      "again: %s", *line);
    }
}

static void expect_line(const GString *text, const char *line)
{
    g_autofree char *whole = g_strdup_printf("\n%s\n", line);
    ck_assert_msg(strstr(text->str, whole) != NULL, "no %s in %s", line, text->str);
}

START_TEST(pools_have_gauges)
{
    g_autoptr(GString) text = g_string_new(NULL);

    feed_pool();
    view_metrics(world.store, 100, text);
    expect_line(text, "gpuledger_pool_devices{node=\"n1\",resource=\"nvidia.com/gpu\"} 4");
    expect_line(text, "gpuledger_pool_devices_used{node=\"n1\",resource=\"nvidia.com/gpu\"} 3");
}
END_TEST

START_TEST(metrics_mirror_the_ledger)
{
    g_autoptr(GString) text = g_string_new(NULL);

    fake_cluster_put_node(cluster, "n1", 20, 2);
    fake_cluster_put_node(cluster, "n2", 10, 1);
    fake_cluster_put_node(cluster, "plain", 0, 0);
    fake_cluster_put_unhealthy(cluster, "n1", "1");
    add_bound("a", "n1", 6, "0");
    add_bound("b", "n1", 1, "0");
    add_bound("c", "n1", 2, "?");
    add_bound("d", "gone", 2, "0");
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 4});
    world_sync(&world);
    world_expect_bind(&world, "p", "n2", "");
    view_metrics(world.store, 100, text);
    lint(text->str);
    expect_line(text, "gpuledger_card_memory_bytes{node=\"n1\",card=\"1\"} 10737418240");
    expect_line(text, "gpuledger_card_memory_used_bytes{node=\"n1\",card=\"0\"} 7516192768");
    expect_line(text, "gpuledger_card_holders{node=\"n1\",card=\"0\"} 2");
    expect_line(text, "gpuledger_card_healthy{node=\"n1\",card=\"0\"} 1");
    expect_line(text, "gpuledger_card_healthy{node=\"n1\",card=\"1\"} 0");
    expect_line(text, "gpuledger_node_unplaced_memory_bytes{node=\"n1\"} 2147483648");
    expect_line(text, "gpuledger_node_unplaced_memory_bytes{node=\"n2\"} 0");
    expect_line(text, "gpuledger_node_fragmented_gpus{node=\"n1\"} 0.000");
    expect_line(text, "gpuledger_fragmented_gpus 0.000");
    expect_line(text, "gpuledger_allocations{state=\"bound\"} 1");
    expect_line(text, "gpuledger_allocations{state=\"confirmed\"} 4");
    expect_line(text, "gpuledger_allocations{state=\"reserved\"} 0");
    expect_line(text, "gpuledger_allocations{state=\"unknown\"} 0");
    expect_line(text, "gpuledger_pods_waiting 1");
    expect_line(text, "gpuledger_ledger_drift 0");
    ck_assert_ptr_null(strstr(text->str, "plain"));
}
END_TEST

START_TEST(each_container_has_its_series)
{
    g_autoptr(GString) text = g_string_new(NULL);

    fake_cluster_put_node(cluster, "n1", 20, 2);
    add_bound("a", "n1", 6, "1");
    add_bound("lost", "n1", 2, "?");
    world_sync(&world);
    view_pod_metrics(world.store, text);
    lint(text->str);
    const char *labels = "{namespace=\"ml\",pod=\"a\",container=\"main\",container_index=\"0\",node=\"n1\",card=\"1\","
                         "uuid=\"\"}";
    g_autofree char *memory =
        g_strdup_printf("gpuledger_container_memory_bytes%s 6442450944", labels);
    g_autofree char *core = g_strdup_printf("gpuledger_container_core_ratio%s 0", labels);
    expect_line(text, memory);
    expect_line(text, core);
    ck_assert_ptr_null(strstr(text->str, "lost"));
}
END_TEST

START_TEST(all_metrics_together_are_well_formed)
{
    g_autoptr(GString) text = g_string_new(NULL);

    fake_cluster_put_node(cluster, "n1", 20, 2);
    fake_cluster_put_node(cluster, "n2", 40, 4);
    world_sync(&world);
    fake_cluster_add_pod(cluster, &(struct fake_pod){.name = "p", .mem = 4});
    g_free(world_filter(&world, "p", "n1,n2,n3"));
    world_expect_bind(&world, "p", "n2", "");
    metrics_write(text, kind_cell_name);
    view_metrics(world.store, 100, text);
    view_pod_metrics(world.store, text);
    lint(text->str);
}
END_TEST

START_TEST(of_many_cards_only_sums_are_told)
{
    g_autoptr(GString) text = g_string_new(NULL);

    fake_cluster_put_node(cluster, "n1", 20, 2);
    fake_cluster_put_node(cluster, "n2", 20, 2);
    fake_cluster_put_unhealthy(cluster, "n1", "1");
    add_bound("a", "n1", 6, "0");
    world_sync(&world);
    view_metrics(world.store, 4, text);
    ck_assert_ptr_nonnull(strstr(text->str, "gpuledger_card_memory_bytes{node=\"n2\",card=\"1\"}"));
    g_string_truncate(text, 0);
    view_metrics(world.store, 3, text);
    lint(text->str);
    ck_assert_ptr_null(strstr(text->str, "gpuledger_card_"));
    expect_line(text, "gpuledger_cards 4");
    expect_line(text, "gpuledger_cards_memory_bytes 42949672960");
    expect_line(text, "gpuledger_cards_memory_used_bytes 6442450944");
    expect_line(text, "gpuledger_cards_holders 1");
    expect_line(text, "gpuledger_cards_healthy 3");
    expect_line(text, "gpuledger_cards_closed 0");
    expect_line(text, "gpuledger_node_unplaced_memory_bytes{node=\"n2\"} 0");
}
END_TEST

START_TEST(drift_is_told)
{
    g_autoptr(GString) text = g_string_new(NULL);

    fake_cluster_put_node(cluster, "n1", 20, 2);
    world_sync(&world);
    struct node *node = ledger_node(store_lock(world.store), "n1");
    node->cards[0].memory_used++;
    store_unlock(world.store);
    store_verify(world.store);
    view_metrics(world.store, 100, text);
    expect_line(text, "gpuledger_ledger_drift 1");
    store_lock(world.store);
    node->cards[0].memory_used--;
    store_unlock(world.store);
    store_verify(world.store);
    g_string_truncate(text, 0);
    view_metrics(world.store, 100, text);
    expect_line(text, "gpuledger_ledger_drift 0");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("views");
    TCase *tc = tcase_create("views");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, inspect_is_what_the_aliyun_tool_reads);
    tcase_add_test(tc, inspect_of_nothing);
    tcase_add_test(tc, inspect_is_in_order_whatever_came_first);
    tcase_add_test(tc, inspect_shows_reservations_too);
    tcase_add_test(tc, nodes_show_cards_and_pods);
    tcase_add_test(tc, overbooked_cards_have_nothing_free);
    tcase_add_test(tc, nodes_that_are_gone_show_their_pods);
    tcase_add_test(tc, a_node_of_which_only_a_configmap_speaks_is_not_known);
    tcase_add_test(tc, pods_are_found_by_namespace_and_name);
    tcase_add_test(tc, the_state_of_a_pod_can_be_followed);
    tcase_add_test(tc, the_table_is_for_people);
    tcase_add_test(tc, the_table_of_one_node);
    tcase_add_test(tc, a_card_that_does_not_exist_is_no_known_card);
    tcase_add_test(tc, devices_are_shown_by_pool);
    tcase_add_test(tc, pools_have_gauges);
    tcase_add_test(tc, metrics_mirror_the_ledger);
    tcase_add_test(tc, each_container_has_its_series);
    tcase_add_test(tc, all_metrics_together_are_well_formed);
    tcase_add_test(tc, of_many_cards_only_sums_are_told);
    tcase_add_test(tc, drift_is_told);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
