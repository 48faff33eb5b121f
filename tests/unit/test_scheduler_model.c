/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kube-scheduler does by itself, as far as the model knows it, and the chance of simulations.
 */
#include "literals.h"

#include "simulate/scheduler_model.h"
#include "simulate/workload.h"
#include "suite.h"

#include <math.h>

#define GPU "example.com/gpu"

/* A node with 8 CPU, 16 GiB and 2 GPU, a smaller one, one that says nothing. */
static struct scheduler_model *three_nodes(void)
{
    struct scheduler_model *model = scheduler_model_new();

    scheduler_model_add_node(
        model, &(struct node_view){.name = "a",
                                   .allocatable = PAIRS({"cpu", "8"}, {"memory", "16Gi"},
                                                        {"pods", "2"}, {GPU, "2"})});
    scheduler_model_add_node(
        model, &(struct node_view){.name = "b",
                                   .allocatable = PAIRS({"cpu", "2500m"}, {"memory", "4Gi"})});
    scheduler_model_add_node(model, &(struct node_view){.name = "c"});
    return model;
}

static pod_needs *needs_of(struct scheduler_model *model, const struct container_view *containers,
                           size_t n)
{
    return scheduler_model_needs(model,
                                 &(struct pod_view){.containers = containers, .n_containers = n});
}

/* The nodes that the pod fits on, as bits. */
static unsigned fitting(const struct scheduler_model *model, const pod_needs *needs)
{
    uint32_t nodes[3];
    unsigned bits = 0;
    const size_t n = scheduler_model_filter(model, needs, nodes);

    for (size_t i = 0; i < n; i++)
        bits |= 1u << nodes[i];
    return bits;
}

enum { A = 1, B = 2, C = 4 };

static const struct {
    const char *name;
    struct container_view containers[3];
    unsigned nodes;
} pods[] = {
    {"nothing", {{.name = "c"}}, A | B | C},
    {"all of b's CPU",
     {{.requests = {(const struct string_pair[]){{"cpu", "2500m"}}, 1}}},
     A | B | C},
    {"a little more", {{.requests = {(const struct string_pair[]){{"cpu", "2501m"}}, 1}}}, A | C},
    {"containers together",
     {{.requests = {(const struct string_pair[]){{"memory", "3Gi"}}, 1}},
      {.requests = {(const struct string_pair[]){{"memory", "3Gi"}}, 1}}},
     A | C},
    {"the limit, if that is all",
     {{.limits = {(const struct string_pair[]){{"cpu", "3"}}, 1}}},
     A | C},
    {"an init container is before the others",
     {{.requests = {(const struct string_pair[]){{"cpu", "2"}}, 1}},
      {.requests = {(const struct string_pair[]){{"cpu", "2"}}, 1}, .init = true}},
     A | B | C},
    {"but beside the sidecars",
     {{.requests = {(const struct string_pair[]){{"cpu", "1"}}, 1}},
      {.requests = {(const struct string_pair[]){{"cpu", "1"}}, 1}, .init = true, .sidecar = true},
      {.requests = {(const struct string_pair[]){{"cpu", "2"}}, 1}, .init = true}},
     A | C},
    {"sidecars go on beside the others",
     {{.requests = {(const struct string_pair[]){{"cpu", "1500m"}}, 1}},
      {.requests = {(const struct string_pair[]){{"cpu", "1500m"}}, 1},
       .init = true,
       .sidecar = true}},
     A | C},
    {"who does not say has no extended resource",
     {{.limits = {(const struct string_pair[]){{GPU, "2"}}, 1}}},
     A},
    {"nobody has so many", {{.limits = {(const struct string_pair[]){{GPU, "3"}}, 1}}}, 0},
    {"nobody has such",
     {{.limits = {(const struct string_pair[]){{"example.com/other", "1"}}, 1}}},
     0},
};

