/* SPDX-License-Identifier: Apache-2.0 */
/* HAMi's cards in MIG mode, as its plugin since v2.10 and those before it cut them. */
#include "hami_words.h"
#include "ledger_end.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <gpuledger/mig.h>
#include <string.h>

#define INSTANCES "hami.io/vgpu-mig-allocations"

/* An A100 as the plugin v2.10 registers it. */
#define PROFILES                                                                                   \
    "[{\"name\":\"1g.5gb\",\"memoryMB\":4864,\"core\":14,\"sliceCount\":1,\"placements\":["         \
    "{\"start\":0,\"size\":1},{\"start\":1,\"size\":1},{\"start\":2,\"size\":1},"                   \
    "{\"start\":3,\"size\":1},{\"start\":4,\"size\":1},{\"start\":5,\"size\":1},"                   \
    "{\"start\":6,\"size\":1}]},"                                                                  \
    "{\"name\":\"2g.10gb\",\"memoryMB\":9856,\"core\":28,\"sliceCount\":2,\"placements\":["         \
    "{\"start\":0,\"size\":2},{\"start\":2,\"size\":2},{\"start\":4,\"size\":2}]},"                 \
    "{\"name\":\"3g.20gb\",\"memoryMB\":19968,\"core\":42,\"sliceCount\":3,\"placements\":["        \
    "{\"start\":0,\"size\":4},{\"start\":4,\"size\":4}]},"                                         \
    "{\"name\":\"7g.40gb\",\"memoryMB\":40192,\"core\":100,\"sliceCount\":7,\"placements\":["       \
    "{\"start\":0,\"size\":8}]}]"
#define CARD(uuid, index)                                                                          \
    "{\"id\":\"" uuid "\",\"index\":" index ",\"count\":7,\"devmem\":40960,\"devcore\":100,"         \
    "\"type\":\"NVIDIA A100-SXM4-40GB\",\"mode\":\"mig\",\"health\":true,\"migProfiles\":" PROFILES "}"
#define NEW_NODE "[" CARD("GPU-a", "0") "," CARD("GPU-b", "1") "]"
#define OLD_NODE                                                                                   \
    "GPU-a,10,40536,100,NVIDIA-NVIDIA A100-SXM4-40GB,0,true,0,mig:"                                \
    "GPU-b,10,40536,100,NVIDIA-NVIDIA A100-SXM4-40GB,0,true,1,mig:"

static struct dialect_options options;
static struct ledger *book;
static struct node *node;

static bool read_node(const char *text, struct topology *topology, GError **error)
{
    g_autofree char *warning = NULL;
    const struct node_view view = {.name = "n1",
                                   .annotations = PAIRS({REGISTERED, text}),
                                   .allocatable = PAIRS({GPU, "14"})};
    return dialect_read_topology(&view, &options, topology, &warning, error);
}

#define VOLCANO_ALLOCATED "volcano.sh/vgpu-ids-new"

static void put_volcano_node(void)
{
    g_autoptr(topology) topology = topology_new();
    const struct node_view view = {
        .name = "n1",
        .annotations = PAIRS({"volcano.sh/node-vgpu-register",
                              "GPU-a,10,40536,NVIDIA-NVIDIA A100-SXM4-40GB,true,mig:"
                              "GPU-b,10,40536,NVIDIA-NVIDIA A100-SXM4-40GB,true,mig:"}),
        .allocatable = PAIRS({"volcano.sh/vgpu-number", "20"})};

    ck_assert(dialect_read_topology(&view, &options, topology, NULL, NULL));
    node = ledger_set_topology(book, "n1", topology);
}

static void put_node(const char *text)
{
    g_autoptr(topology) topology = topology_new();
    g_autoptr(GError) error = NULL;

    ck_assert_msg(read_node(text, topology, &error), "%s", error ? error->message : "no error");
    node = ledger_set_topology(book, "n1", topology);
}

static void setup(void)
{
    options = (struct dialect_options){0};
    book = ledger_new();
    put_node(NEW_NODE);
}

static void teardown(void)
{
    ledger_end(book);
}

