/* SPDX-License-Identifier: Apache-2.0 */
/* What pods ask of HAMi and its relatives, and what is written for them. */
#include "hami_desk.h"
#include "suite.h"

/* --- requests -------------------------------------------------------------------------------- */

struct request_case {
    struct container_view container;
    int32_t count; /* 0: none; -1: an error */
    struct amount memory;
    int32_t core;
};

static const struct request_case request_cases[] = {
    {WITH({GPU, "1"}, {MEM, "3000"}), 1, {3000 * MIB, AMOUNT_BYTES}},
    {WITH({GPU, "2"}, {MEM, "3k"}, {CORES, "30"}), 2, {3000 * MIB, AMOUNT_BYTES}, 300},
    {WITH({GPU, "1"}), 1, {1000, AMOUNT_THOUSANDTHS}},
    {WITH({GPU, "1"}, {PERCENT, "25"}), 1, {250, AMOUNT_THOUSANDTHS}},
    {WITH({GPU, "1"}, {PERCENT, "0"}), 1, {1000, AMOUNT_THOUSANDTHS}},
    {WITH({GPU, "1"}, {MEM, "10"}, {PERCENT, "25"}), 1, {10 * MIB, AMOUNT_BYTES}},
    {WITH({GPU, "1"}, {CORES, "100"}), 1, {1000, AMOUNT_THOUSANDTHS}, 1000},
    {{.name = "c", .requests = PAIRS({GPU, "1"}, {MEM, "7"})}, 1, {7 * MIB, AMOUNT_BYTES}},
    {PLAIN},
    {WITH({GPU, "0"})},
    {WITH({MEM, "0"})},
    {WITH({MEM, "3000"}), -1},
    {WITH({GPU, "1"}, {MEM, "8Gi"}), -1},
    {WITH({GPU, "1"}, {MEM, "1500m"}), -1},
    {WITH({GPU, "1"}, {PERCENT, "101"}), -1},
    {WITH({GPU, "1"}, {CORES, "101"}), -1},
    {WITH({GPU, "-1"}), -1},
};

START_TEST(requests_are_read)
{
    static const char *const names[] = {"hami", "4paradigm"};
    const struct request_case *c = &request_cases[_i];
    struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u", .containers = &c->container, .n_containers = 1};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(request) request = row(names[i])->read_request(&view, &options, &error);
        ck_assert_int_eq(error != NULL, c->count < 0);
        ck_assert_int_eq(request != NULL, c->count > 0);
        if (error)
            ck_assert_ptr_nonnull(strstr(error->message, "container 'c'"));
        if (!request)
            continue;
        ck_assert_int_eq(request->asks[0].count, c->count);
        ck_assert_int_eq(request->asks[0].memory.value, c->memory.value);
        ck_assert_int_eq(request->asks[0].memory.kind, c->memory.kind);
        ck_assert_int_eq(request->asks[0].core, c->core);
        ck_assert_int_eq(request->asks[0].exclusive, c->core == 1000);
    }
}
END_TEST

START_TEST(defaults_are_the_administrators)
{
    const struct dialect_options own = {.hami_default_memory = 5000, .hami_default_cores = 20};
    struct pod_view view = {.ns = "ml", .name = "a", .uid = "u",
                            CONTAINERS(WITH({GPU, "1"}), WITH({GPU, "1"}, {PERCENT, "50"}),
                                       WITH({GPU, "1"}, {CORES, "0"}))};
    g_autoptr(request) request = row("hami")->read_request(&view, &own, NULL);

    ck_assert_uint_eq(request->n_asks, 3);
    ck_assert_int_eq(request->asks[0].memory.value, 5000 * MIB);
    ck_assert_int_eq(request->asks[0].core, 200);
    ck_assert_int_eq(request->asks[1].memory.kind, AMOUNT_THOUSANDTHS);
    ck_assert_int_eq(request->asks[2].core, 0);
}
END_TEST

