/* SPDX-License-Identifier: Apache-2.0 */
/* Places for MIG instances in which the plugin has failed to make one. */
#include "rejecting_extender.h"
#include "suite.h"

#include "core/ledger.h"
#include "gate/node_backoff/failed_places.h"
#include "store/feasibility.h"
#include "part_text.h"

#define GPU "nvidia.com/gpu"
#define GPUMEM "nvidia.com/gpumem"
#define NOT_MADE                                                                                   \
    "Allocate failed due to rpc error: code = Unknown desc = CreateGpuInstanceWithPlacement, "     \
    "which is unexpected"
/* An A30 of three places for its smallest instances, and one card that is not cut. */
#define CARDS                                                                                      \
    "[{\"id\":\"GPU-a\",\"index\":0,\"count\":4,\"devmem\":24576,\"devcore\":100,\"mode\":"        \
    "\"mig\","                                                                                     \
    "\"health\":true,\"migProfiles\":[{\"name\":\"1g.6gb\",\"memoryMB\":6000,\"core\":25,"         \
    "\"sliceCount\":1,\"placements\":[{\"start\":0,\"size\":1},{\"start\":1,\"size\":1},"          \
    "{\"start\":2,\"size\":1}]},{\"name\":\"4g.24gb\",\"memoryMB\":24000,\"core\":100,"            \
    "\"sliceCount\":4,\"placements\":[{\"start\":0,\"size\":4}]}]}]"

static void put_cards(void)
{
    store_apply_node(
        extender.store,
        &(struct node_view){.name = "m",
                            .annotations = PAIRS({"hami.io/node-nvidia-register", CARDS}),
                            .capacity = PAIRS({GPU, "4"}),
                            .allocatable = PAIRS({GPU, "4"})});
}

static void setup_cards(void)
{
    setup();
    put_cards();
}

