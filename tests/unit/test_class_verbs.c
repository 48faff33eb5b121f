/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of work in what kube-scheduler asks for, after a restart, in an audit and for people. */
#include "audit/audit.h"
#include "dialect/classes/classes.h"
#include "explain/class_told.h"
#include "literals.h"
#include "store/seals/seals.h"
#include "suite.h"
#include "verbs/extender.h"
#include "wire/plan_mark.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"

static struct extender extender;
static struct store_options options;

/* Nodes "n1" and "n2" with two cards of 10 each. */
static struct store *new_store(void)
{
    struct store *store = store_new(&options);

    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(store, feed);
    for (int i = 1; i <= 2; i++)
        store_apply_node(store, &(struct node_view){.name = i == 1 ? "n1" : "n2",
                                                    .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
    return store;
}

static void end_lists(struct store *store)
{
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(store, feed);
}

static void setup(void)
{
    cJSON *value = cJSON_CreateString(CLASS_DEFAULTS);

    options = (struct store_options){.patience_ms = 60000};
    options.dialects.classes = classes_read(value, NULL);
    cJSON_Delete(value);
    extender = (struct extender){.store = new_store(), .bind_timeout_ms = 3000};
    end_lists(extender.store);
}

static void teardown(void)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(store_lock(extender.store), &error), "%s",
                  error ? error->message : "");
    store_unlock(extender.store);
    store_free(extender.store);
    classes_free(options.dialects.classes);
}

struct pod {
    const char *uid, *class_name, *mem, *node, *card, *said;
    int64_t priority;
};

static void apply_to(struct store *store, struct pod pod)
{
    const struct string_pair words[] = {{"ALIYUN_COM_GPU_MEM_IDX", pod.card},
                                        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                        {CLASS_KEY, pod.said}};

    store_apply_pod(store,
                    &(struct pod_view){.ns = "ml",
                                       .name = pod.uid,
                                       .uid = pod.uid,
                                       .created = "2026-01-01T00:00:00Z",
                                       .priority = pod.priority,
                                       .priority_class = pod.class_name,
                                       .node_name = pod.node,
                                       .phase = pod.node ? "Running" : "Pending",
                                       .started = pod.node != NULL,
                                       .annotations = {words, pod.said ? 3 : 2},
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, pod.mem})})});
}

static void apply(struct pod pod)
{
    apply_to(extender.store, pod);
}

#define POD(class_name, priority, mem, more)                                                       \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\",\"uid\":\"p\"" more "},"                   \
    "\"spec\":{\"priority\":" priority ",\"priorityClassName\":\"" class_name                      \
    "\",\"containers\":["                                                                          \
    "{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM "\":\"" mem "\"}}}]}}"
#define GROUP ",\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}"

static char *filter(const char *pod)
{
    g_autofree char *body = g_strconcat("{\"Pod\":", pod, ",\"NodeNames\":[\"n1\",\"n2\"]}", NULL);
    GString *reply = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    return g_string_free(reply, FALSE);
}

START_TEST(a_class_that_comes_in_groups_wants_one)
{
    g_autofree char *alone = filter(POD("training", "0", "10", ""));
    g_autofree char *member = filter(POD("training", "0", "10", GROUP));
    g_autofree char *other = filter(POD("inference", "0", "10", ""));

    ck_assert_msg(strstr(alone, reason_info(REASON_CLASS_GROUP)->text) &&
                      strstr(alone, "\"NodeNames\":[]"),
                  "%s", alone);
    ck_assert_msg(strstr(member, "\"NodeNames\":[\"n1\",\"n2\"]"), "%s", member);
    ck_assert_msg(strstr(other, "\"NodeNames\":[\"n1\",\"n2\"]"), "%s", other);
}
END_TEST

START_TEST(a_slice_is_not_put_beside_training)
{
    for (int i = 0; i < 2; i++) {
        apply((struct pod){i ? "t2" : "t1", "training", "4", i ? "n2" : "n1", "0"});
        apply((struct pod){i ? "p2" : "p1", NULL, "4", i ? "n2" : "n1", "1"});
    }
    g_autofree char *slice = filter(POD("", "0", "6", ""));
    ck_assert_msg(strstr(slice, "\"NodeNames\":[\"n1\",\"n2\"]"), "%s", slice);
    g_autofree char *large = filter(POD("", "0", "7", ""));
    ck_assert_msg(strstr(large, "\"NodeNames\":[]"), "%s", large);
    g_autofree char *training = filter(POD("training", "0", "1", GROUP));
    ck_assert_msg(strstr(training, reason_info(REASON_OTHER_CLASS)->text), "%s", training);
}
END_TEST

START_TEST(the_emptiest_card_is_not_room_if_training_is_on_it)
{
    for (int i = 0; i < 2; i++) {
        apply((struct pod){i ? "t2" : "t1", "training", "4", i ? "n2" : "n1", "0"});
        apply((struct pod){i ? "p2" : "p1", NULL, "9", i ? "n2" : "n1", "1"});
    }
    g_autofree char *fits = filter(POD("", "0", "1", ""));
    ck_assert_msg(strstr(fits, "\"NodeNames\":[\"n1\",\"n2\"]"), "%s", fits);
    g_autofree char *slice = filter(POD("", "0", "2", ""));
    ck_assert_msg(strstr(slice, "\"NodeNames\":[]") &&
                      strstr(slice, reason_info(REASON_OTHER_CLASS)->text),
                  "%s", slice);
}
END_TEST

