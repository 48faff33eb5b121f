/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/scale_up.h"

#include <glib.h>
#include <string.h>

/* What an autoscaler says to a pod. */
struct autoscaler {
    const char *name;    /* as its Events' reporter */
    const char *promise; /* the reasons of Events */
    const char
        *detail; /* of the promise's note, which without it is of a node that is there; or NULL */
    const char *denial;
};

enum { CLUSTER_AUTOSCALER, KARPENTER };
static const struct autoscaler autoscalers[] = {
    [CLUSTER_AUTOSCALER] = {"cluster-autoscaler", "TriggeredScaleUp", NULL, "NotTriggerScaleUp"},
    [KARPENTER] = {"karpenter", "Nominated", "nodeclaim/", "FailedScheduling"},
};

/* The last word of an autoscaler to the pod. */
struct last_word {
    bool promises;
    int64_t at_ns; /* 0: it has said nothing */
};

static struct last_word hear(const struct autoscaler *autoscaler,
                             const struct scale_up_facts *facts)
{
    struct last_word last = {false, 0};

    for (size_t i = 0; i < facts->n_words; i++) {
        const struct scale_up_word *word = &facts->words[i];
        const int64_t at_ns = MIN(word->at_ns, facts->now_ns);
        const bool promise = g_strcmp0(word->reason, autoscaler->promise) == 0;
        if (g_strcmp0(word->reporter, autoscaler->name) != 0 ||
            (!promise && g_strcmp0(word->reason, autoscaler->denial) != 0) || at_ns < last.at_ns)
            continue;
        /* Of two of one second it is not known which was first: no promise is lost. */
        const bool names = promise && (!autoscaler->detail ||
                                       (word->note && strstr(word->note, autoscaler->detail)));
        last.promises = names || (at_ns == last.at_ns && last.promises);
        last.at_ns = at_ns;
    }
    if (facts->now_ns - last.at_ns > SCALE_UP_WORD_NS)
        last.promises = false;
    return last;
}

static bool has_report(const struct scale_up_facts *facts)
{
    return facts->reported_ns > 0 &&
           facts->now_ns - MIN(facts->reported_ns, facts->now_ns) <= SCALE_UP_REPORT_NS;
}

/* A promise lasts until the nodes are there, as far as that is told. */
static bool is_promised(const struct scale_up_facts *facts, size_t who)
{
    const struct last_word last = hear(&autoscalers[who], facts);

    if (!last.promises)
        return false;
    if (who == KARPENTER)
        return !facts->claims_known || facts->n_claims > 0;
    return !has_report(facts) || facts->groups_grow || facts->reported_ns <= last.at_ns;
}

const char *scale_up_find(const struct scale_up_facts *facts)
{
    for (size_t who = 0; who < G_N_ELEMENTS(autoscalers); who++) {
        const bool comes = facts->of_pod      ? is_promised(facts, who)
                           : who == KARPENTER ? facts->n_claims > 0
                                              : has_report(facts) && facts->groups_grow;
        if (comes)
            return autoscalers[who].name;
    }
    return NULL;
}
