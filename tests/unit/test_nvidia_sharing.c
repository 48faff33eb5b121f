/* SPDX-License-Identifier: Apache-2.0 */
/* Cards of which there are several replicas, by time-slicing or MPS. */
#include "core/ledger.h"
#include "nvidia_words.h"
#include "policy/room.h"
#include "suite.h"

START_TEST(replicas_of_one_card)
{
    NODE("n", GPUS "=2", .labels = "nvidia.com/gpu.product=Tesla-T4-SHARED "
                                   "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2");
    ck_assert_ptr_null(warning);
    ck_assert_str_eq(pool_of("n", GPUS)->model, "Tesla-T4");
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/isolation=hook"),
                     REASON_ISOLATION);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-models-not=SHARED"),
                     REASON_TERMS);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-models-not=A10"),
                     REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-models=T4-SHARED"),
                     REASON_NONE);
    NODE("whole", GPUS "=2", .labels = "nvidia.com/gpu.product=Tesla-T4 nvidia.com/gpu.count=2");
    ck_assert_reason(ASK("whole", GPUS "=1", .annotations = "gpuledger.io/gpu-models-not=SHARED"),
                     REASON_NONE);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 2);
}
END_TEST

START_TEST(forty_renamed_replicas)
{
    NODE("n", GPUS "=0 nvidia.com/gpu.shared=40",
         .labels = T4 "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=5");
    ck_assert_ptr_null(warning);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_TERMS);
    ck_assert_int_eq(fill("n", "nvidia.com/gpu.shared=1", REASON_INSUFFICIENT_DEVICES), 40);
}
END_TEST

START_TEST(more_than_one_replica_at_a_time)
{
    static const struct node_words words = {
        GPUS "=4", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2"};

    set_node("n", &words);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_NONE);
    options.nvidia_fail_requests_greater_than_one = true;
    set_node("n", &words);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_DEVICES_AT_ONCE);
    ck_assert(!reason_info(REASON_DEVICES_AT_ONCE)->resolvable);
    ck_assert_reason(ASK("n", GPUS "=1", .init = GPUS "=2"), REASON_DEVICES_AT_ONCE);
    ck_assert_reason(ASK("n", GPUS "=1", GPUS "=1"), REASON_NONE);
    NODE("whole", GPUS "=4", .labels = T4 "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=1");
    ck_assert_reason(ASK("whole", GPUS "=2"), REASON_NONE);
}
END_TEST

/* Since v0.20.0 the plugin may be configured so (NVIDIA/k8s-device-plugin:api/config/v1/config.go). */
START_TEST(more_than_one_mps_device_where_it_is_allowed)
{
    for (int allowed = 0; allowed < 2; allowed++) {
        options.nvidia_mps_several = allowed;
        NODE("n", GPUS "=4",
             .labels = "nvidia.com/gpu.sharing-strategy=mps " T4
                       "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4");
        ck_assert_reason(ASK("n", GPUS "=2"), allowed ? REASON_NONE : REASON_DEVICES_AT_ONCE);
        ck_assert_reason(ASK("n", GPUS "=5"), allowed ? REASON_CARD_COUNT : REASON_DEVICES_AT_ONCE);
    }
}
END_TEST

#define WANTS "gpuledger.io/gpu-memory="
#define SLICED(n, cards, replicas)                                                                 \
    NODE("n", n, .labels = T4 "nvidia.com/gpu.count=" cards " nvidia.com/gpu.replicas=" replicas)

START_TEST(what_pods_want_of_a_card_is_kept_within_it)
{
    static const struct pod_words ten = {GPUS "=1", .annotations = WANTS "10Gi"};

    SLICED(GPUS "=2", "1", "2");
    put("n", "first", true, &ten);
    ck_assert_reason(ask("n", &ten), REASON_NONE); /* unless it is asked for */
    options.nvidia_memory_guard = true;
    ck_assert_reason(ask("n", &ten), REASON_SHARED_MEMORY);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "5Gi"), REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_SHARED_MEMORY); /* counts with 7.5 */
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "16Gi"), REASON_CARD_TOO_SMALL);
    ledger_drop(book, "first");
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 2);
}
END_TEST

