/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/bind/node_lock.h"
#include "wire/switch_mark.h"

#include "suite.h"
#include "world.h"

#include <string.h>

#define LOCK "hami.io/mutex.lock"
#define PHASE "hami.io/bind-phase"
#define PROMISED "hami.io/vgpu-devices-to-allocate"
#define LONG_AGO "2020-01-02T03:04:05Z"
#define STATUS "{\"allocatable\":{\"nvidia.com/gpu\":\"20\"}}"
#define CONTAINERS                                                                                 \
    "[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\","                        \
    "\"nvidia.com/gpumem\":\"3000\"}}}]"

static struct world world;

static void setup(void)
{
    world_init(&world);
    fake_cluster_put_other_node(world.cluster, "n1", STATUS);
    fake_cluster_annotate_node(world.cluster, "n1", "hami.io/node-nvidia-register",
                               "GPU-a,10,10000,100,T4,0,true,0,hami-core:");
    world_sync(&world);
    world_catch_up(&world);
}

static void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

static void add_pod(const char *name)
{
    fake_cluster_add_pod(world.cluster,
                         &(struct fake_pod){.name = name, .containers = CONTAINERS});
    world_catch_up(&world);
}

static char *locked_by(void)
{
    g_autofree char *value = fake_cluster_node_annotation(world.cluster, "n1", LOCK);
    char *comma = value ? strchr(value, ',') : NULL;
    return g_strdup(comma ? comma + 1 : value);
}

static void expect_lock(const char *holder)
{
    g_autofree char *found = locked_by();
    ck_assert_pstr_eq(found, holder);
}

/* As the plugin does: it serves whom the lock names, and takes the lock away. */
static void serve(const char *pod)
{
    fake_cluster_annotate(world.cluster, pod, PROMISED, ";");
    fake_cluster_annotate(world.cluster, pod, PHASE, "success");
    fake_cluster_annotate_node(world.cluster, "n1", LOCK, NULL);
    world_catch_up(&world);
}

START_TEST(a_bind_takes_the_lock_and_the_plugin_frees_it)
{
    add_pod("a");
    world_expect_bind(&world, "a", "n1", "");
    expect_lock("ml,a");
    g_autofree char *promised = fake_cluster_annotation(world.cluster, "a", PROMISED);
    g_autofree char *phase = fake_cluster_annotation(world.cluster, "a", PHASE);
    ck_assert_str_eq(promised, "GPU-a,NVIDIA,3000,0:;");
    ck_assert_str_eq(phase, "allocating");
    serve("a");
    expect_lock(NULL);
    add_pod("b");
    world_expect_bind(&world, "b", "n1", "");
    expect_lock("ml,b");
}
END_TEST

static void check_unlocked(void *data)
{
    expect_lock("ml,a");
    ck_assert_uint_eq(fake_cluster_n_bound(world.cluster), 0);
}

START_TEST(the_lock_is_taken_before_the_pod_is_bound)
{
    add_pod("a");
    fake_cluster_script_bind(world.cluster, &(struct fake_step){.hook = check_unlocked});
    world_expect_bind(&world, "a", "n1", "");
}
END_TEST