START_TEST(conditions_are_read)
{
    struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u",
        .annotations = PAIRS({"nvidia.com/use-gputype", "A30, a100,"},
                             {"nvidia.com/nouse-gputype", "T4"},
                             {"nvidia.com/use-gpuuuid", "GPU-a,GPU-b"},
                             {"nvidia.com/nouse-gpuuuid", ""},
                             {"nvidia.com/vgpu-mode", "hami-core"},
                             {"nvidia.com/numa-bind", "True"},
                             {"hami.io/gpu-scheduler-policy", "mutex,spread,numa"},
                             {"hami.io/node-scheduler-policy", "binpack"}),
        CONTAINERS({.name = "c0", .limits = PAIRS({GPU, "2"})}, {.name = "i0", .init = true}),
    };
    g_autoptr(request) hami = row("hami")->read_request(&view, &options, NULL);
    g_autoptr(request) old = row("4paradigm")->read_request(&view, &options, NULL);
    const struct terms *terms = hami->terms;

    ck_assert_str_eq(terms->models[0], "A30");
    ck_assert_str_eq(terms->models[1], "a100");
    ck_assert_ptr_null(terms->models[2]);
    ck_assert_str_eq(terms->models_not[0], "T4");
    ck_assert_str_eq(terms->uuids[1], "GPU-b");
    ck_assert_ptr_null(terms->uuids_not);
    ck_assert_str_eq(terms->mode, "hami-core");
    ck_assert(terms->same_numa);
    ck_assert(terms->idle);
    ck_assert_str_eq(terms->policy->name, "spread");
    ck_assert(terms->near_numa);
    ck_assert_ptr_eq(terms_rating(terms, NULL), policy_find("binpack"));
    ck_assert_ptr_eq(terms_rating(NULL, policies), policies);
    ck_assert_str_eq(terms->containers[0], "c0");
    ck_assert_str_eq(terms->containers[1], "i0");
    ck_assert_int_eq(terms->n_init, 1);

    ck_assert_str_eq(old->terms->models[0], "A30");
    ck_assert_ptr_null(old->terms->uuids);
    ck_assert_ptr_null(old->terms->policy);
    ck_assert(!old->terms->idle);
}
END_TEST

/* The pod as it is after its bind: with the annotations that we write. */
static struct allocation *bind_as(const char *dialect, const struct pod_view *view,
                                  struct annotations *annotations)
{
    g_autoptr(request) request = row(dialect)->read_request(view, &options, NULL);
    struct placement placement;

    ck_assert_int_eq(placement_find(node, request, policies, NULL, CARD_UNKNOWN, &placement),
                     REASON_NONE);
    struct allocation *allocation =
        allocation_new(view->uid, view->ns, view->name, placement.n_shares);
    allocation->dialect = request->dialect;
    allocation->terms = terms_ref(request->terms);
    allocation->assume_time_ns = INT64_C(1700000000123456789);
    allocation->waiting = true;
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    allocation->dialect->write_annotations(allocation, node, annotations);
    return allocation;
}

START_TEST(hami_is_told_per_container_init_containers_first)
{
    const struct pod_view several = {
        .ns = "ml", .name = "a", .uid = "u",
        CONTAINERS({.name = "c0", .limits = PAIRS({GPU, "1"}, {MEM, "3000"})}, {.name = "c1"},
                   {.name = "c2", .limits = PAIRS({GPU, "2"}, {MEM, "5000"}, {CORES, "30"})},
                   {.name = "i0", .init = true},
                   {.name = "i1", .init = true, .limits = PAIRS({GPU, "1"}, {PERCENT, "33"})}),
    };
    g_auto(annotations) written = {0};
    g_autoptr(allocation) allocation = bind_as("hami", &several, &written);
    const char *text = find(&written, ALLOCATED);

    ck_assert_uint_eq(allocation->n_shares, 4);

    ck_assert_str_eq(text, ";GPU-a,NVIDIA,3300,0:;GPU-a,NVIDIA,3000,0:;;"
                           "GPU-a,NVIDIA,5000,30:GPU-b,NVIDIA,5000,30:;");
    ck_assert_str_eq(find(&written, "hami.io/vgpu-devices-to-allocate"), text);
    ck_assert_str_eq(find(&written, "hami.io/vgpu-node"), "n1");
    ck_assert_str_eq(find(&written, "hami.io/vgpu-time"), "1700000000");
    ck_assert_str_eq(find(&written, "hami.io/bind-time"), "1700000000");
    ck_assert_str_eq(find(&written, "hami.io/bind-phase"), "allocating");
}
END_TEST