static void tell(const char *uid, const char *ns, int start, const char *phase, const char *message)
{
    g_autofree char *instance = g_strdup_printf(
        "[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"GPU-a\",\"profile\":\"1g.6gb\","
        "\"placement\":{\"start\":%d,\"size\":1}}]",
        start);
    const struct string_pairs written =
        PAIRS({"hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,6000,25:;"},
              {"hami.io/vgpu-mig-allocations", instance}, {"hami.io/vgpu-node", "m"},
              {"hami.io/bind-phase", "success"});

    store_apply_pod(extender.store,
                    &(struct pod_view){
                        .ns = ns,
                        .name = uid,
                        .uid = uid,
                        .node_name = phase ? "m" : NULL,
                        .phase = phase ? phase : "Pending",
                        .started = phase && !g_str_equal(phase, "Pending"),
                        .status_reason = message ? ADMISSION : NULL,
                        .status_message = message,
                        .annotations = {written.items, phase ? written.n : 0},
                        CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"}, {GPUMEM, "6000"})})});
}

/* A pod was bound to that place, and has failed there. */
static void fail_at(const char *uid, const char *ns, int start, const char *message)
{
    tell(uid, ns, start, NULL, NULL);
    tell(uid, ns, start, "Pending", NULL);
    tell(uid, ns, start, "Failed", message);
}

/* Where a pod of the namespace would get its instance; -1: nowhere. */
static int place_of(const char *ns, const char *mib, enum reason *ret_reason)
{
    struct feasibility question;
    struct placement placement;
    struct moment now;
    const struct pod_view pod = {
        .ns = ns,
        .name = "x",
        .uid = "x",
        CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"}, {GPUMEM, mib})})};

    g_autoptr(request) request =
        dialect_read_request(&pod, &store_options(extender.store)->dialects, NULL);
    struct ledger *ledger = store_decide_recorded(extender.store, &now);
    feasibility_init(&question, extender.store,
                     &(struct feasibility_about){GATE_BY_FILTER, &pod, request, &now, 0});
    *ret_reason = feasibility_ask(&question, ledger_node(ledger, "m"), &placement);
    feasibility_clear(&question);
    store_unlock(extender.store);
    return *ret_reason == REASON_NONE ? placement.shares[0].place.start : -1;
}

START_TEST(the_next_pod_goes_to_another_place)
{
    enum reason reason;
    const int first = place_of("ml", "6000", &reason);

    ck_assert_int_ge(first, 0);
    fail_at("a", "ml", first, NOT_MADE);
    const int second = place_of("ml", "6000", &reason);
    ck_assert_int_ge(second, 0);
    ck_assert_int_ne(second, first);
    /* Whoever may write a status closes nothing to others. */
    ck_assert_int_eq(place_of("web", "6000", &reason), first);
    /* No instance that needs the place fits. */
    ck_assert_int_eq(place_of("ml", "24000", &reason), -1);
    ck_assert_int_eq(reason, gate_reason_find("rejecting"));
    ck_assert_int_eq(place_of("web", "24000", &reason), 0);
}
END_TEST

START_TEST(it_ends_in_time)
{
    enum reason reason;
    const int first = place_of("ml", "6000", &reason);

    fail_at("a", "ml", first, NOT_MADE);
    ck_assert_int_ne(place_of("ml", "6000", &reason), first);
    pass(FAILED_PLACE_MS - 1);
    ck_assert_int_ne(place_of("ml", "6000", &reason), first);
    pass(1);
    ck_assert_int_eq(place_of("ml", "6000", &reason), first);
}
END_TEST

START_TEST(it_ends_with_a_pod_that_runs_there)
{
    enum reason reason;
    const int first = place_of("ml", "6000", &reason);

    fail_at("a", "ml", first, NOT_MADE);
    tell("b", "web", first, NULL, NULL);
    tell("b", "web", first, "Pending", NULL);
    tell("b", "web", first, "Running", NULL);
    store_delete_pod(extender.store, "b");
    ck_assert_int_eq(place_of("ml", "6000", &reason), first);
}
END_TEST

START_TEST(people_end_it)
{
    enum reason reason;
    const int first = place_of("ml", "6000", &reason);

    fail_at("a", "ml", first, NOT_MADE);
    ck_assert_int_ne(place_of("ml", "6000", &reason), first);
    ck_assert(store_order(extender.store, "resume", "m"));
    ck_assert_int_eq(place_of("ml", "6000", &reason), first);
}
END_TEST

/* It says nothing of the place that the plugin was away, or that kubelet did not ask it. */
START_TEST(only_the_plugins_own_word_counts)
{
    static const char *const messages[] = {PLUGIN_IS_GONE, NO_DEVICES};
    enum reason reason;
    const int first = place_of("ml", "6000", &reason);

    fail_at("a", "ml", first, messages[_i]);
    ck_assert_int_eq(place_of("ml", "6000", &reason), first);
}
END_TEST

/* A copy, and a record that is read again, decide alike; what they hold is bounded. */
START_TEST(copies_and_records_know_it)
{
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    enum reason reason;
    struct json_writer writer;
    const int first = place_of("ml", "6000", &reason);

    fail_at("a", "ml", first, NOT_MADE);
    const int second = place_of("ml", "6000", &reason);
    ck_assert_int_ne(second, first);
    json_writer_init(&writer, text);
    write_part(&writer, extender.store, &part_node_backoff);
    struct store *copy = store_copy(extender.store);
    store_free(extender.store);
    extender.store = copy;
    store_set_moment(copy, &moment);
    ck_assert_int_eq(place_of("ml", "6000", &reason), second);
    ck_assert(store_learn_part(copy, &part_node_backoff, arena,
                               json_parse(arena, "{\"sites\":[]}", 12, NULL), NULL));
    ck_assert_int_eq(place_of("ml", "6000", &reason), first);
    ck_assert(store_learn_part(copy, &part_node_backoff, arena,
                               json_parse(arena, text->str, text->len, NULL), NULL));
    json_writer_init(&writer, again);
    write_part(&writer, copy, &part_node_backoff);
    ck_assert_str_eq(again->str, text->str);
    ck_assert_int_eq(place_of("ml", "6000", &reason), second);
}
END_TEST

START_TEST(only_so_many_are_remembered)
{
    g_autoptr(GPtrArray) places = failed_places_new();
    struct allocation *pod = allocation_new("a", "ml", "a", 1);

    for (int i = 0; i < FAILED_PLACES_MAX + 5; i++) {
        pod->shares[0] = (struct share){.card = i, .place = {.size = 1}};
        ck_assert(failed_places_note(places, pod));
        ck_assert(failed_places_note(places, pod)); /* once more is no other */
    }
    ck_assert_uint_eq(places->len, FAILED_PLACES_MAX);
    ck_assert(!failed_places_concern(places, "ml", 4));
    ck_assert(failed_places_concern(places, "ml", 5));
    pod->shares[0] = (struct share){.card = 3};
    ck_assert(!failed_places_note(places, pod));
    allocation_free(pod);
}
END_TEST

START_TEST(what_is_no_place_is_refused)
{
    static const char *const texts[] = {
        "[{}]",
        "[{\"namespace\":\"ml\",\"card\":0,\"start\":0,\"size\":0}]",
        "[{\"namespace\":\"ml\",\"card\":-1,\"start\":0,\"size\":1}]",
        "[{\"namespace\":\"ml\",\"card\":0,\"start\":256,\"size\":1}]",
        "[{\"namespace\":\"ml\",\"card\":0,\"start\":0,\"size\":1,\"until\":-1}]",
        "[7]",
    };
    g_autoptr(GPtrArray) places = failed_places_new();
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;

    ck_assert(!failed_places_decode(
        places, arena, json_parse(arena, texts[_i], strlen(texts[_i]), NULL), 1000, &error));
    ck_assert_ptr_nonnull(error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failed_places");
    TCase *tcase = tcase_create("failed_places");

    tcase_add_checked_fixture(tcase, setup_cards, teardown);
    tcase_add_test(tcase, the_next_pod_goes_to_another_place);
    tcase_add_test(tcase, it_ends_in_time);
    tcase_add_test(tcase, it_ends_with_a_pod_that_runs_there);
    tcase_add_test(tcase, people_end_it);
    tcase_add_loop_test(tcase, only_the_plugins_own_word_counts, 0, 2);
    tcase_add_test(tcase, copies_and_records_know_it);
    tcase_add_test(tcase, only_so_many_are_remembered);
    tcase_add_loop_test(tcase, what_is_no_place_is_refused, 0, 6);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
