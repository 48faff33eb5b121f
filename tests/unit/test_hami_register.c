/* SPDX-License-Identifier: Apache-2.0 */
/* The cards that HAMi and its relatives register. */
#include "hami_desk.h"
#include "suite.h"

struct register_case {
    const char *dialect, *key, *text;
    const char *error; /* part of it; NULL: the two cards are found */
};

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

START_TEST(a_register_is_read_in_every_form)
{
    const struct register_case *c = &register_cases[_i];
    const bool volcano = g_str_equal(c->dialect, "volcano-vgpu");
    const bool seven = g_str_equal(c->text, A7 B7);
    const bool five = volcano && !strstr(c->text, "hami-core"); /* its health says nothing */
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
    ck_assert(b->unhealthy == !five);
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
        bool unhealthy, closed;
    } cases[] = {
        {A9, "10", "GPU-b", false},
        {A9, "10", "GPU-b, GPU-a", false, true},
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
        ck_assert_msg(!topology->cards[0].closure != cases[i].closed, "case %zu", i);
    }
}
END_TEST

/* HAMi's and 4paradigm's plugins register more than a card has; Volcano's never does. */
START_TEST(only_who_scales_is_scaled)
{
    static const struct {
        const char *dialect, *key, *text;
        int64_t physical;
    } cases[] = {
        {"hami", REGISTERED, A9, 7680 * MIB},
        {"4paradigm", "4pd.io/node-nvidia-register", A7, 7680 * MIB},
        {"volcano-vgpu", "volcano.sh/node-vgpu-register",
         "GPU-a,10,15360,NVIDIA-Tesla T4,true,hami-core:", 0},
    };

    const struct dialect_options scaled = {.hami_memory_scaling = 200};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(topology) topology = topology_new();
        struct node_view view = {
            .name = "n1",
            .annotations = PAIRS({cases[i].key, cases[i].text}),
            .allocatable = PAIRS({GPU, "10"}, {VGPU, "10"}),
        };
        ck_assert(row(cases[i].dialect)->read_topology(&view, &scaled, topology, NULL, NULL));
        ck_assert_int_eq(topology->cards[0].physical, cases[i].physical);
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

int main(void)
{
    Suite *suite = suite_create("hami_register");
    TCase *nodes = tcase_create("nodes");

    tcase_add_loop_test(nodes, a_register_is_read_in_every_form, 0,
                        G_N_ELEMENTS(register_cases));
    tcase_add_test(nodes, cards_that_take_nobody);
    tcase_add_test(nodes, only_who_scales_is_scaled);
    tcase_add_test(nodes, other_nodes_are_not_claimed);
    suite_add_tcase(suite, nodes);
    return suite_run(suite);
}