static enum reason place(const struct pod_view *view, struct placement *placement)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(view, &options, &error);
    enum reason reason;

    ck_assert_msg(request != NULL, "%s", error ? error->message : "no request");
    const struct admission_query query = {
        .request = request, .policy = policies, .options = &options, .patience_ns = INT64_MAX};
    dialect_admit(node, &query, placement, &reason);
    return reason;
}

/* The pod as its Binding leaves it, in the ledger and as text. */
static const struct allocation *bind(const struct pod_view *view, struct annotations *written)
{
    g_autoptr(request) request = dialect_read_request(view, &options, NULL);
    struct placement placement;
    enum reason reason;

    ck_assert_int_eq(place(view, &placement), REASON_NONE);
    struct allocation *allocation =
        allocation_new(view->uid, view->ns, view->name, placement.n_shares);
    const struct request *reading = request;
    while (!node_offers(node, reading->dialect))
        reading = reading->alternative;
    allocation->dialect = reading->dialect;
    allocation->terms = terms_ref(reading->terms);
    allocation->assume_time_ns = INT64_C(1700000000000000000);
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    allocation = ledger_reserve(book, "n1", allocation, &reason);
    ck_assert_ptr_nonnull(allocation);
    allocation->dialect->write_annotations(allocation, node, written);
    return allocation;
}

#define POD(id, ...)                                                                               \
    (struct pod_view) { .ns = "ml", .name = id, .uid = id, CONTAINERS(__VA_ARGS__) }

START_TEST(registered_profiles_are_read)
{
    const struct card *card = node_card(node, 0);

    ck_assert(card->healthy);
    ck_assert_int_eq(card->memory, 40960 * MIB);
    ck_assert_int_eq(card->mig->n, 4);
    ck_assert_str_eq(card->mig->items[1].name, "2g.10gb");
    ck_assert_int_eq(card->mig->items[1].memory, 9856 * MIB);
    ck_assert_int_eq(card->mig->items[1].core, 280);
    ck_assert_int_eq(card->mig->items[1].n_places, 3);
    ck_assert_int_eq(card->mig->items[1].places[2].start, 4);
    ck_assert_int_eq(card->mig->items[1].places[2].size, 2);
}
END_TEST

#define ONE_PROFILE(profile)                                                                       \
    "[{\"id\":\"GPU-a\",\"count\":7,\"devmem\":40960,\"mode\":\"mig\",\"health\":true,"             \
    "\"migProfiles\":[" profile "]}]"

START_TEST(profiles_that_no_card_has_are_errors)
{
    static const char *const texts[] = {
        ONE_PROFILE("{\"memoryMB\":1}"),
        ONE_PROFILE("{\"name\":\"1g.5gb\",\"memoryMB\":0}"),
        ONE_PROFILE("{\"name\":\"1g.5gb\",\"memoryMB\":-1}"),
        ONE_PROFILE("{\"name\":\"1g.5gb\",\"memoryMB\":5,\"core\":101}"),
        ONE_PROFILE("{\"name\":\"1g.5gb\",\"memoryMB\":5,\"placements\":[{\"start\":1}]}"),
        ONE_PROFILE("{\"name\":\"1g.5gb\",\"memoryMB\":5,\"placements\":[{\"start\":63,\"size\":2}]}"),
        ONE_PROFILE("{\"name\":\"1g.5gb\",\"memoryMB\":5,\"placements\":[{\"start\":-1,\"size\":2}]}"),
        ONE_PROFILE("{\"name\":\"a-name-that-is-longer-than-any-that-is-known\",\"memoryMB\":5}"),
        ONE_PROFILE("7"),
    };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(topology) topology = topology_new();
        g_autoptr(GError) error = NULL;
        ck_assert_msg(!read_node(texts[i], topology, &error), "case %zu", i);
        ck_assert_ptr_nonnull(strstr(error->message, "node 'n1': annotation"));
        ck_assert_ptr_nonnull(strstr(error->message, "card 'GPU-a'"));
    }
}
END_TEST