START_TEST(a_refused_binding_gives_it_back)
{
    add_pod("a");
    fake_cluster_script_bind(world.cluster,
                             &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    world_expect_bind(&world, "a", "n1", "fake: refused");
    expect_lock(NULL);
    ck_assert_int_eq(world_state(&world, "uid-a"), -1);
    world_expect_bind(&world, "a", "n1", "");
    expect_lock("ml,a");
}
END_TEST

static gint term_ended; /* atomic */

static uint64_t term(struct leadership *base)
{
    return 1;
}

static int64_t term_until_ms(struct leadership *base, uint64_t number)
{
    return g_atomic_int_get(&term_ended) ? 0 : INT64_MAX;
}

static bool publish(struct leadership *base, uint64_t number, int64_t deadline_ms, GError **error)
{
    return true;
}

static const struct leadership_ops term_ops = {term, term_until_ms, publish};
static struct leadership leadership = {&term_ops};

static void end_term(void *data)
{
    expect_lock("ml,a");
    g_atomic_int_set(&term_ended, 1);
}

/* Of each Binding that is known not to have been carried out. */
static const struct {
    struct fake_step bind;
    bool loses_lease; /* once the lock is taken */
    const char *error;
} unbound[] = {
    {{FAKE_FAIL, OUTCOME_CONFLICT}, false, "fake: conflict"},
    {{FAKE_FAIL, OUTCOME_NOT_FOUND}, false, "fake: not found"},
    {{FAKE_ANSWER},
     true,
     "this replica of gpuledger stands by, another one holds the Lease; try again"},
};

START_TEST(a_binding_that_was_not_carried_out_gives_it_back)
{
    struct fake_step bind = unbound[_i].bind;

    add_pod("a");
    world.extender.leadership = &leadership;
    bind.hook = check_unlocked;
    if (unbound[_i].loses_lease)
        fake_cluster_script_lock(world.cluster, &(struct fake_step){.then = end_term});
    fake_cluster_script_bind(world.cluster, &bind);
    world_expect_bind(&world, "a", "n1", unbound[_i].error);
    expect_lock(NULL);
    ck_assert_int_eq(world_state(&world, "uid-a"), -1);
    ck_assert_uint_eq(fake_cluster_n_bound(world.cluster), 0);
}
END_TEST

START_TEST(an_unknown_binding_keeps_it)
{
    add_pod("a");
    world.extender.bind_timeout_ms = 900;
    for (int i = 0; i < 20; i++) {
        fake_cluster_script_bind(world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
        fake_cluster_script_get(world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_UNKNOWN});
    }
    g_autofree char *text = world_bind(&world, "a", "n1");
    ck_assert_ptr_nonnull(strstr(text, "it is not known"));
    expect_lock("ml,a");
    ck_assert_int_eq(world_state(&world, "uid-a"), ALLOCATION_UNKNOWN);
}
END_TEST

START_TEST(a_node_that_changes_meanwhile_is_looked_at_again)
{
    add_pod("a");
    fake_cluster_script_lock(world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_CONFLICT});
    fake_cluster_script_lock(world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_CONFLICT});
    world_expect_bind(&world, "a", "n1", "");
    expect_lock("ml,a");
}
END_TEST

START_TEST(an_answer_that_is_lost_does_no_harm)
{
    add_pod("a");
    fake_cluster_script_lock(world.cluster, &(struct fake_step){FAKE_LOSE_REPLY});
    world_expect_bind(&world, "a", "n1", "");
    expect_lock("ml,a");
}
END_TEST