/* Whom the answer would end on the node, "a b"; "-": it is no candidate. */
static char *preempt(const char *pod, const char *nodes)
{
    g_autofree char *body =
        g_strconcat("{\"Pod\":", pod, ",\"NodeNameToMetaVictims\":{", nodes, "}}", NULL);
    GString *reply = g_string_new(NULL);
    GError *error = NULL;

    store_delete_pod(extender.store, "p"); /* of whom nothing is known then */
    ck_assert_msg(extender_preempt(&extender, body, strlen(body), reply, &error), "%s",
                  error ? error->message : "");
    return g_string_free(reply, FALSE);
}

#define NAMES(node, uid) "\"" node "\":{\"Pods\":[{\"UID\":\"" uid "\"}],\"NumPDBViolations\":0}"

/* By priorities alone it would be the other one: "cheap" on n1, and n2 rather than n1. */
START_TEST(interactive_pods_end_first)
{
    apply((struct pod){"cheap", NULL, "10", "n1", "0", NULL, 1});
    apply((struct pod){"chat", "interactive", "10", "n1", "1", NULL, 5});
    apply((struct pod){"served", "inference", "10", "n2", "0", NULL, 0});
    apply((struct pod){"served-too", "inference", "10", "n2", "1", NULL, 0});
    g_autofree char *one = preempt(POD("", "9", "10", ""), NAMES("n1", "cheap"));
    ck_assert_msg(strstr(one, "chat") && !strstr(one, "cheap"), "%s", one);
    g_autofree char *both =
        preempt(POD("", "9", "10", ""), NAMES("n1", "cheap") "," NAMES("n2", "served"));
    ck_assert_msg(strstr(both, "chat") && !strstr(both, "served"), "%s", both);
    g_autofree char *other = preempt(POD("", "9", "10", ""), NAMES("n2", "served"));
    ck_assert_msg(strstr(other, "served"), "%s", other);
}
END_TEST

/* As a plan writes it on a node: 4 of its first card, for the successor of a pod of that class, or of none. */
static char *keep_for(const char *class_name)
{
    g_autoptr(plan_mark) mark = plan_mark_new();
    struct kept_room *room = kept_room_new();

    *room = (struct kept_room){.ns = g_strdup("ml"),
                               .controller = g_strdup("rs"),
                               .asks = g_strdup("1 x 4 units"),
                               .held = allocation_new("after t", "ml", "t", 1)};
    room->held->dialect = dialect_find("gpushare");
    room->held->shares[0] = (struct share){.card = 0, .memory = {4, AMOUNT_NODE_UNITS}};
    if (class_name)
        room->held->work_class = work_class_ref(classes_find(options.dialects.classes, class_name));
    mark->until_ns = (g_get_real_time() + 60 * G_USEC_PER_SEC) * 1000;
    g_ptr_array_add(mark->rooms, room);
    return plan_mark_format(mark);
}

/* The only other card of n1 is taken, and so is n2. */
START_TEST(what_a_plan_keeps_for_training_is_no_place_for_a_slice)
{
    static const char *const names[] = {NULL, "interactive", "training"};

    apply((struct pod){"p1", NULL, "10", "n1", "1"});
    apply((struct pod){"p2", NULL, "10", "n2", "0"});
    apply((struct pod){"p3", NULL, "10", "n2", "1"});
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *mark = keep_for(names[i]);
        store_apply_node(extender.store,
                         &(struct node_view){.name = "n1",
                                             .annotations = PAIRS({PLAN_MARK, mark}),
                                             .capacity = PAIRS({MEM, "20"}, {COUNT, "2"})});
        g_autofree char *large = filter(POD("", "0", "7", ""));
        ck_assert_msg(strstr(large, "\"NodeNames\":[]"), "%s: %s", mark, large);
        g_autofree char *slice = filter(POD("", "0", "2", ""));
        const bool takes = strstr(slice, "\"NodeNames\":[\"n1\"]") != NULL;
        ck_assert_msg(takes == (i < 2), "%s: %s", mark, slice);
        ck_assert_msg(takes || strstr(slice, reason_info(REASON_OTHER_CLASS)->text), "%s", slice);
    }
}
END_TEST

static const struct allocation *held_by(struct store *store, const char *uid)
{
    const struct allocation *held = ledger_get(store_lock(store), uid);

    store_unlock(store);
    ck_assert_ptr_nonnull(held);
    return held;
}

