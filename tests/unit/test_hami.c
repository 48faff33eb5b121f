/* SPDX-License-Identifier: Apache-2.0 */
#include "literals.h"
#include "suite.h"

#include <gpuledger/dialect.h>
#include <gpuledger/error.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
#define GPU "nvidia.com/gpu"
#define MEM "nvidia.com/gpumem"
#define PERCENT "nvidia.com/gpumem-percentage"
#define CORES "nvidia.com/gpucores"
#define VGPU "volcano.sh/vgpu-number"
#define VMEM "volcano.sh/vgpu-memory"
#define VCORES "volcano.sh/vgpu-cores"

#define REGISTERED "hami.io/node-nvidia-register"
#define ALLOCATED "hami.io/vgpu-devices-allocated"

#define WITH(...) {.name = "c", .limits = PAIRS(__VA_ARGS__)}
#define PLAIN {.name = "p"}
#define INIT(...) {.name = "i", .init = true, .limits = PAIRS(__VA_ARGS__)}

static const struct dialect_options options;

static const struct dialect *row(const char *name)
{
    const struct dialect *found = dialect_find(name);
    ck_assert_ptr_nonnull(found);
    return found;
}

/* --- nodes ----------------------------------------------------------------------------------- */

struct register_case {
    const char *dialect, *key, *text;
    const char *error; /* part of it; NULL: the two cards of a_register() are found */
};

#define A7 "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true:"
#define B7 "GPU-b,5,30720,200,NVIDIA-NVIDIA A30,1,false:"
#define A9 "GPU-a,10,15360,100,NVIDIA-Tesla T4,0,true,0,hami-core:"
#define B9 "GPU-b,5,30720,200,NVIDIA-NVIDIA A30,1,false,1,hami-core:"
#define AJ                                                                                         \
    "{\"id\":\"GPU-a\",\"count\":10,\"devmem\":15360,\"devcore\":100,\"type\":\"NVIDIA-Tesla T4\"," \
    "\"mode\":\"hami-core\",\"health\":true,\"devicepairscore\":{}}"
#define BJ                                                                                         \
    "{\"id\":\"GPU-b\",\"index\":1,\"count\":5,\"devmem\":30720,\"devcore\":200,"                   \
    "\"type\":\"NVIDIA-NVIDIA A30\",\"numa\":1,\"mode\":\"hami-core\"}"

static const struct register_case register_cases[] = {
    {"hami", REGISTERED, A7 B7},
    {"hami", REGISTERED, A9 B9},
    {"hami", REGISTERED, B9 A9}, /* by index, not by place */
    {"hami", REGISTERED, "[" BJ "," AJ "]"},
    {"4paradigm", "4pd.io/node-nvidia-register", A7 B7},
    {"volcano-vgpu", "volcano.sh/node-vgpu-register",
     "GPU-a,10,15360,NVIDIA-Tesla T4,true,hami-core:GPU-b,5,30720,NVIDIA-NVIDIA A30,false,hami-core:"},
    {"volcano-vgpu", "volcano.sh/node-vgpu-register",
     "GPU-a,10,15360,NVIDIA-Tesla T4,true:GPU-b,5,30720,NVIDIA-NVIDIA A30,false:"},
    {"hami", REGISTERED, "", "names 0 cards"},
    {"hami", REGISTERED, "[]", "names 0 cards"},
    {"hami", REGISTERED, "GPU-a,10,15360:", "not a card in any known form"},
    {"hami", REGISTERED, "GPU-a,x,15360,100,T4,0,true:", "not a card"},
    {"hami", REGISTERED, ",10,15360,100,T4,0,true:", "not a card"},
    {"hami", REGISTERED, A7 A7, "there twice"},
    {"hami", REGISTERED, "GPU-;a,10,15360,100,T4,0,true:", "other characters"},
    {"hami", REGISTERED, "[{\"id\":\"GPU-a,b\",\"health\":true}]", "other characters"},
    {"hami", REGISTERED, "GPU-a,10,99999999999,100,T4,0,true:", "no card has"},
    {"hami", REGISTERED, "GPU-a,10,15360,-1,T4,0,true:", "no card has"},
    {"hami", REGISTERED, "[{\"id\":7}]", "field 'id'"},
    {"hami", REGISTERED, "[{\"count\":10}]", "field 'id'"},
    {"hami", REGISTERED, "[7]", "card 0"},
    {"hami", REGISTERED, "[", "byte"},
};