static void put_ancestors_node(void)
{
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology("4paradigm", "4pd.io/node-nvidia-register",
                            "GPU-a,10,10000,100,NVIDIA-Tesla T4,0,true:"
                            "GPU-b,10,10000,100,NVIDIA-Tesla T4,0,true:",
                            "20", "", topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
}

START_TEST(what_is_written_is_read_again)
{
    const struct {
        const char *dialect;
        struct pod_view view;
    } cases[] = {
        {"hami", {.ns = "ml", .name = "a", .uid = "u",
                  CONTAINERS({.name = "c", .limits = PAIRS({GPU, "2"}, {MEM, "700"})})}},
        {"4paradigm", {.ns = "ml", .name = "a", .uid = "u",
                       CONTAINERS(PLAIN, WITH({GPU, "1"}, {PERCENT, "10"}, {CORES, "5"}))}},
        {"volcano-vgpu", {.ns = "ml", .name = "a", .uid = "u",
                          CONTAINERS(WITH({VGPU, "2"}, {VMEM, "50"}, {VCORES, "100"}), PLAIN)}},
        {"hami", {.ns = "ml", .name = "a", .uid = "u",
                  CONTAINERS(WITH({GPU, "1"}), INIT({GPU, "2"}, {MEM, "9"}))}},
    };
    g_auto(annotations) written = {0};
    g_autofree char *warning = NULL;
    if (_i == 1)
        put_ancestors_node();
    g_autoptr(allocation) placed = bind_as(cases[_i].dialect, &cases[_i].view, &written);
    struct string_pair pairs[ANNOTATIONS_MAX];
    struct pod_view bound = cases[_i].view;

    for (size_t i = 0; i < written.n; i++)
        pairs[i] = (struct string_pair){written.items[i].key, written.items[i].value};
    bound.node_name = "n1";
    bound.annotations = (struct string_pairs){pairs, written.n};
    struct allocation *read = dialect_read_allocation(&bound, &options, &warning);
    ck_assert_msg(warning == NULL, "%s", warning);
    read = ledger_put(book, "n1", read);

    ck_assert_ptr_eq(read->dialect, row(cases[_i].dialect));
    ck_assert(read->waiting);
    ck_assert(!read->assigned);
    ck_assert_int_eq(read->distrust, DISTRUST_NONE);
    ck_assert_int_eq(read->assume_time_ns, INT64_C(1700000000) * 1000000000);
    ck_assert_uint_eq(read->n_shares, placed->n_shares);
    for (uint32_t i = 0; i < read->n_shares; i++) {
        const struct share *share = NULL;
        for (uint32_t j = 0; j < placed->n_shares && !share; j++) {
            if (placed->shares[j].container == read->shares[i].container &&
                placed->shares[j].card == read->shares[i].card)
                share = &placed->shares[j];
        }
        ck_assert_msg(share != NULL, "share %u", i);
        const struct card *card = node_share_card(node, share);
        ck_assert_int_eq(card_bytes(node, card, read->shares[i].memory),
                         card_bytes(node, card, share->memory));
        ck_assert_int_eq(read->shares[i].core, share->core);
        ck_assert_int_eq(read->shares[i].exclusive, share->exclusive);
        ck_assert_int_eq(read->shares[i].init, share->init);
    }
}
END_TEST

START_TEST(each_ends_its_text_in_its_own_way)
{
    struct pod_view one = {.ns = "ml", .name = "a", .uid = "u",
                           CONTAINERS(PLAIN, WITH({GPU, "1"}, {MEM, "70"}), PLAIN)};
    struct pod_view other = {.ns = "ml", .name = "b", .uid = "v",
                             CONTAINERS(PLAIN, WITH({VGPU, "1"}, {VMEM, "70"}), PLAIN)};
    g_auto(annotations) old = {0}, volcano = {0};
    g_autoptr(allocation) a = bind_as("4paradigm", &one, &old);
    g_autoptr(allocation) b = bind_as("volcano-vgpu", &other, &volcano);

    ck_assert_ptr_ne(a->dialect, b->dialect);
    ck_assert_str_eq(find(&old, "hami.sh/vgpu-devices-allocated"), ";GPU-a,NVIDIA,70,0:;;");
    ck_assert_str_eq(find(&old, "4pd.io/devices-to-allocate"), ";GPU-a,NVIDIA,70,0:;;");
    ck_assert_str_eq(find(&volcano, "volcano.sh/vgpu-ids-new"), ";GPU-a,NVIDIA,70,0:;");
    ck_assert_str_eq(find(&volcano, "volcano.sh/devices-to-allocate"), ";GPU-a,NVIDIA,70,0:;");
    ck_assert_str_eq(find(&volcano, "volcano.sh/bind-phase"), "allocating");
}
END_TEST

/* Whoever edits the promise between bind and kubelet's admission gets the card that it names. */
START_TEST(a_promise_counts_while_the_plugin_may_keep_it)
{
    static const struct {
        const char *promise, *phase;
        bool started;
        int64_t memory[2]; /* MiB */
        enum distrust distrust;
    } cases[] = {
        {"GPU-a,NVIDIA,3000,0:;", "Pending", false, {3000, 0}, DISTRUST_NONE},
        {";", "Pending", false, {3000, 0}, DISTRUST_NONE},
        {"GPU-b,NVIDIA,3000,0:;", "Pending", false, {3000, 3000}, DISTRUST_EDITED},
        {"GPU-b,NVIDIA,1,0:;", "Pending", false, {3000, 3000}, DISTRUST_EDITED},
        {"GPU-a,NVIDIA,3000,0:GPU-b,NVIDIA,3000,0:;", "Pending", false, {3000, 0}, DISTRUST_NONE},
        {"nonsense", "Pending", false, {3000, 0}, DISTRUST_NONE},
        {"GPU-b,NVIDIA,3000,0:;", "Pending", true, {3000, 0}, DISTRUST_NONE},
        {"GPU-b,NVIDIA,3000,0:;", "Running", true, {3000, 0}, DISTRUST_NONE},
    };
    const struct pod_view pod = {
        .ns = "ml",
        .name = "a",
        .uid = "u",
        .node_name = "n1",
        .phase = cases[_i].phase,
        .started = cases[_i].started,
        CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, "3000"})}),
        .annotations = PAIRS({ALLOCATED, "GPU-a,NVIDIA,3000,0:;"},
                             {"hami.io/vgpu-devices-to-allocate", cases[_i].promise},
                             {"hami.io/vgpu-node", "n1"}, {"hami.io/bind-phase", "success"}),
    };
    g_autofree char *warning = NULL;
    struct allocation *read = dialect_read_allocation(&pod, &options, &warning);

    ck_assert_int_eq(read->distrust, cases[_i].distrust);
    ck_assert_int_eq(warning != NULL, cases[_i].distrust != DISTRUST_NONE);
    ledger_put(book, "n1", read);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(node->cards[i].memory_used, cases[_i].memory[i] * MIB);
}
END_TEST

