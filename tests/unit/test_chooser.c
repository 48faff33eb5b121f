/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/chooser.h"

#include "policy/policy_choice.h"
#include "suite.h"
#include "world.h"

#include <sched.h>
#include <string.h>

#define PATIENCE_MS 240000 /* only against hanging */

static struct world world;
static gint class_asked = -1; /* atomic; SCHED_…: by the chooser's thread */

/* In the place of libc's: in the class SCHED_IDLE, the thread would get no CPU time on a busy machine. */
int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
    (void)param;
    if (pid == 0)
        g_atomic_int_set(&class_asked, policy);
    return 0;
}

/* "duo" and "mono" with cards of 10 units, and more pods than it takes to know what comes. */
static void setup(void)
{
    world_init(&world);
    world_populate(&world);
    for (int i = 0; i < 20; i++) {
        g_autofree char *name = g_strdup_printf("p%d", i);
        world_add_pending(&world, name, 1 + i % 5);
    }
}

static void teardown(void)
{
    world_release(&world);
}

static const struct policy *policy_now(void)
{
    store_lock(world.store);
    const struct policy *policy = store_options(world.store)->policy;
    store_unlock(world.store);
    return policy;
}

static char *metrics(struct chooser *chooser)
{
    GString *text = g_string_new(NULL);

    chooser_metrics(chooser, text);
    return g_string_free(text, FALSE);
}

static void await_look(struct chooser *chooser, const char *line)
{
    const int64_t until_us = g_get_monotonic_time() + PATIENCE_MS * 1000;

    for (;;) {
        g_autofree char *text = metrics(chooser);
        if (strstr(text, line))
            return;
        ck_assert_msg(g_get_monotonic_time() < until_us, "%s", text);
        g_usleep(1000);
    }
}

START_TEST(it_rests_until_the_policy_is_auto)
{
    g_autoptr(chooser) chooser = chooser_start(world.store, &(struct chooser_options){1}, NULL);
    g_autofree char *nothing = metrics(chooser);

    ck_assert_str_eq(nothing, "");
    chooser_set(chooser, policy_find("spread"), 0);
    ck_assert_ptr_eq(policy_now(), policy_find("spread"));
    chooser_set(chooser, &policy_auto, 0);
    ck_assert_ptr_eq(policy_now(), policy_find("oc"));
    await_look(chooser, "gpuledger_policy_lookaheads_total 1\n");
    await_look(chooser, "gpuledger_policy_lookahead_allocated_ratio{policy=\"binpack\"} 0.");
    await_look(chooser, "gpuledger_policy_in_use{policy=\"oc\"} 1\n");
    await_look(chooser, "gpuledger_policy_in_use{policy=\"first-fit\"} 0\n");
    await_look(chooser, "gpuledger_policy_lead_points{policy=\"oc\"} 0.00\n");
    await_look(chooser, "gpuledger_policy_lead_missing_points{policy=\"binpack\"} 0.");
    ck_assert_int_eq(g_atomic_int_get(&class_asked), SCHED_IDLE);
    g_autofree char *text = metrics(chooser);
    ck_assert_ptr_null(strstr(text, "gpuledger_policy_lead_missing_points{policy=\"oc\"}"));
    chooser_set(chooser, policy_find("binpack"), 0);
    g_autofree char *gone = metrics(chooser);
    ck_assert_str_eq(gone, "");
    ck_assert_ptr_eq(policy_now(), policy_find("binpack"));
}
END_TEST

/* Decisions do not change by it: what is learned stays as it is, and so do all bookings. */
START_TEST(a_look_leaves_the_store_alone)
{
    struct policy_choice *choice = policy_choice_new();
    g_autofree char *before = world_nodes(&world);

    chooser_look(choice, world.store, NULL);
    ck_assert_uint_eq(policy_choice_looks(choice), 1);
    g_autofree char *after = world_nodes(&world);
    ck_assert_str_eq(before, after);
    world_verify(&world);
    policy_choice_free(choice);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chooser");
    TCase *tests = tcase_create("chooser");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, it_rests_until_the_policy_is_auto);
    tcase_add_test(tests, a_look_leaves_the_store_alone);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