START_TEST(a_pod_fits_where_there_is_enough)
{
    g_autoptr(scheduler_model) model = three_nodes();
    g_autoptr(GArray) needs = needs_of(model, pods[_i].containers, 3);

    ck_assert_msg(fitting(model, needs) == pods[_i].nodes, "%s: nodes %u", pods[_i].name,
                  fitting(model, needs));
}
END_TEST

START_TEST(what_is_taken_is_gone_until_it_is_given_back)
{
    g_autoptr(scheduler_model) model = three_nodes();
    const struct container_view gpu = {.limits = PAIRS({GPU, "1"})};
    const struct container_view none = {.name = "c"};
    g_autoptr(GArray) one = needs_of(model, &gpu, 1);
    g_autoptr(GArray) nothing = needs_of(model, &none, 1);

    scheduler_model_take(model, 0, one);
    ck_assert_uint_eq(fitting(model, one), A);
    scheduler_model_take(model, 0, one);
    ck_assert_uint_eq(fitting(model, one), 0);
    ck_assert_uint_eq(fitting(model, nothing), B | C); /* a takes two pods */
    scheduler_model_give(model, 0, one);
    ck_assert_uint_eq(fitting(model, one), A);
}
END_TEST

START_TEST(the_empty_and_balanced_node_scores_best)
{
    g_autoptr(scheduler_model) model = three_nodes();
    const struct container_view quarter = {.requests = PAIRS({"cpu", "2"}, {"memory", "4Gi"})};
    const struct container_view lopsided = {.requests = PAIRS({"cpu", "2"})};
    g_autoptr(GArray) even = needs_of(model, &quarter, 1);
    g_autoptr(GArray) odd = needs_of(model, &lopsided, 1);

    ck_assert_int_eq(scheduler_model_score(model, 0, even), 75 + 100);
    ck_assert_int_eq(scheduler_model_score(model, 0, odd), 87 + 87);
    scheduler_model_take(model, 0, even);
    ck_assert_int_eq(scheduler_model_score(model, 0, even), 50 + 100);
}
END_TEST

START_TEST(each_pod_comes_once_in_an_order_of_its_seed)
{
    uint32_t orders[3][50];
    static const uint32_t seeds[] = {1, 1, 2};

    for (size_t i = 0; i < 3; i++) {
        g_autoptr(workload) workload = workload_new(seeds[i], 50, true);
        bool seen[50] = {false};
        uint32_t pod;
        for (size_t k = 0; k < 50; k++) {
            ck_assert(workload_next(workload, &orders[i][k]));
            ck_assert(!seen[orders[i][k]]);
            seen[orders[i][k]] = true;
            workload_pick(workload, 3); /* changes nothing of the order */
        }
        ck_assert(!workload_next(workload, &pod));
        ck_assert_uint_lt(workload_draw(workload), 50);
    }
    ck_assert_mem_eq(orders[0], orders[1], sizeof orders[0]);
    ck_assert(memcmp(orders[0], orders[2], sizeof orders[0]) != 0);
}
END_TEST

START_TEST(lifetimes_have_their_mean)
{
    g_autoptr(workload) workload = workload_new(7, 1, false);
    double sum = 0;

    for (size_t i = 0; i < 20000; i++)
        sum += workload_time(workload, 3);
    ck_assert(fabs(sum / 20000 - 3) < 0.1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scheduler_model");
    TCase *model = tcase_create("model");
    tcase_add_loop_test(model, a_pod_fits_where_there_is_enough, 0, G_N_ELEMENTS(pods));
    tcase_add_test(model, what_is_taken_is_gone_until_it_is_given_back);
    tcase_add_test(model, the_empty_and_balanced_node_scores_best);
    suite_add_tcase(suite, model);
    TCase *chance = tcase_create("chance");
    tcase_add_test(chance, each_pod_comes_once_in_an_order_of_its_seed);
    tcase_add_test(chance, lifetimes_have_their_mean);
    suite_add_tcase(suite, chance);

    return suite_run(suite);
}