/* --- allocations ----------------------------------------------------------------------------- */

struct distrust_case {
    const char *text; /* of the annotation; NULL: there is none */
    enum distrust distrust;
    int64_t memory[2]; /* of cards a and b, MiB */
    const char *key;   /* NULL: ALLOCATED */
    const char *phase; /* of the pod; NULL: Running */
};

static const struct distrust_case distrust_cases[] = {
    {"GPU-a,NVIDIA,3000,0:;", DISTRUST_NONE, {3000}},
    {"GPU-a,NVIDIA,3000,0", DISTRUST_NONE, {3000}},
    {"GPU-b[1-0],NVIDIA,4864,14:;", DISTRUST_NONE, {0, 4864}}, /* a MIG instance of v2.5 */
    {",,0,0:;GPU-a,NVIDIA,3000,0:;", DISTRUST_NONE, {3000}},   /* of v2.4, without its place */
    {"GPU-a,NVIDIA,1,0:;", DISTRUST_EDITED, {3000}},
    {"GPU-x,NVIDIA,3000,0:;", DISTRUST_NONE, {3000, 3000}}, /* a card that is gone may be any */
    {"GPU-a,NVIDIA,3000:;", DISTRUST_MALFORMED, {3000, 3000}},
    {"GPU-a,NVIDIA,x,0:;", DISTRUST_MALFORMED, {3000, 3000}},
    {"GPU-a,NVIDIA,3000,101:;", DISTRUST_MALFORMED, {3000, 3000}},
    {"", DISTRUST_MALFORMED, {3000, 3000}},
    {"n1", DISTRUST_LOST, {3000, 3000}, "hami.io/vgpu-node"},
    {"x", DISTRUST_UNMARKED, {3000, 3000}, "other"},      /* it runs, so it was given some card */
    {"x", DISTRUST_UNMARKED, {0, 0}, "other", "Pending"}, /* the plugin gives it nothing */
    /* The container runs with what is promised; at most the card has it. */
    {"GPU-a,NVIDIA,10000,100:;", DISTRUST_EDITED, {10000}},
    {"GPU-a,NVIDIA,99999,0:;", DISTRUST_EDITED, {10000}},
    /* It has one card: which of them, nobody can say. */
    {"GPU-a,NVIDIA,3000,100:GPU-b,NVIDIA,20000,100:;", DISTRUST_MALFORMED, {3000, 3000}},
    {"GPU-b,NVIDIA,3000,0:;GPU-a,NVIDIA,3000,0:;", DISTRUST_MALFORMED, {3000, 3000}},
    {";", DISTRUST_MALFORMED, {3000, 3000}},
};

START_TEST(annotations_are_doubted)
{
    const struct distrust_case *c = &distrust_cases[_i];
    g_autofree char *warning = NULL;
    struct pod_view view = {
        .ns = "ml",
        .name = "a",
        .uid = "u",
        .node_name = "n1",
        .phase = c->phase ? c->phase : "Running",
        .annotations = PAIRS({c->key ? c->key : ALLOCATED, c->text}),
        CONTAINERS(WITH({GPU, "1"}, {MEM, "3000"})),
    };
    struct allocation *read = dialect_read_allocation(&view, &options, &warning);

    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(read->distrust, c->distrust);
    ck_assert_int_eq(warning != NULL, c->distrust != DISTRUST_NONE);
    ck_assert_int_eq(read->waiting, c->phase != NULL);
    ledger_put(book, "n1", read);
    for (int32_t i = 0; i < 2; i++) {
        const struct card *card = node_card(node, i);
        ck_assert_int_eq(card->memory - card_memory_free(node, card), c->memory[i] * MIB);
    }
}
END_TEST

