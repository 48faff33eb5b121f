/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cards of nodes that are not there yet: a template with a profile is read as the node would be that its
 * plugin describes. What the nodes say stands here as their plugins write it, by their contracts.
 */
#include "literals.h"
#include "suite.h"

#include "dialect/profile/card_profile.h"
#include "dialect/profile/label_selector.h"

#include <gpuledger/dialect.h>
#include <string.h>

#define GPU "nvidia.com/gpu"

struct words {
    struct string_pairs labels, annotations, resources;
};

struct profile_case {
    const char *profile;
    struct words node; /* what the node's own side says */
};

static const struct profile_case cases[] = {
    {"gpushare, cards=4, memory=24Gi",
     {.resources = PAIRS({"aliyun.com/gpu-mem", "96"}, {"aliyun.com/gpu-count", "4"})}},
    {"tencent, cards=2, memory=16Gi",
     {.resources = PAIRS({"tencent.com/vcuda-core", "200"}, {"tencent.com/vcuda-memory", "128"})}},
    {"nano, cards=2, memory=16Gi", {.resources = PAIRS({"nano-gpu/gpu-percent", "200"})}},
    {"elastic, cards=2, memory=16Gi",
     {.resources =
          PAIRS({"elasticgpu.io/gpu-core", "200"}, {"elasticgpu.io/gpu-memory", "32768"})}},
    {"volcano, cards=2, memory=16Gi",
     {.resources = PAIRS({"volcano.sh/gpu-memory", "32768"}, {"volcano.sh/gpu-number", "2"})}},
    {"nvidia, cards=2, memory=15360Mi, model=Tesla-T4",
     {.labels = PAIRS({GPU ".product", "Tesla-T4"}, {GPU ".memory", "15360"}, {GPU ".count", "2"},
                      {GPU ".replicas", "1"}),
      .resources = PAIRS({GPU, "2"})}},
    {"nvidia, cards=2, memory=15360Mi, slots=4, model=Tesla-T4",
     {.labels = PAIRS({GPU ".product", "Tesla-T4-SHARED"}, {GPU ".memory", "15360"},
                      {GPU ".count", "2"}, {GPU ".replicas", "4"}),
      .resources = PAIRS({GPU, "8"})}},
    {"hami, cards=2, memory=24000Mi, model=NVIDIA L4",
     {.annotations = PAIRS({"hami.io/node-nvidia-register",
                            "GPU-a,10,24000,100,NVIDIA L4,0,true,0,hami-core:"
                            "GPU-b,10,24000,100,NVIDIA L4,0,true,1,hami-core:"}),
      .resources = PAIRS({GPU, "20"})}},
    {"4paradigm, cards=1, memory=24000Mi, slots=3, model=NVIDIA-L4",
     {.annotations = PAIRS({"4pd.io/node-nvidia-register", "GPU-a,3,24000,100,NVIDIA-L4,0,true:"}),
      .resources = PAIRS({GPU, "3"})}},
    {"volcano-vgpu, cards=1, memory=24000Mi, model=NVIDIA-L4",
     {.annotations =
          PAIRS({"volcano.sh/node-vgpu-register", "GPU-a,10,24000,NVIDIA-L4,true,hami-core:"}),
      .resources = PAIRS({"volcano.sh/vgpu-number", "10"})}},
};

static struct json_arena *arena;
static struct dialect_options options;

static void setup(void)
{
    arena = json_arena_new();
    options = (struct dialect_options){0};
}

static void teardown(void)
{
    json_arena_free(arena);
    g_free((char *)options.card_profiles);
    options.card_profiles = NULL;
}

static struct topology *read_node(const struct node_view *view)
{
    struct topology *topology = topology_new();
    g_autofree char *warning = NULL;
    g_autoptr(GError) error = NULL;

    ck_assert_msg(dialect_read_topology(view, &options, topology, &warning, &error), "%s",
                  error ? error->message : "no cards");
    ck_assert_msg(!warning, "%s", warning);
    return topology;
}