START_TEST(a_restart_knows_the_class_again)
{
    apply((struct pod){"t", "training", "4", "n1", "0"});
    apply((struct pod){"i", NULL, "4", "n1", "1", "interactive"});
    ck_assert_str_eq(held_by(extender.store, "t")->work_class->name, "training");
    /* Its author says something else by now, which is not his to say. */
    apply((struct pod){"i", NULL, "4", "n1", "1", "training"});
    ck_assert_str_eq(held_by(extender.store, "i")->work_class->name, "interactive");
    store_free(extender.store);
    extender.store = new_store();
    apply((struct pod){"t", "training", "4", "n1", "0"});
    apply((struct pod){"i", NULL, "4", "n1", "1", "training"});
    end_lists(extender.store);
    ck_assert_str_eq(held_by(extender.store, "t")->work_class->name, "training");
    ck_assert_ptr_null(held_by(extender.store, "i")->work_class);
    ck_assert_int_eq(ledger_node(store_lock(extender.store), "n1")->n_choosy, 1);
    store_unlock(extender.store);
}
END_TEST

/* What a Binding of now seals is what is believed later. */
START_TEST(a_seal_has_the_class)
{
    struct seals *seals = seals_new();
    char key[KEYRING_ID_SIZE];

    seals_set(seals, keyring_parse("key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718"
                                   "191a1b1c1d1e1f 1000\n",
                                   NULL));
    apply((struct pod){"i", NULL, "4", "n1", "1", "interactive"});
    g_autofree char *facts = seal_describe(held_by(extender.store, "i"));
    g_autofree char *seal = seals_make(seals, facts);
    const struct pod_view pod = {.ns = "ml",
                                 .name = "i",
                                 .uid = "i",
                                 .node_name = "n1",
                                 .annotations = PAIRS({SEAL_ANNOTATION, seal})};
    g_autoptr(allocation) sealed = seals_read(seals, &pod, options.dialects.classes, key);
    ck_assert_str_eq(sealed->work_class->name, "interactive");
    ck_assert(sealed->oversubscribes && !sealed->class_open);
    g_autoptr(allocation) gone =
        seals_read(seals, &pod, NULL, key); /* there are no classes any more */
    ck_assert_ptr_null(gone->work_class);
    seals_free(seals);
}
END_TEST

START_TEST(an_audit_finds_who_is_beside_training)
{
    const struct audit_options audit = {.stuck_ms = 60000};

    apply((struct pod){"t", "training", "4", "n1", "0"});
    apply((struct pod){"fine", "training", "4", "n2", "0"});
    apply((struct pod){"slice", NULL, "4", "n1", "0"}); /* by another scheduler */
    g_autoptr(audit_report) report = audit_look(extender.store, &audit);
    ck_assert_uint_eq(report->counts[AUDIT_COMPANY], 1);
    const struct audit_row *row = report->rows->pdata[0];
    ck_assert_str_eq(row->name, "t");
    ck_assert_str_eq(row->ledger, "class training, beside ml/slice of no class");
}
END_TEST

static void expect_told(const struct pod_view *pod, const struct allocation *held, const char *text)
{
    g_autoptr(GString) written = g_string_new(NULL);
    struct class_told *told = class_told_find(&options.dialects, pod, held);

    class_told_write(written, told);
    class_told_free(told);
    ck_assert_str_eq(written->str, text);
}

START_TEST(people_are_told_the_class_and_by_whose_word)
{
    struct pod_view pod = {.ns = "ml", .name = "t", .uid = "t", .priority_class = "training"};

    expect_told(&(struct pod_view){.ns = "ml"}, NULL, "");
    expect_told(&pod, NULL, "\nCLASS       training, by its PriorityClass 'training'\n");
    expect_told(&(struct pod_view){.ns = "ml", .labels = PAIRS({CLASS_KEY, "interactive"})}, NULL,
                "\nCLASS       interactive, by its label gpuledger.io/class\n");
    expect_told(
        &(struct pod_view){.ns = "ml", .annotations = PAIRS({CLASS_KEY, "none"})}, NULL,
        "\nCLASS       none\n            annotation 'gpuledger.io/class' is 'none', which is no "
        "class here: write one of interactive, inference, training\n");
    apply((struct pod){"t", NULL, "4", "n1", "0"});
    expect_told(
        &pod, held_by(extender.store, "t"),
        "\nCLASS       none\n            what it says now came after it was bound, and does "
        "not count: it would be of training\n");
    struct classes *classes = g_steal_pointer(&options.dialects.classes);
    expect_told(&(struct pod_view){.ns = "ml", .annotations = PAIRS({CLASS_KEY, "training"})}, NULL,
                "\nCLASS       none\n            it names a class, and there are none here: see "
                "--classes\n");
    options.dialects.classes = classes;
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("class verbs");
    TCase *tc = tcase_create("class verbs");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_class_that_comes_in_groups_wants_one);
    tcase_add_test(tc, a_slice_is_not_put_beside_training);
    tcase_add_test(tc, the_emptiest_card_is_not_room_if_training_is_on_it);
    tcase_add_test(tc, interactive_pods_end_first);
    tcase_add_test(tc, what_a_plan_keeps_for_training_is_no_place_for_a_slice);
    tcase_add_test(tc, a_restart_knows_the_class_again);
    tcase_add_test(tc, a_seal_has_the_class);
    tcase_add_test(tc, an_audit_finds_who_is_beside_training);
    tcase_add_test(tc, people_are_told_the_class_and_by_whose_word);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