static bool read_topology(const char *dialect, const char *key, const char *text,
                          const char *allocatable, const char *cordoned,
                          struct topology *topology, GError **error)
{
    g_autofree char *warning = NULL;
    const bool volcano = g_str_equal(dialect, "volcano-vgpu");
    struct node_view view = {
        .name = "n1",
        .annotations = PAIRS({key, text}, {"hami.io/device-cordon", cordoned}),
        .allocatable = PAIRS({volcano ? VGPU : GPU, allocatable}),
    };
    return row(dialect)->read_topology(&view, &options, topology, &warning, error);
}

START_TEST(a_register_is_read_in_every_form)
{
    const struct register_case *c = &register_cases[_i];
    const bool volcano = g_str_equal(c->dialect, "volcano-vgpu");
    const bool seven = g_str_equal(c->text, A7 B7);
    g_autoptr(topology) topology = topology_new();
    g_autoptr(GError) error = NULL;
    const bool read = read_topology(c->dialect, c->key, c->text, "20", "", topology, &error);

    if (c->error) {
        ck_assert(!read);
        ck_assert_msg(error && strstr(error->message, c->error), "%s",
                      error ? error->message : "no error");
        ck_assert_ptr_nonnull(strstr(error->message, "node 'n1': annotation"));
        return;
    }
    ck_assert_msg(read, "%s", error ? error->message : "no error");
    ck_assert_int_eq(topology->n_cards, 2);
    const struct topology_card *a = &topology->cards[0], *b = &topology->cards[1];
    ck_assert_str_eq(a->uuid, "GPU-a");
    ck_assert_str_eq(b->uuid, "GPU-b");
    ck_assert_int_eq(a->memory, 15360 * MIB);
    ck_assert_int_eq(b->memory, 30720 * MIB);
    ck_assert_int_eq(a->slots, 10);
    ck_assert_int_eq(b->slots, 5);
    ck_assert_int_eq(b->core, volcano ? 0 : 2000);
    ck_assert_int_eq(b->numa, volcano ? 0 : 1);
    ck_assert_str_eq(a->model, "NVIDIA-Tesla T4");
    ck_assert(!a->unhealthy);
    ck_assert(b->unhealthy);
    if (!seven && strstr(c->text, "hami-core"))
        ck_assert_str_eq(a->mode, "hami-core");
    else
        ck_assert_ptr_null(a->mode);
}
END_TEST

START_TEST(cards_that_take_nobody)
{
    static const struct {
        const char *text, *allocatable, *cordoned;
        bool unhealthy;
    } cases[] = {
        {A9, "10", "GPU-b", false},
        {A9, "10", "GPU-b, GPU-a", true},
        {A9, "0", "", true},
        {A9, NULL, "", true},
        {"GPU-a,0,15360,100,T4,0,true:", "10", "", true},
        {"GPU-a,10,15360,100,A100,0,true,0,mig:", "10", "", true},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(topology) topology = topology_new();
        ck_assert(read_topology("hami", REGISTERED, cases[i].text, cases[i].allocatable,
                                cases[i].cordoned, topology, NULL));
        ck_assert_msg(topology->cards[0].unhealthy == cases[i].unhealthy, "case %zu", i);
    }
}
END_TEST

START_TEST(other_nodes_are_not_claimed)
{
    static const char *const names[] = {"hami", "4paradigm", "volcano-vgpu"};
    struct node_view view = {.name = "n1", .allocatable = PAIRS({GPU, "1"}, {VGPU, "1"})};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(topology) topology = topology_new();
        g_autoptr(GError) error = NULL;
        ck_assert(!row(names[i])->read_topology(&view, &options, topology, NULL, &error));
        ck_assert_ptr_null(error);
    }
}
END_TEST

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

/* --- a ledger to place pods in ---------------------------------------------------------------- */

static struct ledger *book;
static struct node *node;

