/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of work: the table, which pod is of which, and who shares cards with whom in every dialect. */
#include "dialect/classes/classes.h"
#include "desk.h"
#include "suite.h"

#define GPU "nvidia.com/gpu"
#define NAMES "interactive, inference, training"
#define NO_GROUPS "{\"interactive\":{},\"inference\":{},\"training\":{\"group\":\"optional\"}}"

static struct classes *read_text(const char *text, GError **error)
{
    cJSON *value = cJSON_Parse(text);
    ck_assert_msg(value, "%s", text);
    struct classes *classes = classes_read(value, error);
    cJSON_Delete(value);
    return classes;
}

static void use(const char *text)
{
    g_autoptr(GError) error = NULL;

    options.classes = read_text(text, &error);
    ck_assert_msg(options.classes, "%s", error ? error->message : "no classes");
}

static void end(void)
{
    teardown();
    classes_free(options.classes);
}

/* --- the table ---------------------------------------------------------------------------------- */

static const struct {
    const char *text, *error;
} faults[] = {
    {"[]", "write 'default', or classes with their settings, such as {training: {priority-classes: "
           "[batch]}}"},
    {"{\"Training\":{}}", "field 'Training': a class has a name of at most 63 lower-case letters, "
                          "digits and '-', and not 'unclassed' or 'default'"},
    {"{\"a\":3}", "field 'a': write the class's settings, or {} to have it as it is"},
    {"{\"a\":{\"share-with\":[]}}",
     "field 'a.share-with': there is no such setting; write some of priority-classes, namespaces, "
     "shares-with, victims, replicas, group, oversubscribe, isolation, policy"},
    {"{\"a\":{\"shares-with\":[\"b\"]}}",
     "field 'a.shares-with': there is no class 'b'; write classes "
     "of this table, 'unclassed' or '*'"},
    {"{\"a\":{\"shares-with\":\"a\"}}", "field 'a.shares-with': write a list of classes, such as "
                                        "['interactive', 'unclassed'], or ['*'], or []"},
    {"{\"a\":{\"victims\":\"never\"}}", "field 'a.victims': write first, normal or last"},
    {"{\"a\":{\"oversubscribe\":\"yes\"}}", "field 'a.oversubscribe': write true or false"},
    {"{\"a\":{\"policy\":\"best\"}}",
     "field 'a.policy': write a policy, such as 'binpack' or 'oc', or "
     "''"},
    {"{\"training\":{\"namespaces\":[\"*\"]}}",
     "field 'training.namespaces': '*' would let every tenant choose what 'shares-with' gives the "
     "class over others; list the namespaces, or leave that out"},
    {"{\"inference\":{\"namespaces\":[\"*\"]}}",
     "field 'inference.namespaces': '*' would let every tenant choose what 'victims' gives the "
     "class "
     "over others; list the namespaces, or leave that out"},
    {"{\"a\":{\"priority-classes\":[\"x\"]},\"b\":{\"priority-classes\":[\"x\"]}}",
     "field 'b.priority-classes': 'x' is there already, and a PriorityClass stands for one class"},
};

START_TEST(a_table_that_cannot_be_says_where_and_what_to_write)
{
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(read_text(faults[_i].text, &error));
    ck_assert_msg(error, "%s", faults[_i].text);
    ck_assert_str_eq(error->message, faults[_i].error);
}
END_TEST

START_TEST(a_table_is_written_down_as_it_is_read)
{
    static const char *const texts[] = {
        "\"default\"", "{\"training\":null,\"a\":{\"shares-with\":[\"a\",\"unclassed\"],"
                       "\"isolation\":\"kernel\",\"victims\":\"last\",\"policy\":\"spread\"}}"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        struct classes *classes = read_text(texts[i], NULL);
        g_autofree char *written = classes_format(classes);
        struct classes *again = read_text(written, NULL);
        g_autofree char *rewritten = classes_format(again);
        ck_assert_str_eq(written, rewritten);
        classes_free(classes);
        classes_free(again);
    }
    g_autofree char *nothing = classes_format(NULL);
    ck_assert_str_eq(nothing, "");
}
END_TEST

