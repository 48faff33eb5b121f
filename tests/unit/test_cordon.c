/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the dialect, nobody gets a card that is out of service. */
#include "desk.h"
#include "dialect/marks/cordoned_cards.h"
#include "suite.h"

#define VOLCANO(name) "volcano.sh/gpu-" name
#define TENCENT(name) "tencent.com/vcuda-" name
#define ELASTIC(name) "elasticgpu.io/gpu-" name
#define HAMI_CARDS                                                                                 \
    "GPU-0,10,16000,100,T4,0,true,0,hami-core:GPU-1,10,16000,100,T4,0,true,1,hami-core:"

/* A node with two cards that nobody uses, and a pod that fits on either. */
static const struct row {
    const char *dialect;
    struct string_pair capacity[3], annotation, limits[3];
    int first; /* the card that the node side takes by itself; -1: it obeys */
} rows[] = {
    {"gpushare",
     {{"aliyun.com/gpu-mem", "32"}, {"aliyun.com/gpu-count", "2"}},
     {"x", ""},
     {{"aliyun.com/gpu-mem", "4"}},
     -1},
    {"volcano",
     {{VOLCANO("memory"), "32000"}, {VOLCANO("number"), "2"}},
     {"x", ""},
     {{VOLCANO("memory"), "4000"}},
     -1},
    {"elastic",
     {{ELASTIC("core"), "200"}, {ELASTIC("memory"), "200"}},
     {"x", ""},
     {{ELASTIC("core"), "10"}, {ELASTIC("memory"), "10"}},
     -1},
    {"hami",
     {{"nvidia.com/gpu", "20"}},
     {"hami.io/node-nvidia-register", HAMI_CARDS},
     {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "1000"}},
     -1},
    {"gpu-manager",
     {{TENCENT("core"), "200"}, {TENCENT("memory"), "128"}},
     {"x", ""},
     {{TENCENT("core"), "10"}, {TENCENT("memory"), "8"}},
     0},
};

/* The card that the pod gets; -1: none. */
static int place(const struct row *row, const char *key, const char *cordoned)
{
    const struct string_pair annotations[] = {row->annotation, {key, cordoned}};
    const struct node_view view = {
        .name = cordoned, /* one node for each */
        .capacity = {row->capacity, row->capacity[2].key   ? 3
                                    : row->capacity[1].key ? 2
                                                           : 1},
        .allocatable = {row->capacity, row->capacity[2].key   ? 3
                                       : row->capacity[1].key ? 2
                                                              : 1},
        .annotations = {annotations, 2},
    };
    const struct container_view container = {.name = "c",
                                             .limits = {row->limits, row->limits[1].key ? 2 : 1}};
    const struct pod_view pod = {
        .ns = "ns", .name = "p", .uid = "p", .containers = &container, .n_containers = 1};
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);
    const struct node *node = desk_node(&view);
    struct placement placement;
    enum reason reason;

    ck_assert_msg(request, "%s: %s", row->dialect, error ? error->message : "no request");
    ck_assert_int_eq(node->n_cards, 2);
    const struct admission_query query = {.request = request,
                                          .policy = policies,
                                          .options = &options,
                                          .now_ns = now_ns,
                                          .patience_ns = PATIENCE};
    const enum admission admission = dialect_admit(node, &query, &placement, &reason);
    ck_assert_int_eq(dialect_admits(node, &query), admission);
    return admission == ADMISSION_YES ? placement.shares[0].card : -1;
}

START_TEST(nobody_gets_a_card_that_is_out_of_service)
{
    const struct row *row = &rows[_i];
    const char *key = "gpuledger.io/cordoned-cards";
    const int other = row->first < 0 ? 1 : -1; /* it would take the first all the same */

    ck_assert_int_ne(place(row, key, ""), -1);
    ck_assert_int_eq(place(row, key, "0"), row->first == 0 ? other : 1);
    ck_assert_int_eq(place(row, key, "1"), 0);
    ck_assert_int_eq(place(row, key, "0,1"), -1);
    ck_assert_int_eq(place(row, key, "*"), -1);
    ck_assert_int_eq(place(row, key, "?"), -1);
}
END_TEST

START_TEST(what_others_of_the_dialect_read_counts_too)
{
    ck_assert_int_eq(place(&rows[3], "hami.io/device-cordon", "GPU-0"), 1);
    ck_assert_int_eq(place(&rows[3], "hami.io/device-cordon", "GPU-0,GPU-1"), -1);
    ck_assert_str_eq(dialect_find("hami")->cordon_key, "hami.io/device-cordon");
}
END_TEST

/* A card is a letter: its UUID, or small if the node lists it without. */
static void list_cards(struct topology *topology, const char *cards)
{
    topology->n_cards = (int32_t)strlen(cards);
    for (int32_t i = 0; i < topology->n_cards; i++) {
        const char uuid[] = {cards[i], '\0'};
        topology->cards[i] = (struct topology_card){
            .uuid = topology_keep(topology, g_ascii_isupper(cards[i]) ? uuid : NULL)};
    }
}

