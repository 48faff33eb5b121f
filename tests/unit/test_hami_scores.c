/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cards HAMi's pods get where they say what they prefer: connected ones, or by weights.
 */
#include "desk.h"
#include "suite.h"

#include <gpuledger/links.h>

#define GPU "nvidia.com/gpu"
#define MEM "nvidia.com/gpumem"
#define CORES "nvidia.com/gpucores"
#define POLICY "hami.io/gpu-scheduler-policy"
#define WEIGHTS "hami.io/device-scoring-weights"
#define SCORES "hami.io/node-nvidia-score"

/* Four cards; 0 with 3 and 1 with 2 by NVLink. */
#define LINKED                                                                                     \
    "[{\"uuid\":\"GPU-0\",\"score\":{\"GPU-1\":10,\"GPU-2\":10,\"GPU-3\":200,\"GPU-0\":900}},"        \
    "{\"uuid\":\"GPU-1\",\"score\":{\"GPU-2\":300,\"GPU-3\":10,\"GPU-9\":70000}},"                    \
    "{\"uuid\":\"GPU-2\",\"score\":{\"GPU-3\":500}},{\"uuid\":\"GPU-3\",\"score\":{\"GPU-2\":20}},"   \
    "{\"uuid\":\"GPU-9\",\"score\":{\"GPU-1\":9}}]"

static char *warning;

static struct node *add_node(const char *scores, const char *mode)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(topology) topology = topology_new();

    for (int i = 0; i < 4; i++)
        g_string_append_printf(text, "GPU-%d,10,10000,100,NVIDIA A100,0,true,%d,%s:", i, i, mode);
    const struct node_view view = {
        .name = "n1",
        .annotations = PAIRS({"hami.io/node-nvidia-register", text->str}, {SCORES, scores}),
        .allocatable = PAIRS({GPU, "40"}),
    };
    g_clear_pointer(&warning, g_free);
    ck_assert(dialect_read_topology(&view, &options, topology, &warning, NULL));
    return ledger_set_topology(book, view.name, topology);
}

static void clear(void)
{
    g_clear_pointer(&warning, g_free);
    teardown();
}

struct wish {
    const char *key, *value; /* an annotation */
    const char *count, *memory, *cores, *policy;
};