START_TEST(the_three_that_are_built_in)
{
    use("\"default\"");
    const struct work_class *interactive = classes_find(options.classes, "interactive");
    const struct work_class *inference = classes_find(options.classes, "inference");
    const struct work_class *training = classes_find(options.classes, "training");

    ck_assert(interactive->oversubscribes && interactive->victims == VICTIMS_FIRST);
    ck_assert(!inference->oversubscribes && inference->spread &&
              inference->victims == VICTIMS_LAST);
    ck_assert(training->group && training->shares_with == 0);
    ck_assert(work_class_mixes(interactive, inference) && work_class_mixes(NULL, inference));
    ck_assert(!work_class_mixes(training, training) && !work_class_mixes(training, NULL) &&
              !work_class_mixes(NULL, training) && !work_class_mixes(interactive, training));
}
END_TEST

START_TEST(both_sides_have_to_agree)
{
    use("{\"a\":{\"shares-with\":[\"b\"]},\"b\":{},\"c\":{\"shares-with\":[\"a\",\"unclassed\"]}}");
    const struct work_class *a = classes_find(options.classes, "a"),
                            *b = classes_find(options.classes, "b"),
                            *c = classes_find(options.classes, "c");

    ck_assert(work_class_mixes(a, b) && work_class_mixes(b, a) && work_class_mixes(b, b));
    ck_assert(!work_class_mixes(a, a) && !work_class_mixes(a, c) && !work_class_mixes(a, NULL));
    ck_assert(work_class_mixes(c, NULL) && work_class_mixes(b, NULL) && !work_class_mixes(b, c));
}
END_TEST

/* --- which class -------------------------------------------------------------------------------- */

static const struct {
    const char *ns, *priority, *annotation, *label;
    const char *class_name, *error; /* one of them */
} choices[] = {
    {.ns = "a"},
    {.ns = "a", .priority = "training", .class_name = "training"},
    {.ns = "a", .priority = "other"},
    {.ns = "a", .annotation = "interactive", .class_name = "interactive"},
    {.ns = "a", .label = "interactive", .class_name = "interactive"},
    {.ns = "lab", .annotation = "training", .class_name = "training"},
    {.ns = "a", .priority = "training", .annotation = "training", .class_name = "training"},
    {.ns = "a",
     .annotation = "training",
     .error =
         "annotation 'gpuledger.io/class' is 'training', which namespace 'a' may not choose: use "
         "the PriorityClass 'training', or let the administrator list it in "
         "classes.training.namespaces"},
    {.ns = "a",
     .label = "trainig",
     .error =
         "label 'gpuledger.io/class' is 'trainig', which is no class here: write one of " NAMES},
    {.ns = "a",
     .annotation = "",
     .error = "annotation 'gpuledger.io/class' is '', which is no class "
              "here: write one of " NAMES},
    {.ns = "lab",
     .annotation = "training",
     .label = "interactive",
     .error =
         "annotation 'gpuledger.io/class' is 'training', and the label is 'interactive': keep one"},
    {.ns = "lab",
     .priority = "inference",
     .annotation = "training",
     .error =
         "annotation 'gpuledger.io/class' is 'training', but the PriorityClass 'inference' makes "
         "it 'inference': leave one of them out"},
};

/* Views of what is not there. */
static struct string_pairs one_pair(struct string_pair *room, const char *value)
{
    *room = (struct string_pair){CLASS_KEY, value};
    return (struct string_pairs){room, value != NULL};
}

START_TEST(a_class_comes_from_who_may_give_it)
{
    struct string_pair rooms[2];
    const struct pod_view pod = {.ns = choices[_i].ns,
                                 .priority_class = choices[_i].priority,
                                 .annotations = one_pair(&rooms[0], choices[_i].annotation),
                                 .labels = one_pair(&rooms[1], choices[_i].label)};
    enum class_source source;
    g_autoptr(GError) error = NULL;
    g_autofree char *warning = NULL;

    use("{\"interactive\":{},\"inference\":{},\"training\":{\"namespaces\":[\"lab\"]}}");
    const struct work_class *chosen = classes_choose(options.classes, &pod, &source, &error);
    ck_assert_str_eq(error ? error->message : "", choices[_i].error ? choices[_i].error : "");
    ck_assert_str_eq(chosen ? chosen->name : "",
                     choices[_i].class_name ? choices[_i].class_name : "");
    /* Of who is there already it is said, and it counts. */
    struct work_class *bound = classes_of_bound(options.classes, &pod, &warning);
    ck_assert_int_eq(warning != NULL, choices[_i].error != NULL);
    ck_assert_msg(
        !bound == !(choices[_i].class_name || g_strcmp0(choices[_i].priority, "inference") == 0),
        "%s", warning ? warning : "");
    work_class_unref(bound);
}
END_TEST