/* kubelet may give those who want most to one card, and no more than its replicas. */
START_TEST(the_most_demanding_pods_may_meet)
{
    options.nvidia_memory_guard = true;
    SLICED(GPUS "=6", "2", "3");
    put("n", "a", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "7Gi"});
    put("n", "b", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    put("n", "c", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "5Gi"), REASON_SHARED_MEMORY);
    put("n", "d", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    put("n", "e", true, &(struct pod_words){GPUS "=1", .annotations = WANTS "4Gi"});
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "4Gi"), REASON_NONE);
    /* Two replicas are one pod's, and it wants what it says. */
    ledger_drop(book, "e");
    ck_assert_reason(ASK("n", GPUS "=2", .annotations = WANTS "4Gi"), REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_SHARED_MEMORY);
}
END_TEST

/* kubelet has forgotten the names of replicas that a change of configuration took away, not their
 * pods: these stay on their cards, beside as many as the cards now have. */
START_TEST(replicas_that_were_taken_away_are_still_used)
{
    static const struct node_words
        thrice = {GPUS "=6", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=3 "
                                       "nvidia.com/gpu.memory=81920"},
        twice = {GPUS "=4", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2 "
                                      "nvidia.com/gpu.memory=81920"};
    static const char *const names[] = {"a", "b", "c"};

    options.nvidia_memory_guard = true;
    set_node("n", &thrice);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        PUT("n", names[i], GPUS "=1", .annotations = WANTS "26Gi");
    set_node("n", &twice);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "52Gi"), REASON_SHARED_MEMORY);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "28Gi"), REASON_NONE);
    ledger_drop(book, "c"); /* whatever replica it had, another pod may have its name by now */
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "52Gi"), REASON_SHARED_MEMORY);
    ledger_drop(book, "b");
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "54Gi"), REASON_NONE);
    /* Who came with two replicas has a name that is in use, and not two of them meet three. */
    ledger_drop(book, "a");
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        PUT("n", names[i], GPUS "=1", .annotations = WANTS "26Gi");
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = WANTS "52Gi"), REASON_NONE);
}
END_TEST

/* A pool that has another name has the same cards. */
START_TEST(renamed_replicas_are_still_used)
{
    static const struct node_words
        plain = {GPUS "=4", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2"},
        renamed = {GPUS "=0 nvidia.com/gpu.shared=4",
                   .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2"},
        whole = {GPUS "=2", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=1"};

    options.nvidia_memory_guard = true;
    set_node("n", &plain);
    PUT("n", "a", GPUS "=1", .annotations = WANTS "5Gi");
    PUT("n", "b", GPUS "=1", .annotations = WANTS "5Gi");
    set_node("n", &renamed);
    ck_assert_reason(ASK("n", "nvidia.com/gpu.shared=1", .annotations = WANTS "6Gi"),
                     REASON_SHARED_MEMORY);
    ck_assert_reason(ASK("n", "nvidia.com/gpu.shared=1", .annotations = WANTS "5Gi"), REASON_NONE);
    ledger_drop(book, "a");
    ledger_drop(book, "b");
    PUT("n", "c", "nvidia.com/gpu.shared=1", .annotations = WANTS "5Gi");
    set_node("n", &whole);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "c");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
}
END_TEST

/* Whoever has a card alone, or a part that is kept apart, is not asked. */
START_TEST(only_time_slicing_is_guarded)
{
    options.nvidia_memory_guard = true;
    NODE("whole", GPUS "=2", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.memory=15360");
    NODE("mps", GPUS "=2", .labels = "nvidia.com/gpu.sharing-strategy=mps nvidia.com/gpu.count=1 "
                                     "nvidia.com/gpu.replicas=2 nvidia.com/gpu.memory=15360");
    NODE("dark", GPUS "=2", .labels = "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"whole", "mps", "dark"};
        put(names[i], names[i], true,
            &(struct pod_words){GPUS "=1", .annotations = WANTS "12Gi"});
        ck_assert_reason(ASK(names[i], GPUS "=1", .annotations = WANTS "12Gi"), REASON_NONE);
    }
}
END_TEST

#define MPS "nvidia.com/gpu.sharing-strategy=mps "

START_TEST(mps_divides_the_card)
{
    NODE("n", GPUS "=10", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=10 "
                                        "nvidia.com/gpu.memory=16384");
    ck_assert_int_eq(pool_of("n", GPUS)->memory, 16384 * MIB / 10);
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_DEVICES_AT_ONCE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=1Gi"),
                     REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=2Gi"),
                     REASON_CARD_TOO_SMALL);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/isolation=hook"),
                     REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/isolation=kernel"),
                     REASON_ISOLATION);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 10);
}
END_TEST