START_TEST(instances_are_written_as_v2_10_reads_them)
{
    const struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "a",
        CONTAINERS({.name = "c0"}, {.name = "c1", .limits = PAIRS({GPU, "2"}, {MEM, "8000"})},
                   {.name = "i0", .init = true}),
    };
    g_auto(annotations) written = {0};

    bind(&view, &written);
    ck_assert_str_eq(find(&written, ALLOCATED),
                     ";;GPU-a,NVIDIA,9856,28:GPU-a,NVIDIA,9856,28:;");
    ck_assert_str_eq(find(&written, INSTANCES),
                     "[{\"containerIndex\":2,\"deviceIndex\":0,\"gpuUUID\":\"GPU-a\","
                     "\"profile\":\"2g.10gb\",\"placement\":{\"start\":0,\"size\":2}},"
                     "{\"containerIndex\":2,\"deviceIndex\":1,\"gpuUUID\":\"GPU-a\","
                     "\"profile\":\"2g.10gb\",\"placement\":{\"start\":2,\"size\":2}}]");
}
END_TEST

START_TEST(instances_are_written_as_older_plugins_read_them)
{
    g_auto(annotations) one = {0}, two = {0}, three = {0};

    put_node(OLD_NODE);
    ck_assert_int_eq(node_card(node, 0)->memory, 40960 * MIB);
    bind(&POD("a", WITH({GPU, "1"}, {MEM, "3000"})), &one);
    ck_assert_str_eq(find(&one, ALLOCATED), "GPU-a[0-0],NVIDIA,5120,14:;");
    ck_assert_ptr_null(find(&one, INSTANCES));
    bind(&POD("b", WITH({GPU, "1"}, {MEM, "4000"})), &two);
    ck_assert_str_eq(find(&two, ALLOCATED), "GPU-a[0-1],NVIDIA,5120,14:;");
    /* The card has its template; another size needs another card. */
    bind(&POD("c", WITH({GPU, "1"}, {MEM, "8000"})), &three);
    ck_assert_str_eq(find(&three, ALLOCATED), "GPU-b[2-0],NVIDIA,20480,42:;");
    /* The fuller card has an instance left, but one that is larger than needed. */
    struct placement placement;
    ck_assert_int_eq(place(&POD("e", WITH({GPU, "1"}, {MEM, "10"})), &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].card, 0);
    ck_assert_int_eq(place(&POD("d", WITH({GPU, "1"})), &(struct placement){0}),
                     REASON_NO_MIG_PLACE);
    ck_assert_int_eq(place(&POD("d", WITH({GPU, "2"}, {MEM, "8000"})), &(struct placement){0}),
                     REASON_NO_MIG_PLACE);
}
END_TEST

/* An A100 with 80 GB: what an instance has, whatever older charts say of it. */
START_TEST(no_instance_is_larger_than_it_is)
{
    static const struct {
        const char *asked, *text;
    } cases[] = {
        {"9728", "GPU-a[0-0],NVIDIA,9728,14:;"},
        {"10000", "GPU-a[2-0],NVIDIA,40192,42:;"},
        {"40192", "GPU-a[2-0],NVIDIA,40192,42:;"},
        {"40193", "GPU-a[3-0],NVIDIA,80896,100:;"},
    };

    put_node("GPU-a,10,81920,100,NVIDIA-NVIDIA A100-SXM4-80GB,0,true,0,mig:");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(annotations) written = {0};
        bind(&POD("a", WITH({GPU, "1"}, {MEM, cases[i].asked})), &written);
        ck_assert_str_eq(find(&written, ALLOCATED), cases[i].text);
        ledger_drop(book, "a");
    }
}
END_TEST

#define VOLCANO(id, memory)                                                                        \
    POD(id, WITH({"volcano.sh/vgpu-number", "1"}, {"volcano.sh/vgpu-memory", memory}))

START_TEST(volcanos_templates_are_groups)
{
    g_auto(annotations) one = {0}, two = {0}, three = {0};

    put_volcano_node();
    ck_assert(node_card(node, 0)->healthy);
    bind(&VOLCANO("a", "3000"), &one);
    ck_assert_str_eq(find(&one, VOLCANO_ALLOCATED), "GPU-a[group1-0],NVIDIA,5120,14:");
    bind(&VOLCANO("b", "4000"), &two);
    ck_assert_str_eq(find(&two, VOLCANO_ALLOCATED), "GPU-a[group1-1],NVIDIA,5120,14:");
    bind(&VOLCANO("c", "8000"), &three);
    ck_assert_str_eq(find(&three, VOLCANO_ALLOCATED), "GPU-b[group3-0],NVIDIA,20480,42:");
    ck_assert_int_eq(place(&VOLCANO("d", "30000"), &(struct placement){0}), REASON_NO_MIG_PLACE);
}
END_TEST

