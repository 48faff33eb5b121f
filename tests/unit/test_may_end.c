/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods may be ended, and for whom. */
#include "policy/victims/may_end.h"

#include "literals.h"
#include "suite.h"

#include <gpuledger/pod_facts.h>

#define ALL (POD_TIE_MIRROR | POD_TIE_DAEMON_SET | POD_TIE_OPT_OUT | POD_TIE_GROUP | POD_TIE_BARE)

/* What keeps a pod, for each caller. */
static const struct {
    enum ender ender;
    unsigned keeps, keeps_from_force;
} enders[] = {
    {ENDER_PREEMPTION, POD_TIE_MIRROR, POD_TIE_MIRROR},
    {ENDER_GANG_STRICT, POD_TIE_MIRROR | POD_TIE_DAEMON_SET, POD_TIE_MIRROR | POD_TIE_DAEMON_SET},
    {ENDER_SWITCH, POD_TIE_MIRROR | POD_TIE_DAEMON_SET, POD_TIE_MIRROR | POD_TIE_DAEMON_SET},
    {ENDER_DRAIN, POD_TIE_MIRROR | POD_TIE_DAEMON_SET | POD_TIE_BARE,
     POD_TIE_MIRROR | POD_TIE_DAEMON_SET},
    {ENDER_PLAN, ALL, ALL & ~POD_TIE_BARE},
    {ENDER_RECLAIM, ALL, ALL & ~POD_TIE_BARE},
};

/* Every set of ties: the first that counts is told. */
START_TEST(each_caller_has_its_ties)
{
    ck_assert_uint_eq(G_N_ELEMENTS(enders), ENDER_N);
    for (unsigned ties = 0; ties <= ALL; ties++) {
        for (int force = 0; force < 2; force++) {
            const unsigned keeps = ties & (force ? enders[_i].keeps_from_force : enders[_i].keeps);
            unsigned first = 1;
            while (keeps && !(keeps & first))
                first <<= 1;
            ck_assert_uint_eq(may_end_not(enders[_i].ender, force, ties), keeps ? first : 0);
        }
    }
}
END_TEST

/* A mirror stays, whoever asks, and whatever else is so. */
START_TEST(nobody_ends_a_mirror)
{
    for (int ender = 0; ender < ENDER_N; ender++) {
        for (unsigned ties = 0; ties <= ALL; ties++)
            ck_assert(may_end_not((enum ender)ender, true, ties | POD_TIE_MIRROR));
    }
}
END_TEST

static const struct {
    struct pod_view pod;
    unsigned ties;
    const char *why; /* plan leaves it alone */
} pods[] = {
    {{.controller = "r", .controller_kind = "ReplicaSet"}, 0, NULL},
    {{.controller = "r"}, 0, NULL}, /* of a kind that nothing says */
    {{.controller = NULL}, POD_TIE_BARE, "nobody makes it again; --force ends it"},
    {{.controller = "d", .controller_kind = "DaemonSet"},
     POD_TIE_DAEMON_SET,
     "its DaemonSet would make it again on this node"},
    {{.annotations = PAIRS({"kubernetes.io/config.mirror", "x"})},
     POD_TIE_MIRROR | POD_TIE_BARE,
     "it is kubelet's own: remove its file from the node"},
    {{.controller = "r", .annotations = PAIRS({"karpenter.sh/do-not-disrupt", "true"})},
     POD_TIE_OPT_OUT,
     "its annotation karpenter.sh/do-not-disrupt says so"},
    {{.controller = "r", .labels = PAIRS({"scheduling.x-k8s.io/pod-group", "g"})},
     POD_TIE_GROUP,
     "it is of the group 'g', which would wait for it"},
    {{.controller = "r", .scheduling_group = "g"},
     POD_TIE_GROUP | POD_TIE_UNIT,
     "it is of the group 'g', which would wait for it"},
};

START_TEST(ties_are_read_and_told)
{
    const struct pod_view *pod = &pods[_i].pod;
    g_autoptr(pod_facts) facts = pod_facts_new(pod);
    g_autofree char *why = may_end_why_not(ENDER_PLAN, false, pod);

    ck_assert_uint_eq(pod_view_ties(pod), pods[_i].ties);
    ck_assert_uint_eq(facts->ties, pods[_i].ties);
    ck_assert_msg(g_strcmp0(why, pods[_i].why) == 0, "%s", why);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("may_end");
    TCase *tests = tcase_create("may_end");

    tcase_add_loop_test(tests, each_caller_has_its_ties, 0, G_N_ELEMENTS(enders));
    tcase_add_test(tests, nobody_ends_a_mirror);
    tcase_add_loop_test(tests, ties_are_read_and_told, 0, G_N_ELEMENTS(pods));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