START_TEST(mps_serves_48_clients)
{
    NODE("n", GPUS "=64", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=64");
    ck_assert_ptr_nonnull(strstr(warning, "48"));
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_WITHHELD), 48);
}
END_TEST

/* One replica more than MPS serves makes two cards one, for all may be on the same; it is said. */
START_TEST(what_mps_does_not_serve_is_named)
{
    NODE("even", GPUS "=96", .labels = MPS "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=48");
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(fill("even", GPUS "=1", REASON_INSUFFICIENT_DEVICES), 96);
    NODE("odd", GPUS "=98", .labels = MPS "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=49");
    ck_assert_ptr_nonnull(strstr(warning, "48"));
    ck_assert_int_eq(fill("odd", GPUS "=1", REASON_WITHHELD), 48);
    ck_assert_int_eq(pool_of("odd", GPUS)->reported, 98);
}
END_TEST

START_TEST(a_label_that_is_no_number_is_said)
{
    static const char *const labels[] = {"nvidia.com/gpu.count=eight", "nvidia.com/gpu.replicas=2x"};

    NODE("n", GPUS "=8", .labels = labels[_i]);
    ck_assert_ptr_nonnull(warning);
    ck_assert_msg(strstr(warning, "is no number") && strstr(warning, "'n'"), "%s", warning);
}
END_TEST

START_TEST(cards_for_one_process_take_one_pod)
{
    static const char exclusive[] = "gpuledger.io/exclusive-cards=1";

    NODE("n", GPUS "=4", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2",
         .annotations = exclusive);
    ck_assert_ptr_nonnull(strstr(warning, "one holder"));
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_WITHHELD), 1);
    NODE("whole", GPUS "=2", .annotations = exclusive);
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(pool_of("whole", GPUS)->capacity, 2);
}
END_TEST

/* kubelet chooses the card, so all of them may be on one. */
START_TEST(a_node_of_shared_cards_gives_no_more_than_one_card_may_have)
{
    static const char labels[] = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=4";

    NODE("n", GPUS "=8", .labels = labels, .annotations = "gpuledger.io/slots=3");
    ck_assert_ptr_null(warning);
    ck_assert_int_eq(fill("n", GPUS "=1", REASON_WITHHELD), 3);
    NODE("all", GPUS "=8", .labels = labels, .annotations = "gpuledger.io/slots=any");
    ck_assert_int_eq(pool_of("all", GPUS)->capacity, 8);
    NODE("both", GPUS "=8", .labels = labels,
         .annotations = "gpuledger.io/slots=3 gpuledger.io/exclusive-cards=0");
    ck_assert_int_eq(pool_of("both", GPUS)->capacity, 1);
    NODE("none", GPUS "=8", .labels = labels, .annotations = "gpuledger.io/slots=three");
    ck_assert_ptr_nonnull(strstr(warning, "'three' is neither"));
    ck_assert_int_eq(pool_of("none", GPUS)->capacity, 0);
    NODE("whole", GPUS "=2", .annotations = "gpuledger.io/slots=1");
    ck_assert_int_eq(pool_of("whole", GPUS)->capacity, 2);
}
END_TEST

/* --- labels that contradict ----------------------------------------------------------------- */