START_TEST(a_phase_says_who_waits)
{
    static const struct {
        const char *phase, *pod_phase;
        bool started, waiting, assigned;
    } cases[] = {
        {"allocating", "Pending", false, true, false}, {"allocating", "Pending", true, true, false},
        {"success", "Pending", true, false, true},     {"failed", "Pending", false, false, false},
        {"allocating", "Running", true, false, false}, {NULL, "Pending", false, true, false},
        {NULL, "Pending", true, false, false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct pod_view view = {
            .ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
            .phase = cases[i].pod_phase, .started = cases[i].started,
            .annotations = PAIRS({ALLOCATED, "GPU-a,NVIDIA,3000,0:;"},
                                 {"hami.io/vgpu-time", "18446744073709551615"},
                                 {cases[i].phase ? "hami.io/bind-phase" : "none", cases[i].phase}),
            CONTAINERS(WITH({GPU, "1"}, {MEM, "3000"})),
        };
        g_autoptr(allocation) read = dialect_read_allocation(&view, &options, NULL);
        ck_assert_msg(read->waiting == cases[i].waiting, "case %zu", i);
        ck_assert_msg(read->assigned == cases[i].assigned, "case %zu", i);
        ck_assert_int_eq(read->assume_time_ns, 0);
    }
}
END_TEST

START_TEST(a_plain_gpu_bound_by_others_is_not_ours)
{
    struct pod_view view = {.ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
                            .phase = "Running", CONTAINERS(WITH({GPU, "1"}))};
    g_autoptr(allocation) read = row("hami")->read_allocation(&view, &options, NULL);
    ck_assert_ptr_null(read);
}
END_TEST

static struct allocation *read_pod(const struct string_pair *annotations, size_t n,
                                   char **ret_warning)
{
    const struct pod_view view = {.ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
                                  .phase = "Running",
                                  .annotations = {annotations, n},
                                  CONTAINERS(WITH({GPU, "1"}, {MEM, "3000"}))};

    return dialect_read_allocation(&view, &options, ret_warning);
}

/* Whatever else the pod carries, and whatever time that says: the node's own plugin is the one that
 * has served it. */
START_TEST(the_words_of_the_nodes_plugin_count)
{
    static const char *const times[] = {"200", "50", "4102444800", "x"};
    static const char *const nodes[] = {"n1", "n2"};

    for (size_t i = 0; i < G_N_ELEMENTS(times) * G_N_ELEMENTS(nodes); i++) {
        const struct string_pair annotations[] = {
            {"hami.sh/vgpu-devices-allocated", "GPU-b,NVIDIA,3000,0:;"},
            {"4pd.io/vgpu-ids-new", "GPU-b,NVIDIA,3000,0:;"},
            {"hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,3000,0:;"},
            {"hami.io/vgpu-node", "n1"},
            {"hami.io/vgpu-time", "100"},
            {"4pd.io/vgpu-node", nodes[i / G_N_ELEMENTS(times)]},
            {"4pd.io/vgpu-time", times[i % G_N_ELEMENTS(times)]},
        };
        g_autofree char *warning = NULL;
        const struct allocation *held = ledger_put(
            book, "n1", read_pod(annotations, G_N_ELEMENTS(annotations), &warning));
        ck_assert_ptr_null(warning);
        ck_assert_str_eq(held->dialect->name, "hami");
        ck_assert_uint_eq(held->n_shares, 1);
        ck_assert(held->shares[0].key == card_key("GPU-a"));
        ck_assert_int_eq(held->assume_time_ns, INT64_C(100) * 1000000000);
        ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
        ck_assert_int_eq(node->cards[1].memory_used, 0);
    }
}
END_TEST

/* Before v2.9 only who asks had a place in the text, and no init container. What cannot have been written
 * for these containers says nothing: each may be anywhere. */
START_TEST(places_of_old_texts_are_those_who_ask)
{
    static const struct {
        const char *text;
        int64_t memory[2]; /* of cards a and b, MiB */
    } cases[] = {
        {"GPU-b,NVIDIA,3000,0:;GPU-a,NVIDIA,1000,0:;", {1000, 3000}},
        {"GPU-b,NVIDIA,3000,0:;", {1000, 4000}}, /* the other one may be on any */
        {"GPU-a,NVIDIA,3000,0:GPU-b,NVIDIA,1000,0:;", {4000, 4000}},
        {"GPU-b,NVIDIA,3000,0:;GPU-a,NVIDIA,1000,0:;;GPU-a,NVIDIA,1000,0:;GPU-a,NVIDIA,1000,0:;",
         {4000, 4000}},
    };
    const struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u", .node_name = "n1", .phase = "Running",
        .annotations = PAIRS({ALLOCATED, cases[_i].text}),
        CONTAINERS(WITH({GPU, "1"}, {MEM, "3000"}), PLAIN, WITH({GPU, "1"}, {MEM, "1000"}),
                   INIT({GPU, "1"}, {MEM, "500"})),
    };
    g_autofree char *warning = NULL;

    ledger_put(book, "n1", dialect_read_allocation(&view, &options, &warning));
    for (int32_t i = 0; i < 2; i++) {
        const struct card *card = node_card(node, i);
        ck_assert_int_eq(card->memory - card_memory_free(node, card), cases[_i].memory[i] * MIB);
    }
}
END_TEST