static void setup(void)
{
    g_autoptr(topology) topology = topology_new();

    book = ledger_new();
    ck_assert(read_topology("hami", REGISTERED,
                            "GPU-a,10,10000,100,NVIDIA-Tesla T4,0,true,0,hami-core:"
                            "GPU-b,10,20000,100,NVIDIA-NVIDIA A30,1,true,1,hami-core:",
                            "20", "", topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
}

static void teardown(void)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(ledger_verify(book, &error), "%s", error ? error->message : "");
    ledger_free(book);
}

static enum reason place(const struct pod_view *view, struct placement *placement)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(view, &options, &error);
    struct placement scratch;
    enum reason reason;

    ck_assert_msg(request != NULL, "%s", error ? error->message : "no request");
    const struct admission_query query = {
        .request = request, .policy = policies, .options = &options, .patience_ns = INT64_MAX};
    const enum admission admission =
        dialect_admit(node, &query, placement ? placement : &scratch, &reason);
    ck_assert_int_ne(admission, ADMISSION_WAIT);
    return admission == ADMISSION_YES ? REASON_NONE : reason;
}

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

static const char *find(const struct annotations *annotations, const char *key)
{
    for (size_t i = 0; i < annotations->n; i++) {
        if (g_str_equal(annotations->items[i].key, key))
            return annotations->items[i].value;
    }
    return NULL;
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
    ck_assert_int_eq(read->doubt, DOUBT_NONE);
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
        ck_assert_int_eq(read->shares[i].memory.value, share->memory.value);
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

/* --- allocations ----------------------------------------------------------------------------- */

struct doubt_case {
    const char *text; /* of the annotation; NULL: there is none */
    enum doubt doubt;
    int64_t memory[2]; /* of cards a and b, MiB */
    const char *key;   /* NULL: ALLOCATED */
};

static const struct doubt_case doubt_cases[] = {
    {"GPU-a,NVIDIA,3000,0:;", DOUBT_NONE, {3000}},
    {"GPU-a,NVIDIA,3000,0", DOUBT_NONE, {3000}},
    {"GPU-b[1-0],NVIDIA,4864,14:;", DOUBT_NONE, {0, 4864}}, /* a MIG instance of v2.5 */
    {",,0,0:;GPU-a,NVIDIA,3000,0:;", DOUBT_NONE, {3000}},   /* of v2.4, without its place */
    {"GPU-a,NVIDIA,1,0:;", DOUBT_EDITED, {3000}},
    {"GPU-x,NVIDIA,3000,0:;", DOUBT_NONE, {3000, 3000}}, /* a card that is gone may be any */
    {"GPU-a,NVIDIA,3000:;", DOUBT_MALFORMED, {3000, 3000}},
    {"GPU-a,NVIDIA,x,0:;", DOUBT_MALFORMED, {3000, 3000}},
    {"GPU-a,NVIDIA,3000,101:;", DOUBT_MALFORMED, {3000, 3000}},
    {"", DOUBT_MALFORMED, {3000, 3000}},
    {"n1", DOUBT_LOST, {3000, 3000}, "hami.io/vgpu-node"},
    {"x", DOUBT_UNMARKED, {3000, 3000}, "other"},
};

START_TEST(annotations_are_doubted)
{
    const struct doubt_case *c = &doubt_cases[_i];
    g_autofree char *warning = NULL;
    struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u", .node_name = "n1", .phase = "Running",
        .annotations = PAIRS({c->key ? c->key : ALLOCATED, c->text}),
        CONTAINERS(WITH({GPU, "1"}, {MEM, "3000"})),
    };
    struct allocation *read = dialect_read_allocation(&view, &options, &warning);

    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(read->doubt, c->doubt);
    ck_assert_int_eq(warning != NULL, c->doubt != DOUBT_NONE);
    ck_assert(!read->waiting);
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

/* --- placement ------------------------------------------------------------------------------- */

static void hold(const char *uid, const char *text, const char *phase)
{
    struct pod_view view = {
        .ns = "ml", .name = uid, .uid = uid, .node_name = "n1", .phase = "Pending",
        .annotations = PAIRS({ALLOCATED, text}, {"hami.io/bind-phase", phase}),
        CONTAINERS(WITH({GPU, "1"}, {MEM, "1"})),
    };
    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
}

#define POD(...)                                                                                   \
    (struct pod_view) { .ns = "ml", .name = "p", .uid = "p", CONTAINERS(__VA_ARGS__) }

/* A pod's template may carry what a bind in another cluster wrote. */
START_TEST(the_words_of_the_last_bind_count)
{
    static const struct {
        const char *node, *time, *dialect;
    } theirs[] = {{"n1", "200", "4paradigm"}, {"n1", "50", "hami"}, {"n2", "200", "hami"},
                  {NULL, NULL, "hami"}};

    for (size_t i = 0; i < G_N_ELEMENTS(theirs); i++) {
        const struct string_pair limits[] = {{"nvidia.com/gpu", "1"}};
        const struct string_pair annotations[] = {
            {"hami.sh/vgpu-devices-allocated", "GPU-b,NVIDIA,3000,0:;"},
            {"hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,3000,0:;"},
            {"hami.io/vgpu-node", "n1"},
            {"hami.io/vgpu-time", "100"},
            {"4pd.io/vgpu-node", theirs[i].node},
            {"4pd.io/vgpu-time", theirs[i].time},
        };
        const struct container_view container = {.name = "c", .limits = {limits, 1}};
        const struct pod_view view = {.ns = "ml", .name = "a", .uid = "u", .node_name = "n1",
                                      .phase = "Running", .containers = &container,
                                      .n_containers = 1,
                                      .annotations = {annotations, theirs[i].node ? 6 : 4}};
        const struct dialect_options options = {0};
        g_autofree char *warning = NULL;
        g_autoptr(allocation) held = dialect_read_allocation(&view, &options, &warning);
        ck_assert_str_eq(held->dialect->name, theirs[i].dialect);
        ck_assert(held->shares[0].key ==
                  card_key(g_str_equal(theirs[i].dialect, "hami") ? "GPU-a" : "GPU-b"));
    }
}
END_TEST

START_TEST(each_container_gets_different_cards)
{
    struct placement placement;

    ck_assert_int_eq(place(&POD(WITH({GPU, "2"}, {MEM, "100"})), &placement), REASON_NONE);
    ck_assert_int_ne(placement.shares[0].card, placement.shares[1].card);
    ck_assert_int_eq(place(&POD(WITH({GPU, "3"}, {MEM, "100"})), NULL), REASON_CARD_COUNT);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "20001"})), NULL), REASON_CARD_TOO_SMALL);
    ck_assert_int_eq(place(&POD(WITH({GPU, "2"}, {MEM, "10001"})), NULL) != REASON_NONE, true);
    ck_assert_int_eq(place(&POD(WITH({GPU, "2"})), NULL), REASON_NONE);
}
END_TEST