START_TEST(without_classes_nothing_is_said_of_them)
{
    const struct pod_view pod = {.ns = "a", .annotations = PAIRS({CLASS_KEY, "anything"})};
    enum class_source source;

    ck_assert_ptr_null(classes_choose(NULL, &pod, &source, NULL));
    ck_assert_int_eq(source, CLASS_OF_NOTHING);
}
END_TEST

START_TEST(what_the_pod_says_itself_goes_first)
{
    static const struct string_pair words[] = {{"gpuledger.io/oversubscribe", "false"},
                                               {"gpuledger.io/policy", "spread"},
                                               {"gpuledger.io/isolation", "hardware"}};
    struct pod_view pod = {.ns = "a",
                           .name = "p",
                           .uid = "p",
                           .priority_class = "interactive",
                           CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"})})};

    use("{\"interactive\":{\"policy\":\"oc\",\"isolation\":\"hook\"}}");
    g_autoptr(request) plain = dialect_read_request(&pod, &options, NULL);
    ck_assert(plain->terms->oversubscribes);
    ck_assert_ptr_eq(plain->terms->policy, policy_find("oc"));
    ck_assert_int_eq(plain->terms->isolation_min, ISOLATION_HOOK);
    pod.annotations = (struct string_pairs){words, G_N_ELEMENTS(words)};
    g_autoptr(request) own = dialect_read_request(&pod, &options, NULL);
    ck_assert(!own->terms->oversubscribes);
    ck_assert_ptr_eq(own->terms->policy, policy_find("spread"));
    ck_assert_int_eq(own->terms->isolation_min, ISOLATION_HARDWARE);
    ck_assert_str_eq(own->terms->work_class->name, "interactive");
}
END_TEST

/* --- cards -------------------------------------------------------------------------------------- */

/* A node of each dialect that shares cards, with two of them, and a quarter of one. */
static const struct {
    const char *what;
    struct node_view node;
    struct string_pairs part;
    const char *refused; /* where the third kind of card has no room, all said */
} sites[] = {
    {"gpushare",
     {.name = "n", .capacity = PAIRS({"aliyun.com/gpu-mem", "32"}, {"aliyun.com/gpu-count", "2"})},
     PAIRS({"aliyun.com/gpu-mem", "4"}),
     NULL},
    {"elastic",
     {.name = "n",
      .capacity = PAIRS({"elasticgpu.io/gpu-core", "200"}, {"elasticgpu.io/gpu-memory", "20000"})},
     PAIRS({"elasticgpu.io/gpu-core", "25"}),
     NULL},
    {"nano",
     {.name = "n", .capacity = PAIRS({"nano-gpu/gpu-percent", "200"})},
     PAIRS({"nano-gpu/gpu-percent", "25"}),
     NULL},
    {"volcano",
     {.name = "n",
      .capacity = PAIRS({"volcano.sh/gpu-memory", "20000"}, {"volcano.sh/gpu-number", "2"})},
     PAIRS({"volcano.sh/gpu-memory", "2500"}),
     NULL},
    {"hami",
     {.name = "n",
      .annotations =
          PAIRS({"hami.io/node-nvidia-register",
                 "GPU-a,10,16384,100,NVIDIA-A10,0,true:GPU-b,10,16384,100,NVIDIA-A10,0,true:"}),
      .allocatable = PAIRS({GPU, "20"})},
     PAIRS({GPU, "1"}, {"nvidia.com/gpumem", "4096"}),
     NULL},
    {"time-slices", /* one of its cards, whichever: the node serves one kind at a time */
     {.name = "n",
      .labels = PAIRS({"nvidia.com/gpu.sharing-strategy", "time-slicing"},
                      {"nvidia.com/gpu.count", "2"}, {"nvidia.com/gpu.replicas", "4"}),
      .capacity = PAIRS({GPU, "8"})},
     PAIRS({GPU, "1"}),
     "pool"},
    {"instances",
     {.name = "n",
      .labels = PAIRS({"nvidia.com/mig.strategy", "mixed"}, {"nvidia.com/gpu.count", "2"}),
      .capacity = PAIRS({"nvidia.com/mig-1g.5gb", "7"}, {"nvidia.com/mig-3g.20gb", "2"})},
     PAIRS({"nvidia.com/mig-1g.5gb", "1"}),
     "pool"},
};

/* Whether the pod of that class is let in; it then stays. */
static bool enters(int site, const char *uid, const char *priority_class)
{
    const struct container_view container = {.name = "c", .limits = sites[site].part};
    const struct pod_view pod = {.ns = "a",
                                 .name = uid,
                                 .uid = uid,
                                 .priority_class = priority_class,
                                 .containers = &container,
                                 .n_containers = 1};
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);
    const struct admission_query query = {.request = request,
                                          .policy = policies,
                                          .options = &options,
                                          .now_ns = now_ns,
                                          .patience_ns = 0};
    struct placement placement;
    enum reason reason;

    ck_assert_msg(request, "%s: %s", sites[site].what, error ? error->message : "asks for nothing");
    const bool yes =
        dialect_admit(ledger_node(book, "n"), &query, &placement, &reason) == ADMISSION_YES;
    ck_assert_msg(yes || reason == REASON_OTHER_CLASS, "%s: %s", sites[site].what,
                  reason_info(reason)->code);
    ck_assert_int_eq(yes, dialect_admits(ledger_node(book, "n"), &query) == ADMISSION_YES);
    if (!yes)
        return false;
    struct allocation *allocation = allocation_new(uid, "a", uid, placement.n_shares);
    allocation_note_request(allocation, placement.request);
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof(struct share));
    ck_assert_ptr_nonnull(ledger_reserve(book, "n", allocation, &reason));
    return true;
}