START_TEST(what_volcanos_pods_hold_is_occupied)
{
    static const struct {
        const char *devices;
        bool all;
        uint64_t slices;
    } cases[] = {
        {"GPU-a[group3-1],NVIDIA,20480,42:", false, 1 << 1},
        {"GPU-a[3-1],NVIDIA,20480,42:", true},
        {"GPU-a[group0-1],NVIDIA,20480,42:", true},
        {"GPU-a[groupx-1],NVIDIA,20480,42:", true},
        {"GPU-a[grou],NVIDIA,20480,42:", true},
        {"GPU-a,NVIDIA,20480,42:", true},
    };

    put_volcano_node();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct pod_view view = VOLCANO("a", "8000");
        view.node_name = "n1";
        view.phase = "Running";
        view.annotations = PAIRS({VOLCANO_ALLOCATED, cases[i].devices});
        ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
        const struct mig_taken taken = mig_taken_of(node, node_card(node, 0), NULL);
        ck_assert_msg(taken.all == cases[i].all, "case %zu", i);
        ck_assert_msg(taken.all || (taken.slices == cases[i].slices && taken.layout == 3),
                      "case %zu", i);
    }
}
END_TEST

/* What the driver counts first the administrator has to say. */
START_TEST(templates_of_several_sizes_have_an_order)
{
    static const struct {
        const char *name, *memory, *written;
    } pods[] = {
        {"a", "8000", "GPU-a[1-0],NVIDIA,10240,28:;"},
        {"b", "8000", "GPU-a[1-1],NVIDIA,10240,28:;"},
        {"c", "4000", "GPU-a[1-3],NVIDIA,5120,14:;"},
        {"d", "4000", "GPU-b[0-0],NVIDIA,5120,14:;"},
        {"e", "8000", "GPU-a[1-2],NVIDIA,10240,28:;"},
    };

    options.hami_mig_templates =
        (char *)"A100=7x1g.5gb:5120, 3x2g.10gb:10240 + 1x1g.5gb:5120";
    put_node(OLD_NODE);
    for (size_t i = 0; i < G_N_ELEMENTS(pods); i++) {
        g_auto(annotations) written = {0};
        bind(&POD(pods[i].name, WITH({GPU, "1"}, {MEM, pods[i].memory})), &written);
        ck_assert_str_eq(find(&written, ALLOCATED), pods[i].written);
    }
    ck_assert_int_eq(place(&POD("f", WITH({GPU, "1"}, {MEM, "8000"})), &(struct placement){0}),
                     REASON_NO_MIG_PLACE);
}
END_TEST

START_TEST(templates_that_cannot_be_read)
{
    static const char *const texts[] = {"A100=3x2g.10gb:10240+", "A100=+", "A100=",
                                        "A100=30x1g.5gb:1+3x2g.10gb:1", "A100=1x1g.5gb:1,,"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        options.hami_mig_templates = (char *)texts[i];
        put_node(OLD_NODE);
        ck_assert_msg(!node_card(node, 0)->healthy || node_card(node, 0)->mig->n == 0, "%s",
                      texts[i]);
    }
}
END_TEST

START_TEST(what_is_written_is_read_again)
{
    const bool old = _i == 1;
    struct pod_view view = POD("a", WITH({GPU, "2"}, {MEM, "8000"}), WITH({GPU, "1"}));
    g_auto(annotations) written = {0};
    struct string_pair pairs[ANNOTATIONS_MAX];

    if (old)
        put_node(OLD_NODE);
    const struct allocation *held = bind(&view, &written);
    for (size_t i = 0; i < written.n; i++)
        pairs[i] = (struct string_pair){written.items[i].key, written.items[i].value};
    view.node_name = "n1";
    view.annotations = (struct string_pairs){pairs, written.n};
    g_autoptr(allocation) read =
        ledger_foresee(node, dialect_read_allocation(&view, &options, NULL));
    ck_assert_int_eq(read->distrust, DISTRUST_NONE);
    ck_assert_uint_eq(read->n_shares, 3);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert(mig_place_equal(read->shares[i].place, held->shares[i].place));
        ck_assert_int_eq(read->shares[i].memory.value, held->shares[i].memory.value);
        ck_assert_int_eq(read->shares[i].core, held->shares[i].core);
        ck_assert_int_eq(read->shares[i].exclusive, held->shares[i].exclusive);
    }
}
END_TEST