START_TEST(what_may_not_be_locked_is_not_bound)
{
    add_pod("a");
    fake_cluster_script_lock(world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED});
    world_expect_bind(&world, "a", "n1", "the lock '" LOCK "' of the node: fake: refused");
    ck_assert_uint_eq(fake_cluster_n_sent(world.cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-a"), -1);
}
END_TEST

/* --- another's lock --------------------------------------------------------------------------- */

/* A pod of the node as another scheduler has left it. */
static void add_other(const char *phase)
{
    add_pod("other");
    fake_cluster_annotate(world.cluster, "other", "hami.io/vgpu-devices-allocated",
                          "GPU-a,NVIDIA,3000,0:;");
    fake_cluster_annotate(world.cluster, "other", PHASE, phase);
    fake_cluster_bind_bare(world.cluster, "other", "n1");
}

static void lock_at(const char *time, const char *holder)
{
    g_autofree char *value = g_strconcat(time, holder, NULL);
    fake_cluster_annotate_node(world.cluster, "n1", LOCK, value);
}

static void lock_in(int64_t in_s, const char *holder)
{
    g_autofree char *time = switch_time_format(g_get_real_time() / G_USEC_PER_SEC + in_s);

    lock_at(time, holder);
}

/* `time` NULL: now. */
static void lock_by(const char *time, const char *holder)
{
    if (time)
        lock_at(time, holder);
    else
        lock_in(0, holder);
}

/* Whose holder the plugin will never serve is taken over. The ledger does not know of it yet: nothing
 * of this has come through the watch. */
START_TEST(a_lock_that_was_left_behind_is_taken_over)
{
    add_pod("a");
    switch (_i) {
    case 0:
        lock_by(NULL, ",ml,gone");
        break;
    case 1:
        add_other("success");
        lock_by(NULL, ",ml,other");
        break;
    case 2:
        add_other("failed");
        lock_by(NULL, ",ml,other");
        break;
    case 3:
        add_other("allocating");
        fake_cluster_set_phase(world.cluster, "other", "Failed");
        lock_by(NULL, ",ml,other");
        break;
    case 4: /* never bound */
        add_pod("other");
        lock_by(LONG_AGO, ",ml,other");
        break;
    case 5: /* of a plugin before v2.4 */
        lock_by(LONG_AGO, "");
        break;
    case 6:
        lock_by("nonsense", "");
        break;
    case 7: /* an earlier pod of this name */
        lock_by(NULL, ",ml,a");
        break;
    case 8: /* by a clock that is wrong */
        add_pod("other");
        lock_in(NODE_LOCK_AHEAD_S + 60, ",ml,other");
        break;
    case 9:
        lock_in(NODE_LOCK_AHEAD_S + 60, "");
        break;
    case 10: /* it is served elsewhere */
        add_pod("other");
        fake_cluster_annotate(world.cluster, "other", "hami.io/vgpu-devices-allocated",
                              "GPU-a,NVIDIA,3000,0:;");
        fake_cluster_annotate(world.cluster, "other", PHASE, "allocating");
        fake_cluster_bind_bare(world.cluster, "other", "n2");
        lock_by(NULL, ",ml,other");
        break;
    }
    world_expect_bind(&world, "a", "n1", "");
    expect_lock("ml,a");
}
END_TEST

START_TEST(a_lock_that_is_in_use_is_respected)
{
    add_pod("a");
    world.extender.bind_timeout_ms = 1200;
    switch (_i) {
    case 0: /* to be bound any moment */
        add_pod("other");
        lock_by(NULL, ",ml,other");
        break;
    case 1:
        lock_by(NULL, "");
        break;
    case 2: /* bound long ago, and still not served */
        add_other("allocating");
        lock_by(LONG_AGO, ",ml,other");
        break;
    case 3: /* by a clock that is a little ahead */
        add_pod("other");
        lock_in(NODE_LOCK_AHEAD_S - 60, ",ml,other");
        break;
    case 4: /* whoever is bound is waited for, whatever the time */
        add_other("allocating");
        lock_in(NODE_LOCK_AHEAD_S + 60, ",ml,other");
        break;
    }
    g_autofree char *text = world_bind(&world, "a", "n1");
    ck_assert_msg(strstr(text, NODE_LOCK_HELD) != NULL, "'%s'", text);
    ck_assert_uint_eq(fake_cluster_n_sent(world.cluster), 0);
    ck_assert_int_eq(world_state(&world, "uid-a"), -1);
    g_autofree char *holder = locked_by();
    ck_assert_str_ne(holder, "ml,a");
}
END_TEST

static void lock_for_namesake(void *data)
{
    lock_by(NULL, ",elsewhere,a");
}

/* It was taken over meanwhile, for a pod of the same name in another namespace. */
START_TEST(what_another_has_taken_is_not_given_back)
{
    add_pod("a");
    fake_cluster_script_bind(
        world.cluster, &(struct fake_step){FAKE_FAIL, OUTCOME_REFUSED, .hook = lock_for_namesake});
    world_expect_bind(&world, "a", "n1", "fake: refused");
    expect_lock("elsewhere,a");
}
END_TEST

static gpointer serve_other(gpointer data)
{
    g_usleep(100000); /* whether bind waits already or not, the end is the same */
    serve("other");
    return NULL;
}

START_TEST(bind_waits_for_the_lock)
{
    add_pod("a");
    world.extender.bind_timeout_ms = 60000;
    add_other("allocating");
    lock_by(NULL, ",ml,other");
    GThread *thread = g_thread_new("plugin", serve_other, NULL);
    world_expect_bind(&world, "a", "n1", "");
    g_thread_join(thread);
    expect_lock("ml,a");
}
END_TEST

START_TEST(other_dialects_need_none)
{
    world_populate(&world);
    world_add_pending(&world, "g", 4);
    world_expect_bind(&world, "g", "duo", "");
    g_autofree char *value = fake_cluster_node_annotation(world.cluster, "duo", LOCK);
    ck_assert_ptr_null(value);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("node_lock");
    TCase *cases = tcase_create("bind");

    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, a_bind_takes_the_lock_and_the_plugin_frees_it);
    tcase_add_test(cases, the_lock_is_taken_before_the_pod_is_bound);
    tcase_add_test(cases, a_refused_binding_gives_it_back);
    tcase_add_loop_test(cases, a_binding_that_was_not_carried_out_gives_it_back, 0,
                        G_N_ELEMENTS(unbound));
    tcase_add_test(cases, an_unknown_binding_keeps_it);
    tcase_add_test(cases, a_node_that_changes_meanwhile_is_looked_at_again);
    tcase_add_test(cases, an_answer_that_is_lost_does_no_harm);
    tcase_add_test(cases, what_may_not_be_locked_is_not_bound);
    tcase_add_loop_test(cases, a_lock_that_was_left_behind_is_taken_over, 0, 11);
    tcase_add_loop_test(cases, a_lock_that_is_in_use_is_respected, 0, 5);
    tcase_add_test(cases, what_another_has_taken_is_not_given_back);
    tcase_add_test(cases, bind_waits_for_the_lock);
    tcase_add_test(cases, other_dialects_need_none);
    suite_add_tcase(suite, cases);

    return suite_run(suite);
}