/* A pod of the ancestor, on its node: that HAMi finds no mark of its own is nobody's trouble. */
START_TEST(the_ancestors_pods_are_not_doubted)
{
    const struct string_pair annotations[] = {{"4pd.io/vgpu-ids-new", "GPU-b,NVIDIA,3000,0:;"},
                                              {"4pd.io/vgpu-node", "n1"}};
    g_autofree char *warning = NULL;

    put_ancestors_node();
    const struct allocation *held = ledger_put(book, "n1", read_pod(annotations, 2, &warning));
    ck_assert_ptr_null(warning);
    ck_assert_str_eq(held->dialect->name, "4paradigm");
    ck_assert_int_eq(held->distrust, DISTRUST_NONE);
    ck_assert_int_eq(node->cards[1].memory_used, 3000 * MIB);
}
END_TEST

/* Koordinator's word on a pod that its scheduler did not place, and that asks for none of its
 * resources, is a tenant's. */
START_TEST(another_schedulers_annotation_takes_no_pod_away)
{
    static const char small[] =
        "{\"gpu\":[{\"minor\":1,\"resources\":{\"koordinator.sh/gpu-memory\":\"1\"}}]}";
    const struct string_pair annotations[] = {
        {"scheduling.koordinator.sh/device-allocated", small},
        {ALLOCATED, "GPU-a,NVIDIA,3000,0:;"},
        {"hami.io/vgpu-node", "n1"}};
    g_autofree char *warning = NULL;
    const struct allocation *held = ledger_put(book, "n1", read_pod(annotations, 3, &warning));

    ck_assert_ptr_null(warning);
    ck_assert_str_eq(held->dialect->name, "hami");
    ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
    ck_assert_int_eq(node->cards[1].holders, 0);
}
END_TEST

START_TEST(neither_does_it_of_volcanos)
{
    const struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
        .annotations = PAIRS({"scheduling.koordinator.sh/device-allocated",
                              "{\"gpu\":[{\"minor\":1,\"resources\":{"
                              "\"koordinator.sh/gpu-memory\":\"1\"}}]}"},
                             {"volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,3000,0:"}),
        CONTAINERS(WITH({VGPU, "1"}, {VMEM, "3000"}))};
    const struct allocation *held =
        ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));

    ck_assert_str_eq(held->dialect->name, "volcano-vgpu");
    ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
    ck_assert_int_eq(node->cards[1].holders, 0);
}
END_TEST

/* What no plugin of the family serves counts as far as it can be read, and at most as all of a card. */
START_TEST(more_than_is_served_is_a_whole_card)
{
    static const struct {
        struct string_pair limit;
        int64_t mib;
        int32_t core;
    } cases[] = {
        {{CORES, "101"}, 10000, 1000},
        {{PERCENT, "101"}, 10000, 1000},
        {{MEM, "99999999999999"}, 10000, 1000},
        {{CORES, "9223372036854775807"}, 10000, 1000},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct pod_view view = {
            .ns = "ml", .name = "a", .uid = "u", .node_name = "n1", .phase = "Running",
            .annotations = PAIRS({ALLOCATED, "GPU-a,NVIDIA,10000,100:;"}, {"hami.io/vgpu-node", "n1"}),
            CONTAINERS(WITH({GPU, "1"}, cases[i].limit))};
        g_autofree char *warning = NULL;
        const struct allocation *held =
            ledger_put(book, "n1", dialect_read_allocation(&view, &options, &warning));
        ck_assert_ptr_nonnull(warning);
        ck_assert_msg(held->distrust != DISTRUST_NONE, "case %zu", i);
        ck_assert_msg(card_memory_free(node, node_card(node, 0)) == 0, "case %zu", i);
        ck_assert_msg(node->cards[0].core_used == cases[i].core, "case %zu", i);
        ck_assert_int_eq(node->cards[1].holders, 0);
    }
}
END_TEST