START_TEST(slots_and_cores_are_kept)
{
    char uid[8];
    for (int i = 0; i < 20; i++) {
        g_snprintf(uid, sizeof uid, "u%d", i);
        hold(uid, i < 10 ? "GPU-a,NVIDIA,10,5:;" : "GPU-b,NVIDIA,10,10:;", "success");
    }
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), NULL), REASON_NO_SLOT);
    ledger_drop(book, "u19");
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), NULL), REASON_NONE);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"}, {CORES, "11"})), NULL) != REASON_NONE,
                     true);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"}, {CORES, "10"})), NULL), REASON_NONE);
}
END_TEST

START_TEST(all_cores_are_a_card_of_ones_own)
{
    struct placement placement;

    hold("u1", "GPU-a,NVIDIA,10,0:;", "success");
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"}, {CORES, "100"})), &placement),
                     REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    hold("u2", "GPU-b,NVIDIA,10,100:;", "success");
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    hold("u3", "GPU-a,NVIDIA,10,60:;", "success");
    hold("u4", "GPU-a,NVIDIA,10,40:;", "success");
    ck_assert_int_ne(place(&POD(WITH({GPU, "1"}, {MEM, "10"})), NULL), REASON_NONE);
}
END_TEST

START_TEST(conditions_are_kept)
{
    static const struct {
        struct string_pair annotation;
        const char *count;
        int32_t card; /* -1: refused */
    } cases[] = {
        {{"nvidia.com/use-gputype", "a30"}, "1", 1},
        {{"nvidia.com/nouse-gputype", "T4,V100"}, "1", 1},
        {{"nvidia.com/use-gpuuuid", "GPU-b"}, "1", 1},
        {{"nvidia.com/nouse-gpuuuid", "GPU-a"}, "1", 1},
        {{"nvidia.com/use-gputype", "H100"}, "1", -1},
        {{"nvidia.com/use-gputype", "A30"}, "2", -1},
        {{"nvidia.com/vgpu-mode", "hami-core"}, "1", 0},
        {{"nvidia.com/vgpu-mode", "mps"}, "1", -1},
        {{"nvidia.com/numa-bind", "true"}, "1", 0},
        {{"nvidia.com/numa-bind", "true"}, "2", -1},
        {{"hami.io/gpu-scheduler-policy", "spread"}, "1", 1},
        {{"hami.io/gpu-scheduler-policy", "binpack"}, "1", 0},
        {{"hami.io/gpu-scheduler-policy", "mutex"}, "1", 0},
    };
    struct placement placement;
    struct pod_view view = POD(WITH({GPU, cases[_i].count}, {MEM, "10"}));

    view.annotations = PAIRS(cases[_i].annotation);
    const enum reason reason = place(&view, &placement);
    ck_assert_int_eq(reason == REASON_NONE, cases[_i].card >= 0);
    if (reason == REASON_NONE)
        ck_assert_int_eq(placement.shares[0].card, cases[_i].card);
}
END_TEST

