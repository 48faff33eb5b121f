/* SPDX-License-Identifier: Apache-2.0 */
/* Lists in a pod's annotations, of every dialect: at the bound they are read, beyond it the pod is refused. */
#include "dialect/word_list.h"
#include "hami_words.h"
#include "suite.h"

#include <check.h>
#include <string.h>

static const struct dialect_options options;

static const struct {
    const char *key;
    struct string_pairs asks;
} lists[] = {
    {"nvidia.com/use-gputype", PAIRS({GPU, "1"})},
    {"nvidia.com/nouse-gputype", PAIRS({GPU, "1"})},
    {"nvidia.com/use-gpuuuid", PAIRS({GPU, "1"})},
    {"nvidia.com/nouse-gpuuuid", PAIRS({GPU, "1"})},
    {"hami.io/gpu-scheduler-policy", PAIRS({GPU, "1"})},
    {"nvidia.com/use-gputype", PAIRS({VGPU, "1"})},
    {"volcano.sh/vgpu-use-gpuuuid", PAIRS({VGPU, "1"})},
    {"volcano.sh/vgpu-nouse-gpuuuid", PAIRS({VGPU, "1"})},
    {"gpuledger.io/gpu-models", PAIRS({"aliyun.com/gpu-mem", "1"})},
    {"gpuledger.io/gpu-models-not", PAIRS({"aliyun.com/gpu-mem", "1"})},
};

/* `n` words, of which the last has so many bytes. */
static char *list_of(int n, int bytes)
{
    GString *text = g_string_new(NULL);

    for (int i = 1; i < n; i++)
        g_string_append(text, "A10,");
    for (int i = 0; i < bytes; i++)
        g_string_append_c(text, 'x');
    return g_string_free(text, FALSE);
}

static struct request *ask(int i, const char *text, GError **error)
{
    struct string_pair words[] = {{lists[i].key, text}};
    struct container_view container = {.name = "c", .limits = lists[i].asks};
    const struct pod_view view = {.ns = "ml",
                                  .name = "a",
                                  .uid = "u",
                                  .annotations = {words, 1},
                                  .containers = &container,
                                  .n_containers = 1};

    return dialect_read_request(&view, &options, error);
}

START_TEST(a_list_at_the_bound_is_read)
{
    g_autofree char *text = list_of(WORD_LIST_ITEMS_MAX, WORD_LIST_BYTES_MAX);
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = ask(_i, text, &error);

    ck_assert_msg(request != NULL, "%s: %s", lists[_i].key, error ? error->message : "");
}
END_TEST

START_TEST(a_longer_list_is_refused_in_constant_words)
{
    g_autofree char *many = list_of(WORD_LIST_ITEMS_MAX + 1, 1);
    g_autofree char *more = list_of(32000, 7);
    g_autofree char *wide = list_of(1, WORD_LIST_BYTES_MAX + 1);
    const char *const texts[] = {many, more, wide};
    g_autofree char *said = g_strdup_printf("annotation '%s' may have at most 64 items of at most "
                                            "128 bytes each",
                                            lists[_i].key);

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(ask(_i, texts[i], &error));
        ck_assert_msg(error != NULL, "%s: no error", lists[_i].key);
        ck_assert_str_eq(error->message, said);
    }
}
END_TEST

START_TEST(a_long_mode_is_refused_in_constant_words)
{
    g_autofree char *mode = list_of(1, WORD_LIST_BYTES_MAX + 1);
    const struct pod_view view = {.ns = "ml",
                                  .name = "a",
                                  .uid = "u",
                                  .annotations = PAIRS({"nvidia.com/vgpu-mode", mode}),
                                  CONTAINERS(WITH({GPU, "1"}))};
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(&view, &options, &error));
    ck_assert_str_eq(error->message,
                     "annotation 'nvidia.com/vgpu-mode' may have at most 128 bytes");
}
END_TEST

/* Bound with such a list, or one that was edited later. */
static struct allocation *held_with(const char *models)
{
    const struct pod_view view = {
        .ns = "ml",
        .name = "a",
        .uid = "u",
        .node_name = "n1",
        .annotations = PAIRS({"nvidia.com/use-gputype", models}, {"hami.io/vgpu-node", "n1"},
                             {ALLOCATED, "GPU-a,NVIDIA,512,0:;"}),
        CONTAINERS(WITH({GPU, "1"}, {MEM, "512"})),
    };

    return dialect_read_allocation(&view, &options, NULL);
}

START_TEST(a_bound_pod_with_a_longer_list_counts)
{
    g_autofree char *many = list_of(WORD_LIST_ITEMS_MAX + 1, 1);
    g_autoptr(allocation) held = held_with(many), reference = held_with("A10");

    ck_assert_ptr_nonnull(held);
    ck_assert_uint_eq(held->n_shares, reference->n_shares);
    ck_assert_int_eq(held->shares[0].memory.value, 512 * MIB);
    ck_assert_int_eq(held->distrust, reference->distrust);
}
END_TEST

START_TEST(a_cards_model_is_cut)
{
    g_autofree char *model = list_of(1, 10 * CARD_TEXT_MAX);
    g_autofree char *text = g_strdup_printf("GPU-a,10,15360,100,%s,0,true:", model);
    const struct node_view view = {.name = "n1",
                                   .annotations = PAIRS({REGISTERED, text}),
                                   .capacity = PAIRS({GPU, "10"}),
                                   .allocatable = PAIRS({GPU, "10"})};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *said = NULL;

    ck_assert(dialect_read_topology(&view, &options, topology, &said, NULL));
    ck_assert_uint_eq(strlen(topology->cards[0].model), CARD_TEXT_MAX);
    ck_assert_msg(said && strstr(said, "model or mode"), "%s", said);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("word_list");
    TCase *tests = tcase_create("word_list");

    tcase_add_loop_test(tests, a_list_at_the_bound_is_read, 0, G_N_ELEMENTS(lists));
    tcase_add_loop_test(tests, a_longer_list_is_refused_in_constant_words, 0, G_N_ELEMENTS(lists));
    tcase_add_test(tests, a_long_mode_is_refused_in_constant_words);
    tcase_add_test(tests, a_bound_pod_with_a_longer_list_counts);
    tcase_add_test(tests, a_cards_model_is_cut);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
