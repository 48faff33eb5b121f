/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the dialect, nobody gets a card that is out of service. */
#include "desk.h"
#include "suite.h"

#define VOLCANO(name) "volcano.sh/gpu-" name
#define TENCENT(name) "tencent.com/vcuda-" name
#define ELASTIC(name) "elasticgpu.io/gpu-" name
#define HAMI_CARDS                                                                                 \
    "GPU-0,10,16000,100,T4,0,true,0,hami-core:GPU-1,10,16000,100,T4,0,true,1,hami-core:"

/* A node with two cards that nobody uses, and a pod that fits on either. */
static const struct row {
    const char *dialect;
    struct string_pair capacity[3], annotation, limits[3];
    int first; /* the card that the node side takes by itself; -1: it obeys */
} rows[] = {
    {"gpushare",
     {{"aliyun.com/gpu-mem", "32"}, {"aliyun.com/gpu-count", "2"}},
     {"x", ""},
     {{"aliyun.com/gpu-mem", "4"}},
     -1},
    {"volcano",
     {{VOLCANO("memory"), "32000"}, {VOLCANO("number"), "2"}},
     {"x", ""},
     {{VOLCANO("memory"), "4000"}},
     -1},
    {"elastic",
     {{ELASTIC("core"), "200"}, {ELASTIC("memory"), "200"}},
     {"x", ""},
     {{ELASTIC("core"), "10"}, {ELASTIC("memory"), "10"}},
     -1},
    {"hami",
     {{"nvidia.com/gpu", "20"}},
     {"hami.io/node-nvidia-register", HAMI_CARDS},
     {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1000"}},
     -1},
    {"gpu-manager",
     {{TENCENT("core"), "200"}, {TENCENT("memory"), "128"}},
     {"x", ""},
     {{TENCENT("core"), "10"}, {TENCENT("memory"), "8"}},
     0},
};

/* The card that the pod gets; -1: none. */
static int place(const struct row *row, const char *key, const char *cordoned)
{
    const struct string_pair annotations[] = {row->annotation, {key, cordoned}};
    const struct node_view view = {
        .name = cordoned, /* one node for each */
        .capacity = {row->capacity, row->capacity[2].key   ? 3
                                    : row->capacity[1].key ? 2
                                                           : 1},
        .allocatable = {row->capacity, row->capacity[2].key   ? 3
                                       : row->capacity[1].key ? 2
                                                              : 1},
        .annotations = {annotations, 2},
    };
    const struct container_view container = {.name = "c",
                                             .limits = {row->limits, row->limits[1].key ? 2 : 1}};
    const struct pod_view pod = {
        .ns = "ns", .name = "p", .uid = "p", .containers = &container, .n_containers = 1};
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);
    const struct node *node = desk_node(&view);
    struct placement placement;
    enum reason reason;

    ck_assert_msg(request, "%s: %s", row->dialect, error ? error->message : "no request");
    ck_assert_int_eq(node->n_cards, 2);
    const struct admission_query query = {.request = request,
                                          .policy = policies,
                                          .options = &options,
                                          .now_ns = now_ns,
                                          .patience_ns = PATIENCE};
    const enum admission admission = dialect_admit(node, &query, &placement, &reason);
    ck_assert_int_eq(dialect_admits(node, &query), admission);
    return admission == ADMISSION_YES ? placement.shares[0].card : -1;
}

START_TEST(nobody_gets_a_card_that_is_out_of_service)
{
    const struct row *row = &rows[_i];
    const char *key = "gpuledger.io/cordoned-cards";
    const int other = row->first < 0 ? 1 : -1; /* it would take the first all the same */

    ck_assert_int_ne(place(row, key, ""), -1);
    ck_assert_int_eq(place(row, key, "0"), row->first == 0 ? other : 1);
    ck_assert_int_eq(place(row, key, "1"), 0);
    ck_assert_int_eq(place(row, key, "0,1"), -1);
    ck_assert_int_eq(place(row, key, "*"), -1);
    ck_assert_int_eq(place(row, key, "?"), -1);
}
END_TEST

START_TEST(what_others_of_the_dialect_read_counts_too)
{
    ck_assert_int_eq(place(&rows[3], "hami.io/device-cordon", "GPU-0"), 1);
    ck_assert_int_eq(place(&rows[3], "hami.io/device-cordon", "GPU-0,GPU-1"), -1);
    ck_assert_str_eq(dialect_find("hami")->cordon_key, "hami.io/device-cordon");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cordon");
    TCase *tests = tcase_create("cordon");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, nobody_gets_a_card_that_is_out_of_service, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, what_others_of_the_dialect_read_counts_too);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