/* What the plugin adds does not matter; what cannot be trusted closes the card. */
START_TEST(what_others_hold_is_occupied)
{
#define ENTRY(card, container, more)                                                               \
    "[{\"containerIndex\":" container ",\"gpuUUID\":\"" card "\",\"profile\":\"3g.20gb\","           \
    "\"placement\":{\"start\":4,\"size\":4}" more "}]"
    static const struct {
        const char *devices, *instances;
        bool all;
        uint64_t slices;
        bool warned;
    } cases[] = {
        {"GPU-a,NVIDIA,19968,42:;",
         ENTRY("GPU-a", "0",
               ",\"migUUID\":\"MIG-1\",\"gpuInstanceID\":2,\"computeInstanceID\":0"),
         false, 0xf0},
        /* More than was asked for, and no instance to have it from. */
        {"GPU-a,NVIDIA,19968,42:;", ENTRY("GPU-b", "0", ""), true, 0, true},
        {"GPU-a,NVIDIA,19968,42:;", ENTRY("GPU-a", "1", ""), true, 0, true},
        {"GPU-a,NVIDIA,19968,42:;", "[{\"gpuUUID\":\"GPU-a\",\"profile\":\"x\"}]", true, 0, true},
        {"GPU-a,NVIDIA,19968,42:;", "[", true, 0, true},
        {"GPU-a,NVIDIA,19968,42:;", NULL, true, 0, true},
        {"GPU-a,NVIDIA,8000,0:;", NULL, true}, /* it may be any instance */
        {"GPU-a[2-1],NVIDIA,20480,42:;", NULL, false, 1 << 1}, /* of a plugin before v2.10 */
        {"GPU-a[x],NVIDIA,20480,42:;", NULL, true, 0, true},
        {"GPU-a[1-99],NVIDIA,20480,42:;", NULL, true, 0, true},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct string_pair pairs[] = {{ALLOCATED, cases[i].devices},
                                            {INSTANCES, cases[i].instances}};
        struct pod_view view = POD("a", WITH({GPU, "1"}, {MEM, "8000"}));
        g_autofree char *warning = NULL;
        view.node_name = "n1";
        view.phase = "Running";
        view.annotations = (struct string_pairs){pairs, cases[i].instances ? 2 : 1};
        ledger_put(book, "n1", dialect_read_allocation(&view, &options, &warning));
        const struct mig_taken taken = mig_taken_of(node, node_card(node, 0), NULL);
        ck_assert_msg(taken.all == cases[i].all, "case %zu", i);
        if (!taken.all)
            ck_assert_msg(taken.slices == cases[i].slices, "case %zu", i);
        ck_assert_msg((warning != NULL) == cases[i].warned, "case %zu: %s", i, warning);
        /* Instances of old templates and new places exclude each other. */
        struct placement placement;
        ck_assert_int_eq(place(&POD("b", WITH({GPU, "1"}, {MEM, "8000"})), &placement),
                         REASON_NONE);
        ck_assert_int_eq(placement.shares[0].card, i == 0 ? 0 : 1);
        ledger_drop(book, "a");
    }
}
END_TEST