/* A pod of 65 containers of which each asks: they are not told apart, and hold every card. */
START_TEST(many_containers_hold_every_card)
{
    struct container_view containers[65];
    const struct string_pair limits[] = {{GPU, "1"}, {MEM, "100"}};
    g_autofree char *warning = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++)
        containers[i] = (struct container_view){.name = "c", .limits = {limits, 2}};
    const struct pod_view view = {.ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
                                  .annotations = PAIRS({"hami.io/vgpu-node", "n1"}),
                                  .containers = containers,
                                  .n_containers = G_N_ELEMENTS(containers)};
    const struct allocation *held =
        ledger_put(book, "n1", dialect_read_allocation(&view, &options, &warning));
    ck_assert_ptr_nonnull(strstr(warning, "more than 64"));
    ck_assert_int_eq(held->distrust, DISTRUST_UNREAD);
    ck_assert_int_eq(node->unplaced_exclusive, 1);
    ck_assert_int_ne(place(&POD(WITH({GPU, "1"}, {MEM, "1"})), NULL), REASON_NONE);
}
END_TEST

/* Who says nothing of memory has what the administrator gives, not what the annotation says. */
START_TEST(silence_about_memory_is_the_default)
{
    for (int i = 0; i < 2; i++) {
        const struct dialect_options said = {.hami_default_memory = i ? 4000 : 0};
        const struct pod_view view = {
            .ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
            .annotations = PAIRS({ALLOCATED, "GPU-a,NVIDIA,1,0:;"}, {"hami.io/vgpu-node", "n1"}),
            CONTAINERS(WITH({GPU, "1"}))};
        ledger_put(book, "n1", dialect_read_allocation(&view, &said, NULL));
        ck_assert_int_eq(node->cards[0].memory_used, (i ? 4000 : 10000) * MIB);
    }
}
END_TEST

/* Memory that was scaled, a factor, a default that is not said here: the container runs with the text. */
START_TEST(what_a_container_runs_with_counts)
{
    static const struct {
        struct string_pair limit;
        const char *text;
        int64_t mib;
        int32_t core;
    } cases[] = {
        {{PERCENT, "50"}, "GPU-a,NVIDIA,8000,0:;", 8000, 0},
        {{PERCENT, "50"}, "GPU-a,NVIDIA,2000,0:;", 5000, 0},
        {{PERCENT, "50"}, "GPU-a,NVIDIA,20000,0:;", 10000, 0},
        {{MEM, "3"}, "GPU-a,NVIDIA,3072,30:;", 3072, 300},
        {{MEM, "3000"}, "GPU-a,NVIDIA,3000,100:;", 3000, 1000},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct pod_view view = {
            .ns = "ml",
            .name = "a",
            .uid = "u",
            .node_name = "n1",
            .phase = "Running",
            .annotations = PAIRS({ALLOCATED, cases[i].text}, {"hami.io/vgpu-node", "n1"}),
            CONTAINERS(WITH({GPU, "1"}, cases[i].limit))};
        const struct allocation *held =
            ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
        ck_assert_msg(node->cards[0].memory_used == cases[i].mib * MIB, "case %zu", i);
        ck_assert_msg(node->cards[0].core_used == cases[i].core, "case %zu", i);
        ck_assert_msg(held->shares[0].exclusive == (cases[i].core == 1000), "case %zu", i);
    }
}
END_TEST

/* HAMi's memoryFactor; the ancestor has none. */
START_TEST(an_amount_of_memory_has_a_factor)
{
    const struct dialect_options said = {.hami_memory_factor = 1024};
    const struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u", CONTAINERS(WITH({GPU, "1"}, {MEM, "3"}))};
    g_autoptr(request) request = dialect_read_request(&view, &said, NULL);

    for (const struct request *next = request; next; next = next->alternative) {
        if (g_str_equal(next->dialect->name, "hami"))
            ck_assert_int_eq(next->asks[0].memory.value, 3072 * MIB);
        else if (g_str_equal(next->dialect->name, "4paradigm"))
            ck_assert_int_eq(next->asks[0].memory.value, 3 * MIB);
    }
}
END_TEST