START_TEST(mutex_means_an_idle_card)
{
    struct placement placement;
    struct pod_view view = POD(WITH({GPU, "1"}, {MEM, "10"}));

    view.annotations = PAIRS({"hami.io/gpu-scheduler-policy", "mutex"});
    hold("u1", "GPU-a,NVIDIA,10,0:;", "success");
    ck_assert_int_eq(place(&view, &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 1);
    hold("u2", "GPU-b,NVIDIA,10,0:;", "success");
    ck_assert_int_ne(place(&view, NULL), REASON_NONE);
}
END_TEST

/* Cards 0 and 2 are on one NUMA node, 1 and 3 on the other; the emptiest are 0 and 1. */
START_TEST(numa_is_a_wish)
{
    static const struct {
        const char *key, *policy, *count;
        int32_t cards[3]; /* -1 in the first: refused */
    } cases[] = {
        {"hami.io/gpu-scheduler-policy", "spread", "2", {0, 1}},
        {"hami.io/gpu-scheduler-policy", "numa,spread", "2", {0, 2}},
        {"hami.io/gpu-scheduler-policy", "spread,numa", "3", {0, 1, 2}},
        {"nvidia.com/numa-bind", "true", "3", {-1}},
    };
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology("hami", REGISTERED,
                            "GPU-a,10,9000,100,T4,0,true,0,hami-core:"
                            "GPU-b,10,8000,100,T4,1,true,1,hami-core:"
                            "GPU-c,10,7000,100,T4,0,true,2,hami-core:"
                            "GPU-d,10,6000,100,T4,1,true,3,hami-core:",
                            "40", "", topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct pod_view view = POD(WITH({GPU, cases[i].count}, {MEM, "10"}));
        struct placement placement;
        view.annotations = PAIRS({cases[i].key, cases[i].policy});
        const enum reason reason = place(&view, &placement);
        ck_assert_msg((reason == REASON_NONE) == (cases[i].cards[0] >= 0), "case %zu", i);
        for (uint32_t j = 0; reason == REASON_NONE && j < placement.n_shares; j++)
            ck_assert_msg(placement.shares[j].card == cases[i].cards[j], "case %zu", i);
    }
}
END_TEST

START_TEST(one_pod_at_a_time_waits_for_the_plugin)
{
    struct pod_view view = POD(WITH({GPU, "1"}, {MEM, "10"}));
    g_autoptr(request) request = dialect_read_request(&view, &options, NULL);
    const struct admission_query query = {
        .request = request, .policy = policies, .options = &options, .patience_ns = INT64_MAX};
    enum reason reason;

    hold("u1", "GPU-b,NVIDIA,500,0:;", "allocating");
    ck_assert_int_eq(dialect_admit(node, &query, NULL, &reason), ADMISSION_WAIT);
    ck_assert_int_eq(dialect_why_wait(node, request), REASON_AWAITING_TURN);
    hold("u1", "GPU-b,NVIDIA,500,0:;", "success");
    ck_assert_int_eq(dialect_admit(node, &query, NULL, &reason), ADMISSION_YES);
    hold("u1", "GPU-b,NVIDIA,500,0:;", "failed");
    ck_assert_int_eq(dialect_admit(node, &query, NULL, &reason), ADMISSION_YES);
}
END_TEST

START_TEST(what_a_plugin_cannot_serve_is_refused)
{
    static const struct {
        const char *dialect, *key, *text;
    } nodes[] = {
        {"4paradigm", "4pd.io/node-nvidia-register", A7},
        {"volcano-vgpu", "volcano.sh/node-vgpu-register", "GPU-a,10,15360,T4,true,hami-core:"},
    };
    const bool volcano = _i == 1;
    const char *count = volcano ? VGPU : GPU;
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology(nodes[_i].dialect, nodes[_i].key, nodes[_i].text, "10", "", topology,
                            NULL));
    node = ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(place(&POD(WITH({count, "1"})), NULL), REASON_NONE);
    ck_assert_int_eq(place(&POD(WITH({count, "1"}), WITH({count, "1"})), NULL),
                     REASON_SEVERAL_GPU_CONTAINERS);
    ck_assert_int_eq(place(&POD(WITH({count, "1"}), INIT({count, "1"})), NULL),
                     REASON_GPU_INIT_CONTAINER);
}
END_TEST