/* An instance has no more than its place has, whatever the annotation says of it. */
START_TEST(an_instance_counts_as_its_place)
{
    struct pod_view view = POD("a", WITH({GPU, "1"}, {MEM, "1"}));

    view.node_name = "n1";
    view.phase = "Running";
    view.annotations =
        PAIRS({ALLOCATED, "GPU-a,NVIDIA,40192,100:;"},
              {INSTANCES, "[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"GPU-a\",\"profile\":"
                          "\"1g.5gb\",\"placement\":{\"start\":3,\"size\":1}}]"});
    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
    ck_assert_int_eq(node->cards[0].memory_used, 4864 * MIB);
    ck_assert_int_eq(node->cards[0].core_used, 140);
    ck_assert_int_eq(node->cards[0].exclusive, 0);
    ck_assert_uint_eq(mig_taken_of(node, node_card(node, 0), NULL).slices, 1 << 3);
    ledger_drop(book, "a");
}
END_TEST

START_TEST(sizes_are_chosen_by_what_is_asked)
{
    const struct {
        struct container_view container;
        int64_t mib; /* 0: refused */
        enum reason reason;
    } cases[] = {
        {WITH({GPU, "1"}, {MEM, "1"}), 4864},
        {WITH({GPU, "1"}, {MEM, "4865"}), 9856},
        {{.name = "c", .hook = HOOK_OFF, .limits = PAIRS({GPU, "1"}, {MEM, "4865"})}, 9856},
        {WITH({GPU, "1"}, {PERCENT, "25"}), 19968}, /* 10048 MiB: of 40192 */
        {WITH({GPU, "1"}, {PERCENT, "24"}), 9856},
        {WITH({GPU, "1"}), 40192},
        {WITH({GPU, "1"}, {MEM, "1"}, {CORES, "14"}), 4864},
        {WITH({GPU, "1"}, {MEM, "1"}, {CORES, "30"}), 19968},
        {WITH({GPU, "1"}, {MEM, "1"}, {CORES, "100"}), 40192},
        {WITH({GPU, "1"}, {MEM, "40193"}), 0, REASON_CARD_TOO_SMALL},
        {WITH({GPU, "15"}, {MEM, "1"}), 0, REASON_NO_MIG_PLACE},
        {WITH({GPU, "14"}, {MEM, "1"}), 4864},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct pod_view view = {.ns = "ml", .name = "a", .uid = "a",
                                .containers = &cases[i].container, .n_containers = 1};
        struct placement placement;
        const enum reason reason = place(&view, &placement);
        ck_assert_msg(reason == cases[i].reason, "case %zu: %s", i, reason_info(reason)->code);
        if (reason == REASON_NONE)
            ck_assert_msg(placement.shares[0].memory.value == cases[i].mib * MIB, "case %zu", i);
    }
}
END_TEST

#define HALF(name, core)                                                                           \
    "{\"name\":\"" name "\",\"memoryMB\":20000,\"core\":" core                                     \
    ",\"sliceCount\":3,\"placements\":["                                                           \
    "{\"start\":0,\"size\":4}]}"
#define HALVES(one, other)                                                                         \
    "[{\"id\":\"GPU-a\",\"index\":0,\"count\":7,\"devmem\":40960,\"mode\":\"mig\",\"health\":"     \
    "true,"                                                                                        \
    "\"migProfiles\":[" one "," other "]}]"

/* Of profiles with the same memory and place, the text names the one that is counted. */
START_TEST(the_instance_that_is_counted_is_named)
{
    static const char *const nodes[] = {HALVES(HALF("3g.20gb", "42"), HALF("4g.20gb", "57")),
                                        HALVES(HALF("4g.20gb", "57"), HALF("3g.20gb", "42"))};
    static const struct {
        const char *cores, *profile, *text;
        int32_t counted;
    } cases[] = {
        {"0", "3g.20gb", "GPU-a,NVIDIA,20000,42:;", 420},
        {"42", "3g.20gb", "GPU-a,NVIDIA,20000,42:;", 420},
        {"50", "4g.20gb", "GPU-a,NVIDIA,20000,57:;", 570},
        {"90", "4g.20gb", "GPU-a,NVIDIA,20000,90:;", 570},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const struct pod_view view =
            POD("a", WITH({GPU, "1"}, {MEM, "20000"}, {CORES, cases[i].cores}));
        g_auto(annotations) written = {0};
        g_autofree char *named = g_strdup_printf("\"profile\":\"%s\"", cases[i].profile);

        put_node(nodes[_i]);
        bind(&view, &written);
        ck_assert_int_eq(node->cards[0].core_used, cases[i].counted);
        ck_assert_str_eq(find(&written, ALLOCATED), cases[i].text);
        ck_assert_ptr_nonnull(strstr(find(&written, INSTANCES), named));
        ledger_drop(book, "a");
    }
}
END_TEST

