/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that wait, are bound and go in any order, on nodes of 16 cards of 10 units, for tests of the quotas that
 * they count in. Who includes this says before how many there are: PODS, and NODES, of which the first
 * stays free. A test has its own oracle, which reads only this list of pods.
 */
#include "chance.h"
#include "../unit/quota_extender.h"

#define CARD 10 /* units */
#define CARDS 16
#define NONE (-1)

enum stage { STAGE_GONE, STAGE_WAITS, STAGE_HELD };

struct pod {
    enum stage stage;
    int space, choice, units, node, card; /* choice: the quota that it names, or NONE */
    bool owned;                           /* a controller makes it again */
};

static struct pod pods[PODS];

static inline const char *name_of(const char *what, int number)
{
    static char names[8][16];
    static int next;
    char *name = names[next++ % 8];

    g_snprintf(name, sizeof names[0], "%s%d", what, number);
    return name;
}

static inline void tell(int number)
{
    const struct pod *pod = &pods[number];
    g_autofree char *units = g_strdup_printf("%d", pod->units);
    g_autofree char *card = g_strdup_printf("%d", pod->card);
    const struct container_view container = {.name = "c",
                                             .limits = PAIRS({"aliyun.com/gpu-mem", units})};
    const struct string_pair words[] = {{"ALIYUN_COM_GPU_MEM_IDX", card},
                                        {"ALIYUN_COM_GPU_MEM_POD", units},
                                        {"ALIYUN_COM_GPU_MEM_DEV", "10"},
                                        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                                        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}};
    const struct string_pair label[] = {
        {"quota.scheduling.koordinator.sh/name", name_of("q", pod->choice)}};
    struct pod_view view = {
        .ns = name_of("s", pod->space),
        .name = name_of("p", number),
        .uid = name_of("p", number),
        .phase = "Pending",
        .controller = pod->owned ? "rs" : NULL,
        .controller_kind = pod->owned ? "ReplicaSet" : NULL,
        .containers = &container,
        .n_containers = 1,
    };

    if (pod->choice != NONE)
        view.labels = (struct string_pairs){label, 1};
    if (pod->stage == STAGE_HELD) {
        view.node_name = name_of("n", pod->node);
        view.annotations = (struct string_pairs){words, G_N_ELEMENTS(words)};
    }
    store_apply_pod(extender.store, &view);
}

/* Where that many units are free, or false. */
static inline bool find_card(int units, int *ret_node, int *ret_card)
{
    for (int node = 1; node < NODES; node++) { /* 0 stays free */
        for (int card = 0; card < CARDS; card++) {
            int used = 0;
            for (int i = 0; i < PODS; i++) {
                if (pods[i].stage == STAGE_HELD && pods[i].node == node && pods[i].card == card)
                    used += pods[i].units;
            }
            if (used + units <= CARD) {
                *ret_node = node;
                *ret_card = card;
                return true;
            }
        }
    }
    return false;
}

/* Whoever binds it does not ask here: others may have bound it. */
static inline void hold_it(int number)
{
    struct pod *pod = &pods[number];

    if (pod->stage != STAGE_WAITS || !find_card(pod->units, &pod->node, &pod->card))
        return;
    pod->stage = STAGE_HELD;
    tell(number);
}

static inline void hold(void *data)
{
    hold_it((int)chance_below(PODS));
}

static inline void end_it(int number)
{
    if (pods[number].stage == STAGE_GONE)
        return;
    store_delete_pod(extender.store, name_of("p", number));
    pods[number].stage = STAGE_GONE;
}

static inline void end(void *data)
{
    end_it((int)chance_below(PODS));
}

/* A new cluster without pods; the extender's store is given. */
static inline void begin_cluster(struct store *take_store)
{
    extender = (struct extender){.store = take_store};
    memset(pods, 0, sizeof pods);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, (enum feed)feed);
    for (int node = 0; node < NODES; node++)
        store_apply_node(extender.store,
                         &(struct node_view){.name = name_of("n", node),
                                             .capacity = PAIRS({"aliyun.com/gpu-mem", "160"},
                                                               {"aliyun.com/gpu-count", "16"}),
                                             .allocatable = PAIRS({"aliyun.com/gpu-mem", "160"},
                                                                  {"aliyun.com/gpu-count", "16"})});
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, (enum feed)feed);
}

/* A cluster after the other, each for so many events. */
static inline void live(const struct chance_action *actions, unsigned events, void (*begin)(void))
{
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % events == 0) {
            if (i > 0)
                teardown();
            begin();
        }
        chance_act(actions, NULL);
    }
    teardown();
}