START_TEST(nobody_comes_beside_training_and_it_comes_beside_nobody)
{
    const bool pool = sites[_i].refused;

    use(NO_GROUPS);
    desk_node(&sites[_i].node);
    ck_assert(enters(_i, "t1", "training"));
    ck_assert_int_eq(enters(_i, "p1", NULL), !pool);          /* on the other card */
    ck_assert(!enters(_i, "t2", "training"));                 /* that has somebody now */
    ck_assert_int_eq(enters(_i, "i1", "interactive"), !pool); /* beside p1 */
    ledger_drop(book, "t1");
    ck_assert(enters(_i, "i2", "inference"));
    ledger_drop(book, "i1");
    ledger_drop(book, "i2");
    ledger_drop(book, "p1");
    ck_assert(enters(_i, "p2", NULL) && !(pool && enters(_i, "t3", "training")));
    ck_assert_int_eq(enters(_i, "t4", "training"), !pool); /* on the empty one */
    ck_assert(!enters(_i, "t5", "training"));
}
END_TEST

START_TEST(what_is_known_of_a_node_says_who_is_choosy)
{
    use(NO_GROUPS);
    desk_node(&sites[0].node);
    ck_assert(enters(0, "p1", NULL));
    ck_assert_int_eq(ledger_node(book, "n")->n_choosy, 0);
    ck_assert(enters(0, "t1", "training"));
    ck_assert_int_eq(ledger_node(book, "n")->n_choosy, 1);
    desk_node(&sites[0].node); /* counted anew */
    ck_assert_int_eq(ledger_node(book, "n")->n_choosy, 1);
    ledger_drop(book, "t1");
    ck_assert_int_eq(ledger_node(book, "n")->n_choosy, 0);
}
END_TEST

/* Whatever is free: nobody is to end for it either. */
START_TEST(a_class_of_groups_takes_members_only)
{
    static const struct {
        const char *group;
        struct string_pair label, annotation;
        bool member;
    } claims[] = {
        {NULL, {"a", "b"}, {"a", "b"}, false},
        {"g", {"a", "b"}, {"a", "b"}, true},
        {"", {"scheduling.x-k8s.io/pod-group", "g"}, {"a", "b"}, true},
        {NULL, {"scheduling.x-k8s.io/pod-group", ""}, {"a", "b"}, false},
        {NULL, {"pod-group.scheduling.sigs.k8s.io/name", "g"}, {"a", "b"}, true},
        {NULL, {"a", "b"}, {"gang.scheduling.koordinator.sh/name", "g"}, true},
    };

    use("\"default\"");
    desk_node(&sites[0].node);
    for (size_t i = 0; i < G_N_ELEMENTS(claims); i++) {
        const struct pod_view pod = {
            .ns = "a",
            .name = "p",
            .uid = "p",
            .priority_class = "training",
            .scheduling_group = claims[i].group,
            .labels = {&claims[i].label, 1},
            .annotations = {&claims[i].annotation, 1},
            CONTAINERS({.name = "c", .limits = PAIRS({"aliyun.com/gpu-mem", "4"})})};
        g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
        const struct admission_query query = {
            .request = request, .policy = policies, .options = &options, .now_ns = now_ns};
        struct placement placement;
        enum reason reason;
        dialect_admit(ledger_node(book, "n"), &query, &placement, &reason);
        ck_assert_int_eq(reason, claims[i].member ? REASON_NONE : REASON_CLASS_GROUP);
    }
}
END_TEST