/* The cards in order, "0,3"; else the reason or the error. */
static char *place(const struct node *node, const struct wish *wish)
{
    const struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u",
        .annotations = PAIRS({wish->key ? wish->key : "x", wish->value}),
        CONTAINERS({.name = "c", .limits = PAIRS({GPU, wish->count}, {MEM, wish->memory},
                                                 {CORES, wish->cores ? wish->cores : "0"})}),
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(&view, &options, &error);
    g_autoptr(GString) text = g_string_new(NULL);
    struct placement placement;
    enum reason reason;

    if (!request)
        return g_strdup(error->message);
    const struct admission_query query = {.request = request,
                                          .policy = policy_find(wish->policy ? wish->policy
                                                                             : "binpack"),
                                          .options = &options,
                                          .patience_ns = INT64_MAX};
    if (dialect_admit(node, &query, &placement, &reason) != ADMISSION_YES)
        return g_strdup(reason_info(reason)->code);
    for (uint32_t i = 0; i < placement.n_shares; i++)
        g_string_append_printf(text, "%s%d", text->len ? "," : "", placement.shares[i].card);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void expect(const struct node *node, const char *wanted, struct wish wish)
{
    g_autofree char *got = place(node, &wish);

    ck_assert_msg(strstr(got, wanted) && (strchr(wanted, ' ') || g_str_equal(got, wanted)),
                  "%s %s: %s instead of %s", wish.key, wish.value, got, wanted);
}

static void hold(struct node *node, int card, const char *mib, int percent)
{
    static int n;
    g_autofree char *uid = g_strdup_printf("held-%d", n++);
    struct allocation *allocation = allocation_new(uid, "ml", uid, 1);

    allocation->dialect = dialect_find("hami");
    allocation->shares[0] = (struct share){.memory = {atoi(mib) * MIB, AMOUNT_BYTES},
                                           .card = card,
                                           .core = percent * 10};
    ledger_put(book, node->name, allocation);
}

#define TOPOLOGY(n) {.key = POLICY, .value = "topology-aware", .count = n, .memory = "100"}

START_TEST(connected_cards_go_together)
{
    struct node *node = add_node(LINKED, "hami-core");

    ck_assert_ptr_null(warning);
    expect(node, "1,2", (struct wish)TOPOLOGY("2"));
    expect(node, "1,2,3", (struct wish)TOPOLOGY("3")); /* 300 + 20 + 10, where ends differ 20 */
    expect(node, "0,1,2,3", (struct wish)TOPOLOGY("4"));
    expect(node, "card_count", (struct wish)TOPOLOGY("5"));
    /* Without the wish, and one alone: that which is missed least, 0 with 10 + 10 + 200. */
    expect(node, "0,1", (struct wish){.count = "2", .memory = "100"});
    expect(node, "0", (struct wish)TOPOLOGY("1"));
    hold(node, 2, "10000", 0);
    expect(node, "0,3", (struct wish)TOPOLOGY("2"));
    expect(node, "1", (struct wish)TOPOLOGY("1")); /* its friend is full: 10 + 10 */
    expect(node, "0,3",
           (struct wish){.key = POLICY, .value = "spread,topology-aware", .count = "2",
                         .memory = "100"});
}
END_TEST

START_TEST(equals_go_by_policy)
{
    struct node *node = add_node("[{\"uuid\":\"GPU-0\",\"score\":{\"GPU-1\":0}}]", "hami-core");

    hold(node, 3, "5000", 0);
    hold(node, 2, "4000", 0);
    expect(node, "3", (struct wish)TOPOLOGY("1"));
    expect(node, "3,2", (struct wish)TOPOLOGY("2"));
    node = add_node(LINKED, "hami-core");
    hold(node, 1, "7000", 0);
    expect(node, "1,2", (struct wish)TOPOLOGY("2"));
}
END_TEST

START_TEST(scores_that_cannot_be_read)
{
    static const char *const texts[] = {"[", "[7]", "[{\"score\":{}}]",
                                        "[{\"uuid\":\"GPU-0\",\"score\":[]}]"};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        struct node *node = add_node(texts[i], "hami-core");
        ck_assert_msg(warning && strstr(warning, SCORES), "%s: %s", texts[i], warning);
        expect(node, "0,1", (struct wish)TOPOLOGY("2"));
    }
    struct node *node = add_node("[]", "hami-core");
    ck_assert_ptr_null(warning);
    expect(node, "0,1", (struct wish)TOPOLOGY("2"));
}
END_TEST

START_TEST(a_node_keeps_its_links)
{
    struct node *node = add_node(LINKED, "hami-core");
    g_autoptr(ledger) other = ledger_new();

    const struct node *copy = ledger_copy_node(other, node);
    ledger_set_topology(book, "n1", NULL);
    ck_assert_ptr_null(node->links);
    expect(copy, "1,2", (struct wish)TOPOLOGY("2"));
}
END_TEST

#define WEIGHTED(text, name) {.key = WEIGHTS, .value = text, .count = "1", .memory = "100", .policy = name}

START_TEST(weights_say_what_is_full)
{
    struct node *node = add_node("[]", "hami-core");

    hold(node, 1, "6000", 10);
    hold(node, 2, "100", 60);
    for (int i = 0; i < 5; i++)
        hold(node, 3, "10", 0);
    expect(node, "1", (struct wish)WEIGHTED("slot=0,core=0,memory=1", "binpack"));
    expect(node, "2", (struct wish)WEIGHTED(" core = 3 , slot=0,memory=1", "binpack"));
    expect(node, "3", (struct wish)WEIGHTED("slot=1,core=0,memory=0", "binpack"));
    expect(node, "1", (struct wish)WEIGHTED("slot=1,core=1,memory=3", "binpack"));
    expect(node, "0", (struct wish)WEIGHTED("slot=1,core=1,memory=3", "spread"));
    hold(node, 0, "3000", 30);
    expect(node, "3", (struct wish)WEIGHTED("slot=0,core=1,memory=1", "spread"));
    expect(node, "2", (struct wish)WEIGHTED("slot=1,core=0,memory=1", "spread"));
    expect(node, "0", (struct wish)WEIGHTED("slot=1,core=0,memory=1", "first-fit"));
}
END_TEST

