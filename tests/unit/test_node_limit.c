/* SPDX-License-Identifier: Apache-2.0 */
/* A node with more than is served on one node is refused for a limit of ours, and not as one without GPUs. */
#include "quota_extender.h"
#include "suite.h"

#include "base/log.h"

#define LIMIT "a limit of gpuledger, not of the node"
#define NO_SHARE "not for GPU share"
#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define GPU "nvidia.com/gpu"
#define CORE "tencent.com/vcuda-core"
#define BLOCKS "tencent.com/vcuda-memory"

#define VOLCANO "volcano.sh/gpu-"

static const struct {
    struct string_pair capacity[2];
    const char *registered; /* cards of HAMi: how many */
    const char *asks;       /* limits of the pod, in JSON */
    const char *refusal;    /* NULL: it passes */
} rows[] = {
    {{{MEM, "1000"}, {COUNT, "256"}}, .asks = "\"" MEM "\":\"1\""},
    {{{MEM, "1000"}, {COUNT, "257"}}, .asks = "\"" MEM "\":\"1\"", .refusal = LIMIT},
    {{{MEM, "1000"}, {COUNT, "0"}}, .asks = "\"" MEM "\":\"1\"", .refusal = NO_SHARE},
    {{{GPU, "131072"}, {"cpu", "1"}}, .asks = "\"" GPU "\":\"1\""},
    {{{GPU, "262144"}, {"cpu", "1"}}, .asks = "\"" GPU "\":\"1\""},
    {{{GPU, "262145"}, {"cpu", "1"}}, .asks = "\"" GPU "\":\"1\"", .refusal = LIMIT},
    {{{CORE, "25700"}, {BLOCKS, "1000"}},
     .asks = "\"" CORE "\":\"10\",\"" BLOCKS "\":\"1\"",
     .refusal = LIMIT},
    {{{VOLCANO "memory", "1000"}, {VOLCANO "number", "257"}},
     .asks = "\"" VOLCANO "memory\":\"1\"",
     .refusal = LIMIT},
    {{{GPU, "10"}, {"cpu", "1"}},
     .registered = "256",
     .asks = "\"" GPU "\":\"1\",\"nvidia.com/gpumem\":\"1\""},
    {{{GPU, "10"}, {"cpu", "1"}},
     .registered = "257",
     .asks = "\"" GPU "\":\"1\",\"nvidia.com/gpumem\":\"1\"",
     .refusal = LIMIT},
};

static char *registered(const char *number)
{
    GString *text = g_string_new(NULL);

    for (int i = 0; number && i < atoi(number); i++)
        g_string_append_printf(text, "GPU-%d,4,10240,100,Tesla T4,0,true:", i);
    return g_string_free(text, FALSE);
}

START_TEST(a_limit_of_ours_says_so)
{
    g_autofree char *cards = registered(rows[_i].registered);
    const struct string_pair annotation = {"hami.io/node-nvidia-register", cards};
    const struct string_pairs amounts = {rows[_i].capacity, 2};

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    extender = (struct extender){.store = store_new(&(struct store_options){.patience_ms = 60000})};
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    store_apply_node(extender.store,
                     &(struct node_view){.name = "n",
                                         .annotations = {&annotation, rows[_i].registered ? 1 : 0},
                                         .capacity = amounts,
                                         .allocatable = amounts});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"x\",\"namespace\":\"ml\",\"uid\":\"x\"},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{%s}}}]}},\"NodeNames\":[\"n\"]"
        "}",
        rows[_i].asks);
    expect_filter(body, "n", rows[_i].refusal ? "" : "n",
                  rows[_i].refusal ? rows[_i].refusal : LIMIT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_limit");
    TCase *tests = tcase_create("node_limit");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_loop_test(tests, a_limit_of_ours_says_so, 0, G_N_ELEMENTS(rows));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