START_TEST(mig_cards_are_refused_by_name)
{
    g_autoptr(topology) topology = topology_new();

    ck_assert(read_topology("hami", REGISTERED, "GPU-a,7,40960,100,A100,0,true,0,mig:", "7", "",
                            topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
    ck_assert_int_eq(place(&POD(WITH({GPU, "1"})), NULL), REASON_MIG_MODE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hami");
    TCase *nodes = tcase_create("nodes"), *pods = tcase_create("pods");
    TCase *placing = tcase_create("placing");

    tcase_add_loop_test(nodes, a_register_is_read_in_every_form, 0,
                        G_N_ELEMENTS(register_cases));
    tcase_add_test(nodes, cards_that_take_nobody);
    tcase_add_test(nodes, other_nodes_are_not_claimed);
    suite_add_tcase(suite, nodes);

    tcase_add_loop_test(pods, requests_are_read, 0, G_N_ELEMENTS(request_cases));
    tcase_add_test(pods, defaults_are_the_administrators);
    tcase_add_test(pods, conditions_are_read);
    tcase_add_test(pods, a_phase_says_who_waits);
    tcase_add_test(pods, a_plain_gpu_bound_by_others_is_not_ours);
    suite_add_tcase(suite, pods);

    tcase_add_checked_fixture(placing, setup, teardown);
    tcase_add_test(placing, hami_is_told_per_container_init_containers_first);
    tcase_add_loop_test(placing, what_is_written_is_read_again, 0, 4);
    tcase_add_test(placing, each_ends_its_text_in_its_own_way);
    tcase_add_loop_test(placing, annotations_are_doubted, 0, G_N_ELEMENTS(doubt_cases));
    tcase_add_test(placing, the_words_of_the_last_bind_count);
    tcase_add_test(placing, each_container_gets_different_cards);
    tcase_add_test(placing, slots_and_cores_are_kept);
    tcase_add_test(placing, all_cores_are_a_card_of_ones_own);
    tcase_add_loop_test(placing, conditions_are_kept, 0, 13);
    tcase_add_test(placing, mutex_means_an_idle_card);
    tcase_add_test(placing, numa_is_a_wish);
    tcase_add_test(placing, one_pod_at_a_time_waits_for_the_plugin);
    tcase_add_loop_test(placing, what_a_plugin_cannot_serve_is_refused, 0, 2);
    tcase_add_test(placing, mig_cards_are_refused_by_name);
    suite_add_tcase(suite, placing);

    return suite_run(suite);
}