START_TEST(weights_that_are_none)
{
    static const char *const texts[] = {
        "1", "slot=1", "slot=1,core=1", "slot=0,core=0,memory=0", "slot=1,slot=1,core=1",
        "slot=-1,core=1,memory=1", "slot=1,core=1,memory=x", "slot=1,core=1,memory=1,more=1",
        "slot=1,core=1,disk=1", "slot=1,core=1,memory=10000000", ",,,", "slot=1,core=1,memory=1,"};
    struct node *node = add_node("[]", "hami-core");

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        expect(node, "is not like 'slot=", (struct wish)WEIGHTED(texts[i], "binpack"));
    expect(node, "0", (struct wish)WEIGHTED("", "binpack"));
}
END_TEST

/* A pod that is bound counts, whatever has become of its annotations. */
START_TEST(bad_weights_hide_nobody)
{
    g_autofree char *text = NULL;
    const struct pod_view view = {
        .ns = "ml", .name = "a", .uid = "u", .node_name = "n1", .phase = "Running",
        .annotations = PAIRS({WEIGHTS, "bad"}, {"hami.io/vgpu-node", "n1"},
                             {"hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,100,0:;"}),
        CONTAINERS({.name = "c", .limits = PAIRS({GPU, "1"}, {MEM, "100"})}),
    };
    const struct allocation *allocation =
        ledger_put(book, "n1", dialect_read_allocation(&view, &options, &text));

    ck_assert_ptr_nonnull(allocation);
    ck_assert_uint_eq(allocation->n_shares, 1);
    ck_assert_int_eq(allocation->distrust, DISTRUST_NONE);
}
END_TEST

/* --- the search against all sets ------------------------------------------------------------- */

static int64_t sum_of(const struct links *links, uint32_t set)
{
    int64_t sum = 0;

    for (int32_t i = 0; i < links->n; i++) {
        for (int32_t j = 0; j < i; j++)
            sum += (set >> i & 1) && (set >> j & 1) ? links_between(links, i, j) : 0;
    }
    return sum;
}

START_TEST(no_set_is_better)
{
    g_autoptr(GRand) chance = g_rand_new_with_seed((guint32)_i + 1);
    const int32_t n = g_rand_int_range(chance, 2, 9), count = g_rand_int_range(chance, 2, n + 1);
    struct links *links = links_new(n);
    int32_t cards[8], chosen[8];
    int64_t most = -1;
    uint32_t found = 0;

    for (int32_t i = 0; i < n; i++) {
        cards[i] = i;
        for (int32_t j = 0; j < i; j++)
            links_set(links, i, j, (uint16_t)g_rand_int_range(chance, 0, 6));
    }
    links_choose(links, cards, n, count, chosen);
    for (int32_t i = 0; i < count; i++)
        found |= 1U << chosen[i];
    ck_assert_int_eq(__builtin_popcount(found), count);
    for (uint32_t set = 0; set < 1U << n; set++) {
        if (__builtin_popcount(set) == count)
            most = MAX(most, sum_of(links, set));
    }
    ck_assert_int_eq(sum_of(links, found), most);
    links_unref(links);
}
END_TEST

/* More sets than are looked at: still so many cards, all different. */
START_TEST(many_cards_end_in_time)
{
    struct links *links = links_new(LINKS_CARDS_MAX);
    int32_t cards[LINKS_CARDS_MAX], chosen[LINKS_CARDS_MAX];

    for (int32_t i = 0; i < LINKS_CARDS_MAX; i++)
        cards[i] = i;
    links_choose(links, cards, LINKS_CARDS_MAX, LINKS_CARDS_MAX / 2, chosen);
    for (int32_t i = 1; i < LINKS_CARDS_MAX / 2; i++)
        ck_assert_int_gt(chosen[i], chosen[i - 1]);
    links_unref(links);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hami_scores");
    TCase *tests = tcase_create("cards"), *search = tcase_create("search");

    tcase_add_checked_fixture(tests, setup, clear);
    tcase_add_test(tests, connected_cards_go_together);
    tcase_add_test(tests, equals_go_by_policy);
    tcase_add_test(tests, scores_that_cannot_be_read);
    tcase_add_test(tests, a_node_keeps_its_links);
    tcase_add_test(tests, weights_say_what_is_full);
    tcase_add_test(tests, weights_that_are_none);
    tcase_add_test(tests, bad_weights_hide_nobody);
    tcase_add_loop_test(search, no_set_is_better, 0, 40);
    tcase_add_test(search, many_cards_end_in_time);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, search);

    return suite_run(suite);
}