static struct node_view template_of(const char *pool)
{
    struct string_pair *label = json_arena_alloc(arena, sizeof *label);

    *label = (struct string_pair){"pool", pool};
    return (struct node_view){.name = "template", .labels = {label, 1}};
}

START_TEST(a_profile_says_what_the_node_will_say)
{
    const struct profile_case *c = &cases[_i];
    const struct node_view real = {.name = "real",
                                   .labels = c->node.labels,
                                   .annotations = c->node.annotations,
                                   .capacity = c->node.resources,
                                   .allocatable = c->node.resources};
    struct node_view template = template_of("gpu");

    options.card_profiles = g_strconcat("pool=gpu: ", c->profile, NULL);
    g_autoptr(topology) wanted = read_node(&real);
    ck_assert(card_profile_apply(&options, arena, &template));
    g_autoptr(topology) got = read_node(&template);
    ck_assert_ptr_eq(got->dialect, wanted->dialect);
    ck_assert_int_eq(got->n_cards, wanted->n_cards);
    ck_assert_int_eq(got->memory_unit, wanted->memory_unit);
    for (int32_t i = 0; i < wanted->n_cards; i++) {
        const struct topology_card *a = &got->cards[i], *b = &wanted->cards[i];
        ck_assert_int_eq(a->memory, b->memory);
        ck_assert_int_eq(a->core, b->core);
        ck_assert_int_eq(a->slots, b->slots);
        ck_assert_int_eq(a->unhealthy, b->unhealthy);
        ck_assert_pstr_eq(a->model, b->model);
        ck_assert_pstr_eq(a->mode, b->mode);
    }
    ck_assert_int_eq(got->n_pools, wanted->n_pools);
    for (int32_t i = 0; i < wanted->n_pools; i++) {
        const struct pool *a = &got->pools[i], *b = &wanted->pools[i];
        ck_assert_str_eq(a->resource, b->resource);
        ck_assert_int_eq(a->capacity, b->capacity);
        ck_assert_int_eq(a->memory, b->memory);
        ck_assert_int_eq(a->replicas, b->replicas);
        ck_assert_int_eq(a->shared, b->shared);
        ck_assert_pstr_eq(a->model, b->model);
    }
}
END_TEST

START_TEST(every_dialect_that_has_profiles_is_tried)
{
    for (size_t i = 0; dialects[i]; i++) {
        bool tried = !dialects[i]->write_profile;
        for (size_t n = 0; n < G_N_ELEMENTS(cases); n++) {
            g_autofree char *prefix = g_strconcat(dialects[i]->name, ",", NULL);
            tried |= g_str_has_prefix(cases[n].profile, prefix);
        }
        /* These are elastic-gpu's in other spellings. */
        tried |= strstr(dialects[i]->name, "nano") || strstr(dialects[i]->name, "elastic");
        ck_assert_msg(tried, "%s", dialects[i]->name);
    }
}
END_TEST

START_TEST(the_first_profile_that_matches_counts)
{
    struct node_view big = template_of("big"), other = template_of("other");

    options.card_profiles = g_strdup("pool=big: gpushare, cards=8, memory=80Gi;\n"
                                     "pool: gpushare, cards=1, memory=16Gi");
    ck_assert(card_profile_apply(&options, arena, &big));
    ck_assert_str_eq(string_pairs_get(&big.capacity, "aliyun.com/gpu-count"), "8");
    ck_assert(card_profile_apply(&options, arena, &other));
    ck_assert_str_eq(string_pairs_get(&other.capacity, "aliyun.com/gpu-mem"), "16");
    struct node_view bare = {.name = "bare"};
    ck_assert(!card_profile_apply(&options, arena, &bare));
    ck_assert_uint_eq(bare.capacity.n, 0);
}
END_TEST

