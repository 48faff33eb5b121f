/* SPDX-License-Identifier: Apache-2.0 */
/* Whether nodes are on their way, by what autoscalers have said, and when. */
#include "plan/scale_up.h"
#include "suite.h"

#include <glib.h>
#include <string.h>

#define S INT64_C(1000000000)
#define NOW (INT64_C(1000000) * S)
#define CA "cluster-autoscaler"

/* Seconds before now. */
struct word {
    const char *reporter, *reason, *note;
    int64_t ago;
};

struct pod_case {
    struct word words[3];
    int64_t reported; /* how long ago; 0: never */
    bool grows;
    bool karpenter; /* there are NodeClaims */
    int64_t claims;
    const char *who;
};

#define SAYS(...) .words = {__VA_ARGS__}
#define GREW {CA, "TriggeredScaleUp", "pod triggered scale-up: [{g 0->1 (max: 3)}]", 60}
#define CLAIMED {"karpenter", "Nominated", "Pod should schedule on: nodeclaim/g-x7k", 60}

static const struct pod_case pod_cases[] = {
    {SAYS({NULL})},
    {SAYS(GREW), .who = CA},
    {SAYS({CA, "NotTriggerScaleUp", "max size reached", 30}, GREW)}, /* it has given up since */
    {SAYS({CA, "NotTriggerScaleUp", "max size reached", 90}, GREW), .who = CA},
    {SAYS(GREW, {CA, "NotTriggerScaleUp", "", 60}), .who = CA}, /* which was first? */
    {SAYS({"default-scheduler", "FailedScheduling", "0/3", 1}, GREW), .who = CA},
    {SAYS({"default-scheduler", "TriggeredScaleUp", "", 1})}, /* not its word */
    {SAYS({CA, "TriggeredScaleUp", "", 16 * 60})},            /* it does not come any more */
    {SAYS({CA, "TriggeredScaleUp", "", 14 * 60}), .who = CA},
    {SAYS({CA, "TriggeredScaleUp", "", -3600}), .who = CA}, /* the future is now */
    {SAYS({CA, "TriggeredScaleUp", "", -3600}, {CA, "NotTriggerScaleUp", "", -7200}), .who = CA},
    {SAYS({CA, NULL, NULL, 1}, {NULL, "TriggeredScaleUp", NULL, 1})},
    /* Its report is younger, and says that no group grows: they are there. */
    {SAYS(GREW), .reported = 10, .grows = false},
    {SAYS(GREW), .reported = 10, .grows = true, .who = CA},
    {SAYS(GREW), .reported = 70, .grows = false, .who = CA},
    {SAYS(GREW), .reported = 301, .grows = false, .who = CA},
    {SAYS({NULL}), .reported = 10, .grows = true}, /* for others */
    {SAYS(CLAIMED), .who = "karpenter"},
    {SAYS(CLAIMED), .karpenter = true, .claims = 1, .who = "karpenter"},
    {SAYS(CLAIMED), .karpenter = true}, /* initialized, or gone */
    {SAYS({"karpenter", "Nominated", "Pod should schedule on: node/n1", 5})},
    {SAYS({"karpenter", "Nominated", NULL, 5})},
    {SAYS({"karpenter", "FailedScheduling", "no instance type", 5}, CLAIMED)},
    {SAYS({NULL}), .karpenter = true, .claims = 3},
};

static const char *ask(const struct pod_case *c, bool of_pod)
{
    struct scale_up_word words[3];
    size_t n = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(c->words); i++) {
        const struct word *word = &c->words[i];
        if (word->reporter || word->reason)
            words[n++] = (struct scale_up_word){word->reporter, word->reason, word->note,
                                                NOW - word->ago * S};
    }
    return scale_up_find(&(struct scale_up_facts){
        .of_pod = of_pod,
        .words = words,
        .n_words = n,
        .reported_ns = c->reported == 0 ? 0 : NOW - c->reported * S,
        .groups_grow = c->grows,
        .claims_known = c->karpenter,
        .n_claims = c->claims,
        .now_ns = NOW,
    });
}

START_TEST(a_pod_is_brought_nodes)
{
    ck_assert_pstr_eq(ask(&pod_cases[_i], true), pod_cases[_i].who);
}
END_TEST

static const struct pod_case any_cases[] = {
    {SAYS({NULL})},
    {SAYS(GREW)}, /* of a pod, which is not asked about */
    {.reported = 10, .grows = true, .who = CA},
    {.reported = 10, .grows = false},
    {.reported = 301, .grows = true}, /* it writes no more */
    {.reported = -60, .grows = true, .who = CA},
    {.grows = true},
    {.karpenter = true},
    {.reported = 10, .karpenter = true, .claims = 2, .who = "karpenter"},
};

START_TEST(anybody_is_brought_nodes)
{
    ck_assert_pstr_eq(ask(&any_cases[_i], false), any_cases[_i].who);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scale_up");
    TCase *tests = tcase_create("scale_up");

    tcase_add_loop_test(tests, a_pod_is_brought_nodes, 0, G_N_ELEMENTS(pod_cases));
    tcase_add_loop_test(tests, anybody_is_brought_nodes, 0, G_N_ELEMENTS(any_cases));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
