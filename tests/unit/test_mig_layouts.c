/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration of mig-manager offers for the cards of a node, and which of it serves the pods that
 * are known. */
#include "literals.h"
#include "suite.h"

#include "kube/yaml_document.h"
#include "switch/layout_advice.h"
#include "switch/layout_target.h"

#include <string.h>

/* In the words of mig-parted's own file. */
static const char config[] =
    "version: v1\n"
    "mig-configs:\n"
    "  all-disabled: [{devices: all, mig-enabled: false}]\n"
    "  all-enabled: [{devices: all, mig-enabled: true, mig-devices: {}}]\n"
    "  all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n"
    "  all-1g.5gb.me: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb+me: 1}}]\n"
    "  all-2g.10gb: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]\n"
    "  all-3g.20gb: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 2}}]\n"
    "  all-1g.10gb:\n"
    "  - {device-filter: [\"0x233010DE\"], devices: all, mig-enabled: true, mig-devices: {1g.10gb: "
    "7}}\n"
    "  - {device-filter: [\"0x20B010DE\"], devices: all, mig-enabled: true, mig-devices: {1g.10gb: "
    "4}}\n"
    "  all-2g.20gb: [{devices: all, mig-enabled: true, mig-devices: {2g.20gb: 3}}]\n"
    "  all-1g.6gb: [{devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}]\n"
    "  all-2g.12gb: [{devices: all, mig-enabled: true, mig-devices: {2g.12gb: 2}}]\n"
    "  all-1g.18gb: [{devices: all, mig-enabled: true, mig-devices: {1g.18gb: 7}}]\n"
    "  all-balanced:\n"
    "  - {device-filter: [\"0x233010DE\"], devices: all, mig-enabled: true,\n"
    "     mig-devices: {1g.10gb: 2, 2g.20gb: 1, 3g.40gb: 1}}\n"
    "  - {device-filter: [\"0x20B010DE\"], devices: all, mig-enabled: true,\n"
    "     mig-devices: {1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}}\n"
    "  - {device-filter: \"0x20B710DE\", devices: all, mig-enabled: true,\n"
    "     mig-devices: {1g.6gb: 2, 2g.12gb: 1}}\n"
    "  first-alone:\n"
    "  - {devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}\n"
    "  - {devices: [1], mig-enabled: false}\n";

static GArray *read_config(const char *text, const char *product, const char *memory,
                           struct mig_card *ret_card, GError **error)
{
    const struct string_pairs labels =
        PAIRS({"nvidia.com/gpu.product", product}, {"nvidia.com/gpu.memory", memory});
    cJSON *tree = yaml_load(text, strlen(text), error);

    ck_assert_ptr_nonnull(tree);
    ck_assert(mig_card_read(&labels, ret_card));
    GArray *layouts = mig_layouts_read(tree, ret_card, error);
    cJSON_Delete(tree);
    return layouts;
}

/* "NAME:NxPROFILE+NxPROFILE NAME:…" */
static char *describe(const GArray *layouts)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < layouts->len; i++) {
        const struct mig_layout *layout = &g_array_index(layouts, struct mig_layout, i);
        g_string_append_printf(text, "%s%s:", i > 0 ? " " : "", layout->name);
        for (size_t j = 0; j < layout->value.n_profiles; j++)
            g_string_append_printf(text, "%s%dx%s", j > 0 ? "+" : "", layout->value.profiles[j].n,
                                   layout->value.profiles[j].profile);
    }
    return g_string_free(text, FALSE);
}