START_TEST(what_the_template_says_itself_stays)
{
    struct node_view template = template_of("gpu");

    template.capacity = PAIRS({"aliyun.com/gpu-count", "2"}, {"cpu", "8"});
    options.card_profiles = g_strdup("pool=gpu: gpushare, cards=4, memory=24Gi");
    ck_assert(card_profile_apply(&options, arena, &template));
    ck_assert_str_eq(string_pairs_get(&template.capacity, "aliyun.com/gpu-count"), "2");
    ck_assert_str_eq(string_pairs_get(&template.capacity, "aliyun.com/gpu-mem"), "96");
    ck_assert_str_eq(string_pairs_get(&template.capacity, "cpu"), "8");
    ck_assert_uint_eq(template.capacity.n, 3);
    ck_assert_str_eq(string_pairs_get(&template.labels, "pool"), "gpu");
}
END_TEST

static const char *const refused[] = {
    "pool=a",
    "pool=a: gpushare",
    "pool=a: gpushare, cards=4",
    "pool=a: gpushare, memory=24Gi",
    "pool=a: nobody, cards=4, memory=24Gi",
    "pool=a: kai, cards=4, memory=24Gi", /* its nodes say nothing */
    "pool=a: gpushare, cards=0, memory=24Gi",
    "pool=a: gpushare, cards=65536, memory=24Gi",
    "pool=a: gpushare, cards=4, cards=4, memory=24Gi",
    "pool=a: gpushare, cards=4, memory=24Gi, color=red",
    "pool=a: gpushare, cards=4, memory=24Gi, model=L4", /* there is no such word */
    "pool=a: gpushare, cards=4, memory=24Gi, slots=2",
    "pool=a: gpushare, cards=4, memory=24Ki",
    "pool=a: gpushare, cards=4, memory=-1",
    "pool=a: nvidia, cards=5, memory=24Gi, slots=65536", /* more devices than there are */
    "pool in (a): gpushare, cards=4, memory=24Gi",
    ": gpushare, cards=4, memory=24Gi",
    "pool=a: gpushare, cards=4, memory=24Gi;",
    "pool=a: gpushare, cards=4, memory=24Gi; pool=a: gpushare, cards=2, memory=24Gi",
};

START_TEST(what_cannot_be_understood_is_refused)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(!item_list_read(&card_profiles_list, refused[_i], NULL, &error), "%s",
                  refused[_i]);
    ck_assert(error != NULL);
}
END_TEST

static const struct {
    const char *selector;
    int matches; /* of a=1,b; -1: it is none */
} selectors[] = {
    {"a=1", 1},     {"a==1", 1},      {"a=2", 0}, {"a!=2", 1},   {"a!=1", 0},   {"c!=1", 1},
    {"a", 1},       {"c", 0},         {"!c", 1},  {"!a", 0},     {"a=1,b", 1},  {"a=1,c", 0},
    {" a = 1 ", 1}, {"b=", 1},        {"a=", 0},  {"a=1,!b", 0}, {"x.io/y", 0}, {"", -1},
    {"a=1,", -1},   {"=1", -1},       {"!", -1},  {"a!1", -1},   {"a=1=2", -1}, {"a b", -1},
    {"a>1", -1},    {"a in (1)", -1},
};

START_TEST(a_selector_takes_what_kubectl_takes)
{
    const struct string_pairs labels = PAIRS({"a", "1"}, {"b", ""});
    const int wanted = selectors[_i].matches;

    ck_assert_int_eq(label_selector_check(selectors[_i].selector), wanted >= 0);
    if (wanted >= 0)
        ck_assert_int_eq(label_selector_matches(selectors[_i].selector, &labels), wanted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("card_profile");
    TCase *tests = tcase_create("card_profile");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_profile_says_what_the_node_will_say, 0, G_N_ELEMENTS(cases));
    tcase_add_test(tests, every_dialect_that_has_profiles_is_tried);
    tcase_add_test(tests, the_first_profile_that_matches_counts);
    tcase_add_test(tests, what_the_template_says_itself_stays);
    tcase_add_loop_test(tests, what_cannot_be_understood_is_refused, 0, G_N_ELEMENTS(refused));
    tcase_add_loop_test(tests, a_selector_takes_what_kubectl_takes, 0, G_N_ELEMENTS(selectors));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