START_TEST(replicas_keep_apart_where_they_can)
{
    use(NO_GROUPS);
    desk_node(&(struct node_view){.name = "n",
                                  .capacity = PAIRS({"elasticgpu.io/gpu-core", "300"},
                                                    {"elasticgpu.io/gpu-memory", "30000"})});
    int32_t cards[4];
    for (int i = 0; i < 4; i++) {
        g_autofree char *uid = g_strdup_printf("r%d", i);
        struct pod_view pod = {
            .ns = "a",
            .name = uid,
            .uid = uid,
            .priority_class = "inference",
            .labels = PAIRS({"pod-template-hash", "abc"}),
            CONTAINERS({.name = "c", .limits = PAIRS({"elasticgpu.io/gpu-core", "20"})})};
        g_autoptr(request) request = dialect_read_request(&pod, &options, NULL);
        struct placement placement;
        enum reason reason;
        ck_assert_int_eq(placement_find(ledger_node(book, "n"), request, policies, NULL,
                                        CARD_UNKNOWN, &placement),
                         REASON_NONE);
        struct allocation *allocation = allocation_new(uid, "a", uid, 1);
        allocation_note_request(allocation, placement.request);
        allocation->shares[0] = placement.shares[0];
        cards[i] = placement.shares[0].card;
        ledger_reserve(book, "n", allocation, &reason);
    }
    ck_assert(cards[0] != cards[1] && cards[1] != cards[2] && cards[0] != cards[2]);
    ck_assert_int_eq(cards[3], 0);
}
END_TEST

/* An edit does not change what the pod is, and what another replica has booked it as is known again. */
START_TEST(a_pod_stays_what_it_came_as)
{
    struct pod_view pod = {
        .ns = "a",
        .name = "p",
        .uid = "p",
        .node_name = "n",
        .annotations = PAIRS({CLASS_KEY, "interactive"}),
        CONTAINERS({.name = "c", .limits = PAIRS({"elasticgpu.io/gpu-core", "20"})})};

    use("{\"interactive\":{},\"b\":{\"namespaces\":[\"*\"]}}");
    g_autoptr(allocation) first = dialect_read_allocation(&pod, &options, NULL);
    pod.annotations = PAIRS({CLASS_KEY, "b"});
    g_autoptr(allocation) later =
        dialect_continue(first, dialect_read_allocation(&pod, &options, NULL), NULL);
    ck_assert_str_eq(later->work_class->name, "interactive");
    ck_assert(later->oversubscribes);
    first->class_open = true; /* a booking of before there were classes */
    work_class_unref(first->work_class);
    first->work_class = NULL;
    g_autoptr(allocation) opened =
        dialect_continue(first, dialect_read_allocation(&pod, &options, NULL), NULL);
    ck_assert_str_eq(opened->work_class->name, "b");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("classes");
    TCase *tc = tcase_create("classes");

    tcase_add_checked_fixture(tc, setup, end);
    tcase_add_loop_test(tc, a_table_that_cannot_be_says_where_and_what_to_write, 0,
                        (int)G_N_ELEMENTS(faults));
    tcase_add_test(tc, a_table_is_written_down_as_it_is_read);
    tcase_add_test(tc, the_three_that_are_built_in);
    tcase_add_test(tc, both_sides_have_to_agree);
    tcase_add_loop_test(tc, a_class_comes_from_who_may_give_it, 0, (int)G_N_ELEMENTS(choices));
    tcase_add_test(tc, without_classes_nothing_is_said_of_them);
    tcase_add_test(tc, what_the_pod_says_itself_goes_first);
    tcase_add_loop_test(tc, nobody_comes_beside_training_and_it_comes_beside_nobody, 0,
                        (int)G_N_ELEMENTS(sites));
    tcase_add_test(tc, what_is_known_of_a_node_says_who_is_choosy);
    tcase_add_test(tc, a_class_of_groups_takes_members_only);
    tcase_add_test(tc, replicas_keep_apart_where_they_can);
    tcase_add_test(tc, a_pod_stays_what_it_came_as);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