/* Volcano's gpuMemoryFactor: nodes and texts are in it, too. */
START_TEST(volcanos_memory_has_a_factor_everywhere)
{
    const struct dialect_options said = {.volcano_memory_factor = 10};
    const struct dialect *volcano = row("volcano-vgpu");
    g_autoptr(topology) topology = topology_new();
    struct pod_view view = {.ns = "ml",
                            .name = "a",
                            .uid = "u",
                            CONTAINERS(WITH({VGPU, "1"}, {"volcano.sh/vgpu-memory", "300"}))};
    const struct node_view said_by = {
        .name = "n1",
        .annotations = PAIRS({"volcano.sh/node-vgpu-register", "GPU-a,10,1536,T4,true,hami-core:"}),
        .allocatable = PAIRS({VGPU, "10"})};
    g_autoptr(request) request = dialect_read_request(&view, &said, NULL);
    g_auto(annotations) annotations = {0};

    ck_assert(volcano->read_topology(&said_by, &said, topology, NULL, NULL));
    ck_assert_int_eq(topology->cards[0].memory, 15360 * MIB);
    node = ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(request->asks[0].memory.value, 3000 * MIB);
    struct allocation *booked = allocation_new("u", "ml", "a", 1);
    booked->dialect = volcano;
    booked->terms = terms_ref(request->terms);
    booked->shares[0] = (struct share){.memory = request->asks[0].memory};
    ledger_put(book, "n1", booked);
    volcano->write_annotations(booked, node, &annotations);
    ck_assert_str_eq(annotations.items[0].key, "volcano.sh/vgpu-ids-new");
    ck_assert_str_eq(annotations.items[0].value, "GPU-a,NVIDIA,300,0:");
    view.node_name = "n1";
    view.phase = "Running";
    view.annotations = PAIRS({"volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,300,0:"},
                             {"volcano.sh/vgpu-node", "n1"}, {"volcano.sh/bind-phase", "success"});
    struct allocation *read = dialect_read_allocation(&view, &said, NULL);
    ck_assert_int_eq(read->distrust, DISTRUST_NONE);
    ledger_put(book, "n1", read);
    ck_assert_int_eq(node->cards[0].memory_used, 3000 * MIB);
}
END_TEST

/* Volcano takes it for one card; here it is an error, and counts where Volcano has put it. */
START_TEST(volcanos_memory_without_a_number_is_of_one_card)
{
    const struct pod_view view = {
        .ns = "ml",
        .name = "a",
        .uid = "u",
        .node_name = "n1",
        .phase = "Running",
        .annotations = PAIRS({"volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,3000,0:"},
                             {"volcano.sh/vgpu-node", "n1"}, {"volcano.sh/bind-phase", "success"}),
        CONTAINERS(WITH({"volcano.sh/vgpu-memory", "3000"}))};
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(dialect_read_request(&view, &options, &error));
    ck_assert_ptr_nonnull(error);
    struct allocation *read = dialect_read_allocation(&view, &options, NULL);
    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(read->shares[0].memory.value, 3000 * MIB);
    ck_assert_int_eq(read->distrust, DISTRUST_UNREAD);
    allocation_free(read);
}
END_TEST

START_TEST(unmarked_pods_may_be_said_to_count)
{
    const struct dialect_options said = {.unplaced_everywhere = true};
    const struct pod_view view = {.ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
                                  CONTAINERS(WITH({GPU, "1"}, {MEM, "3000"}))};

    ledger_put(book, "n1", dialect_read_allocation(&view, &said, NULL));
    ck_assert_int_eq(node->unplaced_memory, 3000 * MIB);
    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
    ck_assert_int_eq(node->unplaced_memory, 0);
    ck_assert_int_eq(ledger_get(book, "u")->distrust, DISTRUST_UNMARKED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hami");
    TCase *pods = tcase_create("pods");
    TCase *bound = tcase_create("bound");

    tcase_add_test(bound, what_a_container_runs_with_counts);
    tcase_add_test(bound, an_amount_of_memory_has_a_factor);
    tcase_add_test(bound, volcanos_memory_has_a_factor_everywhere);
    tcase_add_test(bound, volcanos_memory_without_a_number_is_of_one_card);
    tcase_add_loop_test(pods, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_test(pods, defaults_are_the_administrators);
    tcase_add_test(pods, conditions_are_read);
    tcase_add_test(pods, a_phase_says_who_waits);
    tcase_add_test(pods, a_plain_gpu_bound_by_others_is_not_ours);
    suite_add_tcase(suite, pods);

    tcase_add_checked_fixture(bound, setup, teardown);
    tcase_add_test(bound, hami_is_told_per_container_init_containers_first);
    tcase_add_loop_test(bound, what_is_written_is_read_again, 0, 4);
    tcase_add_test(bound, each_ends_its_text_in_its_own_way);
    tcase_add_loop_test(bound, a_promise_counts_while_the_plugin_may_keep_it, 0, 8);
    tcase_add_loop_test(bound, annotations_are_doubted, 0, G_N_ELEMENTS(distrust_cases));
    tcase_add_loop_test(bound, places_of_old_texts_are_those_who_ask, 0, 4);
    tcase_add_test(bound, the_words_of_the_nodes_plugin_count);
    tcase_add_test(bound, the_ancestors_pods_are_not_doubted);
    tcase_add_test(bound, another_schedulers_annotation_takes_no_pod_away);
    tcase_add_test(bound, neither_does_it_of_volcanos);
    tcase_add_test(bound, more_than_is_served_is_a_whole_card);
    tcase_add_test(bound, many_containers_hold_every_card);
    tcase_add_test(bound, silence_about_memory_is_the_default);
    tcase_add_test(bound, unmarked_pods_may_be_said_to_count);
    suite_add_tcase(suite, bound);
    return suite_run(suite);
}