/* For each card: open, closed for certain, or since it may be meant. */
static const struct {
    const char *cards, *list, *closed, *warning;
} lists[] = {
    {"ABCD", "1=B", ".x..", NULL},
    {"BADC", "1=B", "x...", NULL},
    {"ABCD", "3=A,0=D", "x..x", NULL},
    {"ACD", "1=B", "...", "is a cordon of a card that the node does not list now; it stays"},
    {"ACd", "1=B", "..?", "may be any card that the node lists without a UUID"},
    {"ABc", "1=B", ".x.", NULL},
    {"abcd", "1=of:4", ".x..", NULL},
    {"abc", "1=of:4", "???", "may be any card, since their number has changed"},
    {"abcde", "1=of:4", "?????", "may be any card, since their number has changed"},
    {"abc", "1=of:4,2=of:3", "??x", "since their number has changed"},
    {"abcd", "1=B", "????", "without a UUID"},
    {"ABC", "3", "???", "since their number has changed"},
    {"ABCD", "1=B,1", ".x..", "names a card again"},
    {"ABCD", "*,1=B", "xxxx", NULL},
    {"ABCD", "1=B B", "????", "is not like"},
};

START_TEST(a_cordon_is_of_a_card_and_not_of_a_place)
{
    static const char marks[] = {
        [CLOSURE_NONE] = '.', [CLOSURE_CORDON] = 'x', [CLOSURE_CORDON_MAYBE] = '?'};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GString) closed = g_string_new(NULL);

    list_cards(topology, lists[_i].cards);
    cordoned_cards_apply(lists[_i].list, topology, &warning);
    for (int32_t i = 0; i < topology->n_cards; i++)
        g_string_append_c(closed, marks[topology->cards[i].closure]);
    ck_assert_str_eq(closed->str, lists[_i].closed);
    ck_assert_int_eq(warning != NULL, lists[_i].warning != NULL);
    ck_assert_msg(!warning || strstr(warning, lists[_i].warning), "%s", warning);
}
END_TEST

static const struct {
    const char *cards, *list;
    int card;
    bool open;
    const char *after, *uuid;
} edits[] = {
    {"AB", NULL, 1, false, "1=B", "B"},
    {"ab", NULL, 1, false, "1=of:2", NULL},
    {"AB", "1", 1, false, "1=B", "B"},
    {"BA", "1=B", 0, false, "0=B", "B"},
    {"BA", "1=B", 1, false, "1=B,1=A", "A"},
    {"AB", "*", 1, false, "*", "B"},
    {"AB", "x", 1, false, "x,1=B", "B"},
    {"abc", "1=of:4", 1, false, "1=of:4,1=of:3", NULL},
    {"AB", "0,1", 1, true, "0", "B"},
    {"BA", "1=B", 1, true, "1=B", "A"},
    {"BA", "1=B", 0, true, NULL, "B"},
    {"ABC", "*", 1, true, "0=A,2=C", "B"},
    {"abc", "*,2", 1, true, "2=of:3,0=of:3", NULL},
    {"abc", "2=of:4", 1, true, "2=of:4", NULL}, /* it may be gone */
    {"abc", "2=of:4,1=of:3", 1, true, "2=of:4", NULL},
    {"abc", "1=of:4", 1, true, "1=of:4", NULL},
    {"abc", "3=of:4", 3, true, NULL, NULL},
    {"ABC", "3=D,1=B", 3, true, "1=B", "D"},
    {"ACD", "1=B", 1, true, NULL, "B"},
    {"ACD", "1=B,1=C", 1, true, "1=B", "C"},
    {"ACd", "1=B", 1, true, "1=B", "C"},
    {"ABC", "x", 1, true, "x", "B"},
};

START_TEST(an_edit_names_the_card)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *uuid = NULL;
    const struct cordon_edit edit = {edits[_i].list, topology, edits[_i].card, edits[_i].open};

    list_cards(topology, edits[_i].cards);
    g_autofree char *after = cordoned_cards_edit(&edit, &uuid);
    ck_assert_pstr_eq(after, edits[_i].after);
    ck_assert_pstr_eq(uuid, edits[_i].uuid);
}
END_TEST

START_TEST(what_keeps_a_card_closed_is_found)
{
    static const struct {
        const char *list, *keeper;
    } kept[] = {
        {"1=of:4", NULL}, {"0=of:4", "0=of:4"}, {"x", "x"}, {"1,2=of:3", "2=of:3"}, {NULL, NULL}};
    g_autoptr(topology) topology = topology_new();
    const struct cordon_edit edit = {kept[_i].list, topology, 0, true};

    list_cards(topology, "abcd");
    g_autofree char *keeper = cordoned_cards_keeper(&edit);
    ck_assert_pstr_eq(keeper, kept[_i].keeper);
}
END_TEST

/* What an annotation could not carry is not written into it. */
START_TEST(a_uuid_that_would_be_misread_is_not_written)
{
    static const char *const uuids[] = {"of:2", "A,1", "A B", "A=B", ""};
    g_autoptr(topology) topology = topology_new();
    g_autofree char *uuid = NULL;
    const struct cordon_edit edit = {NULL, topology, 0, false};

    list_cards(topology, "AB");
    topology->cards[0].uuid = uuids[_i];
    g_autofree char *after = cordoned_cards_edit(&edit, &uuid);
    ck_assert_pstr_eq(after, "0=of:2");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cordon");
    TCase *tests = tcase_create("cordon");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, nobody_gets_a_card_that_is_out_of_service, 0, G_N_ELEMENTS(rows));
    tcase_add_test(tests, what_others_of_the_dialect_read_counts_too);
    tcase_add_loop_test(tests, a_cordon_is_of_a_card_and_not_of_a_place, 0, G_N_ELEMENTS(lists));
    tcase_add_loop_test(tests, an_edit_names_the_card, 0, G_N_ELEMENTS(edits));
    tcase_add_loop_test(tests, what_keeps_a_card_closed_is_found, 0, 5);
    tcase_add_loop_test(tests, a_uuid_that_would_be_misread_is_not_written, 0, 5);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