START_TEST(capacity_outdoes_labels)
{
    NODE("n", GPUS "=7", .labels = "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 7);
    ck_assert_ptr_nonnull(strstr(warning, "promise 8 of nvidia.com/gpu, it has 7"));
    NODE("n", GPUS "=8", .labels = "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 8);
    ck_assert(pool_of("n", GPUS)->shared);
    ck_assert_ptr_nonnull(warning);
    NODE("n", GPUS "=8", .labels = "nvidia.com/gpu.count=x nvidia.com/gpu.replicas=-1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 8);
    ck_assert(!pool_of("n", GPUS)->shared);
}
END_TEST

/* Labels are up to a minute older than what the plugin reports, or of one model among several, or count
 * cards that are cut: the node gives its devices, and promises nothing of them. */
START_TEST(labels_that_contradict_promise_nothing)
{
    static const struct {
        const char *capacity, *labels;
        int32_t replicas;
    } cases[] = {
        {GPUS "=4", "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2", 4},
        {GPUS "=4", "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=1", 4}, /* several models */
        {GPUS "=5", "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2", 3},
        {GPUS "=2", MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4", 4},
        {GPUS "=4", MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2", 4},
        {GPUS "=8 nvidia.com/mig-1g.5gb=28",
         "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=2 "
         "nvidia.com/device-plugin.config=twice",
         2},
    };
    g_autofree char *labels = g_strconcat(T4, cases[_i].labels, NULL);
    char table[] = "twice=2";

    for (int known = 0; known < 2; known++) {
        options.nvidia_config_replicas = known ? table : NULL;
        NODE("n", cases[_i].capacity, .labels = labels);
        ck_assert_int_eq(pool_of("n", GPUS)->replicas, cases[_i].replicas);
        ck_assert_int_eq(pool_of("n", GPUS)->isolation, ISOLATION_NONE);
        ck_assert_int_ge(pool_of("n", GPUS)->capacity, 2);
        ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
        ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory-min=1Gi"),
                         REASON_TERMS);
        ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-models=T4"),
                         REASON_TERMS);
        ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-models-not=A100"),
                         REASON_TERMS);
    }
}
END_TEST

START_TEST(the_guard_counts_the_larger_of_label_and_devices)
{
    static const struct pod_words seven = {GPUS "=1", .annotations = WANTS "7Gi"};

    options.nvidia_memory_guard = true;
    SLICED(GPUS "=4", "1", "2");
    put("n", "a", true, &seven);
    put("n", "b", true, &seven);
    ck_assert_reason(ask("n", &seven), REASON_SHARED_MEMORY);
}
END_TEST

/* A sick device is one of the plugin's all the same. */
START_TEST(a_sick_device_contradicts_nothing)
{
    NODE("n", GPUS "=8", GPUS "=7", T4 "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, 7);
    ck_assert_int_eq(pool_of("n", GPUS)->isolation, ISOLATION_HARDWARE);
    ck_assert_str_eq(pool_of("n", GPUS)->model, "Tesla-T4");
}
END_TEST

/* Without labels a device may be a replica; the administrator's label says that it is not. */
START_TEST(devices_without_labels_are_not_kept_apart)
{
    static const char hardware[] = "gpuledger.io/isolation=hardware";

    NODE("n", GPUS "=8");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = hardware), REASON_ISOLATION);
    NODE("said", GPUS "=8", .labels = "nvidia.com/gpu.replicas=1");
    ck_assert_reason(ASK("said", GPUS "=1", .annotations = hardware), REASON_NONE);
}
END_TEST

/* Marks of before labels were missed, and of after they were there. */
START_TEST(labels_that_come_or_go_close_no_node)
{
    static const char *const marks[] = {"0", "1", "4", "4:time-slicing"};

    for (size_t i = 0; i < G_N_ELEMENTS(marks); i++) {
        g_autofree char *mark = g_strconcat("gpuledger.io/gpu-replicas=", marks[i], NULL);
        const struct pod_words old = {GPUS "=1", .annotations = mark};
        NODE("n", GPUS "=4");
        put("n", "old", false, &old);
        ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    }
    PUT("n", "new", GPUS "=1");
    ledger_drop(book, "old");
    for (int replicas = 1; replicas <= 4; replicas *= 2) {
        g_autofree char *labels = g_strdup_printf(
            "nvidia.com/gpu.count=%d nvidia.com/gpu.replicas=%d", 4 / replicas, replicas);
        NODE("n", GPUS "=4", .labels = labels);
        ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    }
    NODE("n", GPUS "=4");
    put("n", "mps", false,
        &(struct pod_words){GPUS "=1", .annotations = "gpuledger.io/gpu-replicas=4:mps"});
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
}
END_TEST

/* What a pod is given while labels are late or early is what devices are, and so it is marked. */
START_TEST(a_mark_says_what_devices_are)
{
    static const struct {
        const char *capacity, *labels, *later, *later_labels;
        enum reason later_reason;
    } cases[] = {
        {GPUS "=4", MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2", GPUS "=4",
         MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4", REASON_NONE},
        {GPUS "=8", MPS "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=4", GPUS "=32",
         MPS "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=4", REASON_OTHER_USE},
        {GPUS "=8 nvidia.com/mig-1g.5gb=28", "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=2",
         GPUS "=16", "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=2", REASON_NONE},
    };

    NODE("n", cases[_i].capacity, .labels = cases[_i].labels);
    PUT("n", "a", GPUS "=1");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    NODE("n", cases[_i].later, .labels = cases[_i].later_labels);
    ck_assert_reason(ASK("n", GPUS "=1"), cases[_i].later_reason);
}
END_TEST

/* Of several models under one name the labels may be of another one at each pass. */
START_TEST(labels_of_changing_models_close_no_node)
{
    for (int count = 1; count < 6; count++) {
        g_autofree char *labels =
            g_strdup_printf("nvidia.com/gpu.count=%d nvidia.com/gpu.replicas=1", count);
        g_autofree char *name = g_strdup_printf("p%d", count);
        NODE("n", GPUS "=6", .labels = labels);
        ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
        PUT("n", name, GPUS "=1");
    }
}
END_TEST

/* Of whom a kind is known, the node has been changed since. */
START_TEST(labels_that_are_late_hide_no_change)
{
    NODE("n", GPUS "=8", .labels = "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=1");
    PUT("n", "whole", GPUS "=1");
    NODE("n", GPUS "=32", .labels = "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=1");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "whole");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
}
END_TEST

/* Policies keep such devices for nobody who will not be given them. */
START_TEST(no_room_is_seen_for_pods_that_mind)
{
    struct terms terms = {.memory_min = GIB};
    char device[] = GPUS;
    struct shape shape = {.device = device, .cards = 1, .terms = &terms};

    NODE("n", GPUS "=4", .labels = T4 "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(room_wanted_device(pool_of("n", GPUS), &shape).memory, PART_WHOLE);
    NODE("n", GPUS "=4", .labels = T4 "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=1");
    ck_assert_int_eq(room_wanted_device(pool_of("n", GPUS), &shape).memory, 0);
    shape.terms = NULL;
    ck_assert_int_eq(room_wanted_device(pool_of("n", GPUS), &shape).memory, PART_WHOLE);
}
END_TEST

START_TEST(tenants_may_meet_on_devices_without_labels)
{
    static const struct pod_words words = {GPUS "=1"};
    struct pod_view view = pod_view("b", &words);

    options.tenant_isolation = ISOLATION_HARDWARE;
    NODE("n", GPUS "=4");
    put("n", "a", true, &words);
    ck_assert_reason(ask("n", &words), REASON_NONE);
    view.ns = "other";
    struct allocation *bound = dialect_read_allocation(&view, &options, &warning);
    bound->state = ALLOCATION_CONFIRMED;
    ledger_put(book, "n", bound);
    ck_assert_reason(ask("n", &words), REASON_OTHER_TENANT);
    NODE("n", GPUS "=4", .labels = "nvidia.com/gpu.replicas=1");
    ck_assert_reason(ask("n", &words), REASON_NONE);
}
END_TEST

#define CONFIG(name) "nvidia.com/device-plugin.config=" name " "

/* Between the flip of the label and the end of the change, in any order in which plugin and labels
 * follow, the node gives nothing. */
static const struct flip {
    const char *configuration, *capacity, *replicas;
    int32_t usable;
} flips[] = {
    {"whole", "8", "1", 8},    {"shared", "8", "1", 0},     {"shared", "32", "1", 0},
    {"shared", "8", "4", 0},   {"shared", "32", "4", 32},   {"whole", "32", "4", 0},
    {"whole", "8", "4", 0},    {"whole", "32", "1", 0},     {"whole", "7", "1", 7},
    {"shared", "28", "4", 28}, {"unheard-of", "8", "1", 8}, {"unheard-of", "32", "1", 32},
};

START_TEST(a_changing_configuration_gives_nothing)
{
    const struct flip *flip = &flips[_i];
    g_autofree char *capacity = g_strconcat(GPUS "=", flip->capacity, NULL);
    g_autofree char *labels = g_strdup_printf(
        "nvidia.com/device-plugin.config=%s nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=%s",
        flip->configuration, flip->replicas);
    char table[] = "whole=1, shared = 4 ";

    options.nvidia_config_replicas = table;
    NODE("n", capacity, .labels = labels);
    ck_assert_int_eq(pool_of("n", GPUS)->capacity, flip->usable);
    ck_assert(flip->usable > 0 || strstr(warning, flip->configuration));
    ck_assert_reason(ASK("n", GPUS "=1"), flip->usable ? REASON_NONE : REASON_CHANGING);
}
END_TEST

START_TEST(pods_of_other_replicas_must_end_first)
{
    static const struct node_words
        whole = {GPUS "=2", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=1"},
        twice = {GPUS "=4", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=2"},
        thrice = {GPUS "=6", .labels = "nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=3"};

    set_node("n", &whole);
    PUT("n", "a", GPUS "=1");
    put("n", "unmarked", false, &(struct pod_words){GPUS "=1"});
    set_node("n", &twice);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "a");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    PUT("n", "b", GPUS "=1");
    set_node("n", &thrice); /* they take turns whatever their number */
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    ledger_drop(book, "unmarked");
    set_node("n", &whole);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "b");
    ck_assert_reason(ASK("n", GPUS "=2"), REASON_NONE);
}
END_TEST

START_TEST(mps_parts_of_other_sizes_must_end_first)
{
    NODE("n", GPUS "=2", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2");
    PUT("n", "a", GPUS "=1");
    NODE("n", GPUS "=4", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
}
END_TEST

/* Time-slicing and MPS name their devices alike, so that kubelet sees no change. */
START_TEST(another_kind_of_sharing_must_end_first)
{
    static const struct node_words
        sliced = {GPUS "=4", .labels = "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4"},
        mps = {GPUS "=4", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=4"},
        mps_twice = {GPUS "=2", .labels = MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2"};

    set_node("n", &sliced);
    PUT("n", "a", GPUS "=1");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    set_node("n", &mps);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "a");
    PUT("n", "b", GPUS "=1");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
    set_node("n", &sliced);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
    ledger_drop(book, "b");
    set_node("n", &mps_twice);
    PUT("n", "c", GPUS "=1");
    set_node("n", &sliced); /* only time-slices may be made more or fewer */
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_OTHER_USE);
}
END_TEST

/* Marks of before kinds were written: the number is all that they say. */
START_TEST(a_mark_without_a_kind_says_a_number)
{
    static const struct {
        const char *mark, *labels;
        enum reason expected;
    } cases[] = {
        {"4", MPS "nvidia.com/gpu.replicas=4", REASON_NONE},
        {"4", "nvidia.com/gpu.replicas=4", REASON_NONE},
        {"2", MPS "nvidia.com/gpu.replicas=4", REASON_OTHER_USE},
        {"2", "nvidia.com/gpu.replicas=4", REASON_OTHER_USE},
        {"2:time-slicing", "nvidia.com/gpu.replicas=4", REASON_NONE},
        {"4:time-slicing", MPS "nvidia.com/gpu.replicas=4", REASON_OTHER_USE},
        {"2:else", MPS "nvidia.com/gpu.replicas=4", REASON_NONE}, /* as one without a mark */
        {"1", "nvidia.com/gpu.replicas=4", REASON_OTHER_USE},
    };
    g_autofree char *mark = g_strconcat("gpuledger.io/gpu-replicas=", cases[_i].mark, NULL);
    g_autofree char *labels = g_strconcat("nvidia.com/gpu.count=1 ", cases[_i].labels, NULL);

    NODE("n", GPUS "=4", .labels = labels);
    put("n", "old", false, &(struct pod_words){GPUS "=1", .annotations = mark});
    ck_assert_reason(ASK("n", GPUS "=1"), cases[_i].expected);
}
END_TEST

/* A pod may say that it wants more than there is; it has its card's at most, and so many others as may
 * meet there still go in. */
START_TEST(who_wants_all_there_is_has_one_card)
{
    options.nvidia_memory_guard = true;
    NODE("n", GPUS "=8", .labels = T4 "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=2");
    put("n", "greedy", false, &(struct pod_words){GPUS "=1", .annotations = "gpuledger.io/gpu-memory=1000Gi"});
    const struct allocation *held = ledger_get(book, "greedy");
    ck_assert_int_ge(held->terms->memory_wanted, 15 * GIB);
    ck_assert_reason(ASK("n", GPUS "=1", .annotations = "gpuledger.io/gpu-memory=16Gi"),
                     REASON_CARD_TOO_SMALL);
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_SHARED_MEMORY); /* the two may meet */
    ledger_drop(book, "greedy");
    ck_assert_reason(ASK("n", GPUS "=1"), REASON_NONE);
}
END_TEST

/* What came with the pod is not what it was given: a bind writes over it, if only that nobody knows. */
START_TEST(a_bind_always_says_the_replicas)
{
    static const struct {
        const char *capacity, *labels, *written;
    } cases[] = {{GPUS "=8", "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=2", "2:time-slicing"},
                 {GPUS "=8", MPS "nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=2", "2:mps"},
                 {GPUS "=8", "nvidia.com/gpu.count=8 nvidia.com/gpu.replicas=1", "1"},
                 {GPUS "=4", MPS "nvidia.com/gpu.count=1 nvidia.com/gpu.replicas=2", "4"},
                 {GPUS "=8", NULL, "0"},
                 {GPUS "=7", "nvidia.com/gpu.sharing-strategy=time-slicing", "0"}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct pod_words words = {GPUS "=1", .annotations = "gpuledger.io/gpu-replicas=5"};
        struct pod_view view = pod_view("p", &words);
        g_auto(annotations) written = {0};
        g_autoptr(allocation) planned = nvidia->read_allocation(&view, &options, &warning);
        NODE("n", cases[i].capacity, .labels = cases[i].labels);
        allocation_witness(planned, ledger_node(book, "n"));
        nvidia->write_annotations(planned, ledger_node(book, "n"), &written);
        ck_assert_uint_eq(written.n, 1);
        ck_assert_str_eq(written.items[0].key, "gpuledger.io/gpu-replicas");
        ck_assert_str_eq(written.items[0].value, cases[i].written);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nvidia_sharing");
    TCase *tcase = tcase_create("nvidia");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, replicas_of_one_card);
    tcase_add_test(tcase, forty_renamed_replicas);
    tcase_add_test(tcase, more_than_one_replica_at_a_time);
    tcase_add_test(tcase, more_than_one_mps_device_where_it_is_allowed);
    tcase_add_test(tcase, what_pods_want_of_a_card_is_kept_within_it);
    tcase_add_test(tcase, the_most_demanding_pods_may_meet);
    tcase_add_test(tcase, replicas_that_were_taken_away_are_still_used);
    tcase_add_test(tcase, renamed_replicas_are_still_used);
    tcase_add_test(tcase, only_time_slicing_is_guarded);
    tcase_add_test(tcase, mps_divides_the_card);
    tcase_add_test(tcase, mps_serves_48_clients);
    tcase_add_test(tcase, what_mps_does_not_serve_is_named);
    tcase_add_loop_test(tcase, a_label_that_is_no_number_is_said, 0, 2);
    tcase_add_test(tcase, cards_for_one_process_take_one_pod);
    tcase_add_test(tcase, a_node_of_shared_cards_gives_no_more_than_one_card_may_have);
    tcase_add_test(tcase, capacity_outdoes_labels);
    tcase_add_loop_test(tcase, a_changing_configuration_gives_nothing, 0, G_N_ELEMENTS(flips));
    tcase_add_test(tcase, pods_of_other_replicas_must_end_first);
    tcase_add_test(tcase, mps_parts_of_other_sizes_must_end_first);
    tcase_add_loop_test(tcase, labels_that_contradict_promise_nothing, 0, 6);
    tcase_add_test(tcase, the_guard_counts_the_larger_of_label_and_devices);
    tcase_add_test(tcase, a_sick_device_contradicts_nothing);
    tcase_add_test(tcase, devices_without_labels_are_not_kept_apart);
    tcase_add_test(tcase, labels_that_come_or_go_close_no_node);
    tcase_add_loop_test(tcase, a_mark_says_what_devices_are, 0, 3);
    tcase_add_test(tcase, labels_of_changing_models_close_no_node);
    tcase_add_test(tcase, labels_that_are_late_hide_no_change);
    tcase_add_test(tcase, no_room_is_seen_for_pods_that_mind);
    tcase_add_test(tcase, tenants_may_meet_on_devices_without_labels);
    tcase_add_test(tcase, another_kind_of_sharing_must_end_first);
    tcase_add_loop_test(tcase, a_mark_without_a_kind_says_a_number, 0, 8);
    tcase_add_test(tcase, who_wants_all_there_is_has_one_card);
    tcase_add_test(tcase, a_bind_always_says_the_replicas);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
