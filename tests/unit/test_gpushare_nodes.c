/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare_words.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

/* --- nodes ---------------------------------------------------------------------------------- */

struct node_case {
    const char *mem, *count, *gfd, *sizes;
    int64_t option_unit;
    int32_t n_cards; /* 0: not of the dialect; -1: an error */
    int64_t unit;
    int64_t first, last; /* units */
    bool warns;
};

static const struct node_case node_cases[] = {
    /* the plugin's usual words */
    {"30", "2", .n_cards = 2, .unit = GIB, .first = 15, .last = 15},
    {"15", "1", .n_cards = 1, .unit = GIB, .first = 15, .last = 15},
    {"31", "2", .n_cards = 2, .unit = GIB, .first = 15, .last = 15}, /* the remainder is lost */
    {"1128", "8", .n_cards = 8, .unit = GIB, .first = 141, .last = 141},
    {"32552", "2", .n_cards = 2, .unit = MIB, .first = 16276, .last = 16276},
    {"65104", "4", .n_cards = 4, .unit = MIB, .first = 16276, .last = 16276},
    /* as the API server may spell them */
    {"8k", "8", .n_cards = 8, .unit = MIB, .first = 1000, .last = 1000},
    {"2Ki", "2", .n_cards = 2, .unit = MIB, .first = 1024, .last = 1024},
    {"2e3", "2", .n_cards = 2, .unit = MIB, .first = 1000, .last = 1000},
    {"3000000m", "3", .n_cards = 3, .unit = MIB, .first = 1000, .last = 1000},
    /* the guess at the unit, at its border */
    {"999", "1", .n_cards = 1, .unit = GIB, .first = 999, .last = 999},
    {"1000", "1", .n_cards = 1, .unit = MIB, .first = 1000, .last = 1000},
    /* the driver's label decides */
    {"22", "2", "11178", .n_cards = 2, .unit = GIB, .first = 11, .last = 11},
    {"22356", "2", "11178", .n_cards = 2, .unit = MIB, .first = 11178, .last = 11178},
    {"512", "1", "512", .n_cards = 1, .unit = MIB, .first = 512, .last = 512},
    {"1500", "1", "1536000", .n_cards = 1, .unit = GIB, .first = 1500, .last = 1500},
    {"30", "2", "", .n_cards = 2, .unit = GIB, .first = 15, .last = 15},
    {"30", "2", "0", .n_cards = 2, .unit = GIB, .first = 15, .last = 15},
    {"30", "2", "15 GiB", .n_cards = 2, .unit = GIB, .first = 15, .last = 15},
    {"30", "2", "99999999999999999999", .n_cards = 2, .unit = GIB, .first = 15, .last = 15},
    /* the administrator decides before all */
    {"30", "2", "16276", .option_unit = MIB, .n_cards = 2, .unit = MIB, .first = 15, .last = 15},
    {"65104", "2", .option_unit = GIB, .n_cards = 2, .unit = GIB, .first = 32552,
     .last = AMOUNT_BYTES_MAX / GIB}, /* saturates */
    /* cards of unequal size */
    {"20", "2", NULL, "10,20", .n_cards = 2, .unit = GIB, .first = 10, .last = 20},
    {"20", "2", NULL, " 10 ,\t20\n", .n_cards = 2, .unit = GIB, .first = 10, .last = 20},
    {"20", "2", NULL, "0,20", .n_cards = 2, .unit = GIB, .first = 0, .last = 20},
    {"20", "2", NULL, "10,99999999", .n_cards = 2, .unit = GIB, .first = 10,
     .last = AMOUNT_BYTES_MAX / GIB},
    {"20", "2", NULL, "", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    {"20", "2", NULL, "10", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    {"20", "2", NULL, "10,20,30", .n_cards = 2, .unit = GIB, .first = 10, .last = 10,
     .warns = true},
    {"20", "2", NULL, "10,", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    {"20", "2", NULL, "5,x", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    {"20", "2", NULL, "5,-1", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    {"20", "2", NULL, "5,20Gi", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    {"20", "2", NULL, "5,18446744073709551621", .n_cards = 2, .unit = GIB, .first = 10, .last = 10,
     .warns = true},
    {"20", "2", NULL, "5;20", .n_cards = 2, .unit = GIB, .first = 10, .last = 10, .warns = true},
    /* as many cards as can be */
    {"2560", "256", .n_cards = 256, .unit = GIB, .first = 10, .last = 10},
    {"9223372036854775807", "1", .n_cards = 1, .unit = MIB, .first = AMOUNT_BYTES_MAX / MIB,
     .last = AMOUNT_BYTES_MAX / MIB},
    /* not of the dialect */
    {NULL, NULL},
    {NULL, "2"},
    {"0", "2"},
    {"0", "0"},
    {"0", NULL},
    /* of the dialect, but unusable */
    {"30", NULL, .n_cards = -1},
    {"30", "0", .n_cards = -1},
    {"30", "257", .n_cards = -1},
    {"30", "31", .n_cards = -1},
    {"30", "4294967297", .n_cards = -1},
    {"30", "9223372036854775807", .n_cards = -1},
    {"30", "99999999999999999999", .n_cards = -1},
    {"30", "two", .n_cards = -1},
    {"30", "-2", .n_cards = -1},
    {"30", "1500m", .n_cards = -1},
    {"-30", "2", .n_cards = -1},
    {"30.5", "2", .n_cards = -1},
    {"", "2", .n_cards = -1},
    {"1e30", "2", .n_cards = -1},
};

START_TEST(nodes_are_read)
{
    const struct node_case *c = &node_cases[_i];
    struct string_pair capacity[] = {{"cpu", "8"}, {MEM, c->mem}, {COUNT, c->count}};
    struct string_pair labels[] = {{"gpushare", "true"}, {GFD, c->gfd}};
    struct string_pair annotations[] = {{CARD_MEMORY, c->sizes}};
    struct node_view view = {
        .name = "n1",
        .labels = present(labels, G_N_ELEMENTS(labels)),
        .annotations = present(annotations, G_N_ELEMENTS(annotations)),
        .capacity = present(capacity, G_N_ELEMENTS(capacity)),
    };
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    options.gpushare_memory_unit = c->option_unit;
    bool read = gpushare->read_topology(&view, &options, topology, &warning, &error);
    ck_assert_int_eq(read, c->n_cards > 0);
    ck_assert_int_eq(error != NULL, c->n_cards < 0);
    ck_assert_int_eq(warning != NULL, c->warns);
    if (error)
        ck_assert_ptr_nonnull(strstr(error->message, "'n1'"));
    if (!read)
        return;
    ck_assert_ptr_eq(topology->dialect, gpushare);
    ck_assert_int_eq(topology->n_cards, c->n_cards);
    ck_assert_int_eq(topology->memory_unit, c->unit);
    ck_assert_int_eq(topology->cards[0].memory, MIN(c->first * c->unit, AMOUNT_BYTES_MAX));
    ck_assert_int_eq(topology->cards[c->n_cards - 1].memory, c->last * c->unit);
}
END_TEST

START_TEST(a_node_is_read_without_asking_for_warnings)
{
    struct node_view view = {
        .name = "n1",
        .annotations = PAIRS({CARD_MEMORY, "x"}),
        .capacity = PAIRS({MEM, "30"}, {COUNT, "2"}),
    };
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    ck_assert(gpushare->read_topology(&view, &options, topology, NULL, NULL));
    ck_assert_int_eq(topology->cards[1].memory, 15 * GIB);
}
END_TEST

/* allocatable shrinks when devices fail; the cards' size does not. */
START_TEST(capacity_counts_and_not_what_is_allocatable)
{
    struct node_view view = {
        .name = "n1",
        .capacity = PAIRS({MEM, "30"}, {COUNT, "2"}),
        .allocatable = PAIRS({MEM, "0"}, {COUNT, "0"}),
    };
    g_autofree struct topology *topology = g_new0(struct topology, 1);

    ck_assert(gpushare->read_topology(&view, &options, topology, NULL, NULL));
    ck_assert_int_eq(topology->n_cards, 2);
    ck_assert_int_eq(topology->cards[0].memory, 15 * GIB);
}
END_TEST

/* --- health --------------------------------------------------------------------------------- */

struct health_case {
    const char *gpus;
    int32_t cards[4]; /* then -1 */
    bool warns;
};

static const struct health_case health_cases[] = {
    {"0", {0, -1}},
    {"1,3", {1, 3, -1}},
    {" 1 , 2 ", {1, 2, -1}},
    {"1,2,", {1, 2, -1}},
    {",1,,2,", {1, 2, -1}},
    {"\t1\n", {1, -1}},
    {"255", {255, -1}},
    {"007", {7, -1}},
    {"", {-1}},
    {" ", {-1}},
    {",", {-1}},
    {" , ,", {-1}},
    {NULL, {-1}},
    {"x", {-1}, true},
    {"1,x,2", {1, 2, -1}, true},
    {"-1", {-1}, true},
    {"+1", {-1}, true},
    {"1.0", {-1}, true},
    {"0x1", {-1}, true},
    {"1 2", {-1}, true},
    {"1;2", {-1}, true},
    {"256", {-1}, true},
    {"4294967296", {-1}, true},
    {"18446744073709551616", {-1}, true},
    {"none", {-1}, true},
};

START_TEST(unhealthy_cards_are_read_and_junk_is_not_card_0)
{
    const struct health_case *c = &health_cases[_i];
    struct string_pair data[] = {{"gpus", c->gpus}};
    struct configmap_view view = {
        .ns = "kube-system", .name = "unhealthy-gpu-n1", .data = present(data, 1)};
    g_autoptr(GArray) indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autofree char *warning = NULL;
    guint n = 0;

    gpushare->read_health(&view, indices, &warning);
    for (; c->cards[n] >= 0; n++) {
        ck_assert_uint_gt(indices->len, n);
        ck_assert_int_eq(g_array_index(indices, int32_t, n), c->cards[n]);
    }
    ck_assert_uint_eq(indices->len, n);
    ck_assert_int_eq(warning != NULL, c->warns);
    if (warning)
        ck_assert_ptr_nonnull(strstr(warning, "'unhealthy-gpu-n1'"));
}
END_TEST

START_TEST(the_configmap_is_the_one_that_others_write)
{
    ck_assert_str_eq(gpushare->health_namespace, "kube-system");
    ck_assert_str_eq(gpushare->health_prefix, "unhealthy-gpu-");
    ck_assert_str_eq(gpushare->resources[0], MEM);
    ck_assert_str_eq(gpushare->resources[1], "aliyun.com/gpu-core.percentage");
    ck_assert_ptr_null(gpushare->resources[2]);
}
END_TEST

/* --- what outsiders write ------------------------------------------------------------------- */

/* Annotations and ConfigMaps may be as large as the API server lets them; log lines may not. */
START_TEST(warnings_quote_a_little)
{
    g_autofree char *junk = g_strnfill(200000, 'x');
    g_autofree char *sizes = g_strconcat("1,", junk, NULL);
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    g_autoptr(GArray) indices = g_array_new(FALSE, FALSE, sizeof(int32_t));
    struct node_view node = {
        .name = "n1",
        .annotations = PAIRS({CARD_MEMORY, sizes}),
        .capacity = PAIRS({MEM, "30"}, {COUNT, "2"}),
    };
    struct node_view unusable = {.name = "n1", .capacity = PAIRS({MEM, junk}, {COUNT, "2"})};
    struct configmap_view configmap = {.name = "unhealthy-gpu-n1", .data = PAIRS({"gpus", junk})};
    struct pod_view pods[] = {
        {.uid = "u",
         .ns = "n",
         .name = "p",
         .annotations = PAIRS({IDX, junk}),
         CONTAINERS(WITH("5"))},
        {.uid = "u",
         .ns = "n",
         .name = "p",
         .annotations = PAIRS({IDX, "0"}, {POD, junk}),
         CONTAINERS(WITH("5"))},
        {.uid = "u",
         .ns = "n",
         .name = "p",
         .annotations = PAIRS({IDX, "0"}, {ASSUME_TIME, junk}),
         CONTAINERS(WITH("5"))},
        {.uid = "u", .ns = "n", .name = "p", CONTAINERS(WITH(junk))},
    };
    char *texts[7] = {0};
    g_autoptr(GError) error = NULL;

    ck_assert(gpushare->read_topology(&node, &options, topology, &texts[0], NULL));
    ck_assert(!gpushare->read_topology(&unusable, &options, topology, NULL, &error));
    texts[1] = g_strdup(error->message);
    gpushare->read_health(&configmap, indices, &texts[2]);
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++)
        allocation_free(dialect_read_allocation(&pods[i], &options, &texts[3 + i]));
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        ck_assert_ptr_nonnull(texts[i]);
        ck_assert_msg(strlen(texts[i]) < 250, "%.300s", texts[i]);
        g_free(texts[i]);
    }
}
END_TEST

/* --- the table ------------------------------------------------------------------------------ */

START_TEST(rows_are_found_by_name)
{
    ck_assert_ptr_null(dialect_find("no-such"));
    ck_assert_ptr_null(dialect_find(NULL));
    ck_assert_ptr_null(dialect_find(""));
    for (size_t i = 0; dialects[i]; i++)
        ck_assert_ptr_eq(dialect_find(dialects[i]->name), dialects[i]);
}
END_TEST

START_TEST(a_node_of_no_dialect_is_no_error)
{
    struct node_view view = {.name = "n1", .capacity = PAIRS({"cpu", "8"})};
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert(!dialect_read_topology(&view, &options, topology, &warning, &error));
    ck_assert_ptr_null(error);
    ck_assert_ptr_null(warning);
}
END_TEST

START_TEST(an_unusable_node_is_an_error)
{
    struct node_view view = {.name = "n1", .capacity = PAIRS({MEM, "8"})};
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    g_autoptr(GError) error = NULL;

    ck_assert(!dialect_read_topology(&view, &options, topology, NULL, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_RANGE));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("gpushare_nodes");
    TCase *tc = tcase_create("gpushare_nodes");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, nodes_are_read, 0, G_N_ELEMENTS(node_cases));
    tcase_add_test(tc, a_node_is_read_without_asking_for_warnings);
    tcase_add_test(tc, capacity_counts_and_not_what_is_allocatable);
    tcase_add_loop_test(tc, unhealthy_cards_are_read_and_junk_is_not_card_0, 0,
                        G_N_ELEMENTS(health_cases));
    tcase_add_test(tc, the_configmap_is_the_one_that_others_write);
    tcase_add_test(tc, warnings_quote_a_little);
    tcase_add_test(tc, rows_are_found_by_name);
    tcase_add_test(tc, a_node_of_no_dialect_is_no_error);
    tcase_add_test(tc, an_unusable_node_is_an_error);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