START_TEST(a_mode_may_be_asked_for)
{
    struct pod_view view = POD("a", WITH({GPU, "1"}, {MEM, "10"}));
    struct placement placement;

    view.annotations = PAIRS({"nvidia.com/vgpu-mode", "hami-core"});
    ck_assert_int_eq(place(&view, &placement), REASON_TERMS);
    view.annotations = PAIRS({"nvidia.com/vgpu-mode", "mig"});
    ck_assert_int_eq(place(&view, &placement), REASON_NONE);
}
END_TEST

/* What a guest sees of a card its host has cut, if anybody. */
START_TEST(a_guest_cuts_no_cards)
{
    static const char *const registers[] = {NEW_NODE, OLD_NODE};
    struct pod_view view = POD("a", WITH({GPU, "1"}, {MEM, "10"}));

    for (size_t i = 0; i < 4; i++) {
        const bool guest = i % 2;
        g_autoptr(topology) topology = topology_new();
        g_autofree char *warning = NULL;
        const struct node_view words = {
            .name = "n1",
            .annotations = PAIRS({REGISTERED, registers[i / 2]}),
            .labels = PAIRS({"nvidia.com/vgpu.present", guest ? "true" : "false"}),
            .allocatable = PAIRS({GPU, "14"})};
        ck_assert(dialect_read_topology(&words, &options, topology, &warning, NULL));
        node = ledger_set_topology(book, "n1", topology);
        ck_assert_int_eq(place(&view, &(struct placement){0}) == REASON_NONE, !guest);
        ck_assert_int_eq(warning && strstr(warning, "guest"), guest);
    }
}
END_TEST

START_TEST(templates_may_be_said)
{
    struct placement placement;

    options.hami_mig_templates = (char *)"H100=7x1g.10gb:9984;A100=-,3x2g.10gb:9856,-";
    put_node(OLD_NODE);
    ck_assert_int_eq(place(&POD("a", WITH({GPU, "6"}, {MEM, "8000"})), &placement), REASON_NONE);
    ck_assert_int_eq(placement.shares[0].place.layout, 2);
    ck_assert_int_eq(placement.shares[0].memory.value, 9856 * MIB);
    options.hami_mig_templates = (char *)"H100=7x1g.10gb:9984";
    put_node(OLD_NODE);
    ck_assert_int_eq(place(&POD("a", WITH({GPU, "1"}, {MEM, "8000"})), &placement),
                     REASON_MIG_MODE);
    options.hami_mig_templates = (char *)"A100=7x1g.5gb";
    put_node(OLD_NODE);
    ck_assert(!node_card(node, 0)->healthy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hami_mig");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, registered_profiles_are_read);
    tcase_add_test(all, profiles_that_no_card_has_are_errors);
    tcase_add_test(all, instances_are_written_as_v2_10_reads_them);
    tcase_add_test(all, instances_are_written_as_older_plugins_read_them);
    tcase_add_test(all, volcanos_templates_are_groups);
    tcase_add_test(all, what_volcanos_pods_hold_is_occupied);
    tcase_add_test(all, templates_of_several_sizes_have_an_order);
    tcase_add_test(all, templates_that_cannot_be_read);
    tcase_add_loop_test(all, what_is_written_is_read_again, 0, 2);
    tcase_add_test(all, what_others_hold_is_occupied);
    tcase_add_test(all, an_instance_counts_as_its_place);
    tcase_add_test(all, sizes_are_chosen_by_what_is_asked);
    tcase_add_test(all, no_instance_is_larger_than_it_is);
    tcase_add_loop_test(all, the_instance_that_is_counted_is_named, 0, 2);
    tcase_add_test(all, a_mode_may_be_asked_for);
    tcase_add_test(all, a_guest_cuts_no_cards);
    tcase_add_test(all, templates_may_be_said);
    suite_add_tcase(suite, all);

    return suite_run(suite);
}