START_TEST(a_node_is_offered_what_its_cards_can_be)
{
    static const struct {
        const char *product, *memory, *offered;
    } cases[] = {
        {"NVIDIA-A100-SXM4-40GB", "40960",
         "all-disabled:0xdisabled all-1g.5gb:7x1g.5gb all-1g.5gb.me:1x1g.5gb.me "
         "all-2g.10gb:3x2g.10gb all-3g.20gb:2x3g.20gb all-1g.10gb:4x1g.10gb "
         "all-balanced:2x1g.5gb+1x2g.10gb+1x3g.20gb"},
        {"NVIDIA-H100-80GB-HBM3", "81559",
         "all-disabled:0xdisabled all-1g.10gb:7x1g.10gb all-2g.20gb:3x2g.20gb "
         "all-balanced:2x1g.10gb+1x2g.20gb+1x3g.40gb"},
        {"NVIDIA-A30", "24258",
         "all-disabled:0xdisabled all-1g.6gb:4x1g.6gb all-2g.12gb:2x2g.12gb "
         "all-balanced:2x1g.6gb+1x2g.12gb"},
        {"NVIDIA-H200", "143771", "all-disabled:0xdisabled all-1g.18gb:7x1g.18gb"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct mig_card card;
        g_autoptr(GArray) layouts =
            read_config(config, cases[i].product, cases[i].memory, &card, NULL);
        ck_assert_ptr_nonnull(layouts);
        g_autofree char *told = describe(layouts);
        ck_assert_str_eq(told, cases[i].offered);
    }
}
END_TEST

START_TEST(what_is_none_is_refused)
{
    static const char *const texts[] = {
        "[]",
        "mig-configs: []",
        "mig-configs: {a: [{devices: [0], mig-enabled: false}]}",
        "mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: -1}}]}",
        "mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 700}}]}",
        "mig-configs: {a: [{devices: all, mig-enabled: true, mig-devices: {x: 1}}]}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        struct mig_card card;
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(read_config(texts[i], "NVIDIA-A100-SXM4-40GB", "40960", &card, &error));
        ck_assert_ptr_nonnull(error);
    }
}
END_TEST

START_TEST(labels_tell_of_the_card)
{
    const struct string_pairs none = PAIRS({"pool", "a"}),
                              product = PAIRS({"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}),
                              single =
                                  PAIRS({"nvidia.com/gpu.product", "A100-SXM4-40GB-MIG-1g.5gb"},
                                        {"nvidia.com/gpu.memory", "4864"});
    struct mig_card card;

    ck_assert(!mig_card_read(&none, &card));
    ck_assert(!mig_card_read(&single, &card));
    ck_assert(mig_card_read(&product, &card));
    ck_assert_double_eq_tol(card.gib, 80, 1e-9);
    ck_assert(!card.quarters);
}
END_TEST

/* --- advice --------------------------------------------------------------------------------------- */

static struct store *known;

static void put_node(const char *name, const char *layout, const char *resource, const char *count)
{
    g_autofree char *key = g_strconcat(resource, ".count", NULL);
    const struct string_pair labels[] = {{"nvidia.com/mig.config", layout},
                                         {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                                         {"nvidia.com/gpu.memory", "40960"},
                                         {key, count}};

    store_apply_node(known, &(struct node_view){.name = name,
                                                .labels = {labels, G_N_ELEMENTS(labels)},
                                                .capacity = PAIRS({resource, count}),
                                                .allocatable = PAIRS({resource, count})});
}

static void put_pod(const char *name, const char *node, const char *resource)
{
    store_apply_pod(
        known, &(struct pod_view){.ns = "ml",
                                  .name = name,
                                  .uid = name,
                                  .node_name = node,
                                  .phase = node ? "Running" : "Pending",
                                  CONTAINERS({.name = "c", .limits = PAIRS({resource, "1"})})});
}

static void put_pods(const char *prefix, int n, const char *node, const char *resource)
{
    for (int i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("%s%d", prefix, i);
        put_pod(name, node, resource);
    }
}

static void setup(void)
{
    known = store_new(&(struct store_options){.patience_ms = 60000, .all_ask = true});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(known, feed);
}

static void teardown(void)
{
    store_free(known);
}

static bool advise(struct layout_advice *ret_advice, GError **error)
{
    struct mig_card card;
    g_autoptr(GArray) layouts = read_config(config, "NVIDIA-A100-SXM4-40GB", "40960", &card, NULL);

    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(known, feed);
    return layout_advise(
        &(struct layout_query){.store = known, .node = "n1", .card = &card, .layouts = layouts},
        ret_advice, error);
}

static const struct layout_row *best_of(const struct layout_advice *advice)
{
    return &g_array_index(advice->rows, struct layout_row, advice->best);
}

/* Whoever wants 1g waits, while the node has 3g. */
START_TEST(what_is_wanted_is_cut)
{
    g_auto(layout_advice) advice = {0};

    put_node("n1", "all-3g.20gb", "nvidia.com/mig-3g.20gb", "4");
    put_pods("runs", 2, "n1", "nvidia.com/mig-3g.20gb");
    put_pods("waits", 28, NULL, "nvidia.com/mig-1g.5gb");
    ck_assert(advise(&advice, NULL));
    ck_assert_int_eq(advice.n_cards, 2);
    ck_assert_uint_eq(advice.n_pods, 30);
    ck_assert_str_eq(best_of(&advice)->name, "all-1g.5gb");
    ck_assert_uint_eq(best_of(&advice)->n_ended, 2);
    ck_assert_str_eq(g_array_index(advice.expected, struct layout_expected, 0).resource,
                     "nvidia.com/mig-1g.5gb");
}
END_TEST

/* Others have enough of it. */
START_TEST(what_others_have_is_not_cut_again)
{
    g_auto(layout_advice) advice = {0};

    put_node("n1", "all-3g.20gb", "nvidia.com/mig-3g.20gb", "4");
    put_node("n2", "all-1g.5gb", "nvidia.com/mig-1g.5gb", "70");
    put_pods("runs", 4, "n1", "nvidia.com/mig-3g.20gb");
    put_pods("more", 20, "n2", "nvidia.com/mig-1g.5gb");
    ck_assert(advise(&advice, NULL));
    ck_assert_str_eq(best_of(&advice)->name, "all-3g.20gb");
    ck_assert(best_of(&advice)->is);
    ck_assert_uint_eq(best_of(&advice)->n_ended, 0);
}
END_TEST

START_TEST(whole_cards_are_a_layout_as_well)
{
    g_auto(layout_advice) advice = {0};

    put_node("n1", "all-3g.20gb", "nvidia.com/mig-3g.20gb", "4");
    put_pods("waits", 20, NULL, "nvidia.com/gpu");
    ck_assert(advise(&advice, NULL));
    ck_assert_str_eq(best_of(&advice)->name, "all-disabled");
    ck_assert_double_eq_tol(best_of(&advice)->serves, 1, 1e-9);
}
END_TEST

START_TEST(without_pods_nobody_can_say)
{
    g_auto(layout_advice) advice = {0};
    g_autoptr(GError) error = NULL;

    put_node("n1", "all-3g.20gb", "nvidia.com/mig-3g.20gb", "4");
    ck_assert(!advise(&advice, &error));
    ck_assert_msg(strstr(error->message, "no pod is known"), "%s", error->message);
}
END_TEST

/* --- a calendar's "auto" --------------------------------------------------------------------------- */

/* NULL: it stays. An error begins with "!". Free with g_free. */
static char *target_of(const char *memory)
{
    static const char text[] =
        "{timeZone: UTC, layouts: {small: {1g.5gb: 7}, large: {3g.20gb: 2}, other: {1g.6gb: 4}, "
        "too-many: {1g.5gb: 40}, all-disabled: {}}, nodes: [{label: mig.config, windows: "
        "[{from: '08:00', to: '20:00', target: auto}]}]}";
    const struct string_pair labels[] = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                                         {"nvidia.com/gpu.memory", memory}};
    const struct node_view node = {.name = "n1", .labels = {labels, G_N_ELEMENTS(labels)}};
    g_autoptr(GError) error = NULL;
    cJSON *tree = yaml_load(text, strlen(text), &error);
    g_autoptr(calendar) calendar = tree ? calendar_new(tree, "", &error) : NULL;
    struct switch_advice advice;

    ck_assert_msg(calendar, "%s", error ? error->message : "");
    cJSON_Delete(tree);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(known, feed);
    if (!layout_target_find(known, calendar, &node, &advice, &error))
        return g_strconcat("!", error->message, NULL);
    ck_assert(!advice.stays || !advice.value);
    return advice.value;
}

START_TEST(the_calendar_chooses_of_its_own_layouts)
{
    static const char *const wanted[] = {"nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb",
                                         "nvidia.com/gpu"};
    static const char *const chosen[] = {"small", "large", "all-disabled"};

    if (_i == 1)
        put_node("n1", "small", "nvidia.com/mig-1g.5gb", "14");
    else
        put_node("n1", "large", "nvidia.com/mig-3g.20gb", "4");
    put_pods("waits", 28, NULL, wanted[_i]);
    g_autofree char *target = target_of("40960");
    ck_assert_str_eq(target, chosen[_i]);
}
END_TEST

START_TEST(it_stays_where_nothing_else_serves_more)
{
    put_node("n1", "large", "nvidia.com/mig-3g.20gb", "4");
    put_pods("waits", 28, NULL, "nvidia.com/mig-3g.20gb");
    ck_assert_ptr_null(target_of("40960"));
}
END_TEST

START_TEST(why_it_cannot_choose_is_said)
{
    put_node("n1", "large", "nvidia.com/mig-3g.20gb", "4");
    g_autofree char *nobody = target_of("40960");
    ck_assert_msg(strstr(nobody, "no pod is known"), "%s", nobody);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mig_layouts");
    TCase *reading = tcase_create("reading"), *choosing = tcase_create("choosing");

    tcase_add_test(reading, a_node_is_offered_what_its_cards_can_be);
    tcase_add_test(reading, what_is_none_is_refused);
    tcase_add_test(reading, labels_tell_of_the_card);
    suite_add_tcase(suite, reading);
    tcase_add_checked_fixture(choosing, setup, teardown);
    tcase_add_test(choosing, what_is_wanted_is_cut);
    tcase_add_test(choosing, what_others_have_is_not_cut_again);
    tcase_add_test(choosing, whole_cards_are_a_layout_as_well);
    tcase_add_test(choosing, without_pods_nobody_can_say);
    tcase_add_loop_test(choosing, the_calendar_chooses_of_its_own_layouts, 0, 3);
    tcase_add_test(choosing, it_stays_where_nothing_else_serves_more);
    tcase_add_test(choosing, why_it_cannot_choose_is_said);
    suite_add_tcase(suite, choosing);

    return suite_run(suite);
}
