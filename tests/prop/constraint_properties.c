/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which nodes kube-scheduler leaves out, over random nodes and pods, beside an oracle that is told
 * by numbers: a label's value is one of a few, or missing, and an expression is the set of those that
 * it allows; a toleration is the set of taints that it covers.
 */
#include "chance.h"

#include "core/constraints.h"

#include <string.h>

/* States of a label: missing, empty, words and numbers. */
static const char *const values[] = {NULL, "", "x", "y", "0", "7", "12", "-3"};
static const int64_t numbers[] = {0, 0, 0, 0, 0, 7, 12, -3}; /* from the fifth on */
#define STATES ((uint32_t)G_N_ELEMENTS(values))
#define FIRST_NUMBER 4
#define KEYS 3
#define LIST_MAX 3
#define EFFECTS 4

static const char *const keys[KEYS] = {"k0", "k1", "k2"};
static const char *const effects[EFFECTS] = {NULL, "NoSchedule", "NoExecute", "PreferNoSchedule"};
static const char *const names[] = {"n0", "n1"};

static bool is_number(uint32_t state)
{
    return state >= FIRST_NUMBER;
}

/* --- nodes ---------------------------------------------------------------------------------- */

struct drawn_taint {
    uint32_t key, value, effect; /* value 1 and up, effect 1 and up */
};

struct drawn_node {
    uint32_t name;
    uint32_t labels[KEYS]; /* states */
    uint32_t n_taints;
    struct drawn_taint taints[LIST_MAX];
    bool cordoned;
    struct node node;
};

static void draw_node(struct drawn_node *drawn)
{
    struct string_pair labels[KEYS];
    struct taint_view taints[LIST_MAX];
    size_t n = 0;

    *drawn = (struct drawn_node){.name = chance_below(2), .cordoned = chance_percent(10)};
    for (uint32_t i = 0; i < KEYS; i++) {
        drawn->labels[i] = chance_below(STATES);
        if (values[drawn->labels[i]])
            labels[n++] = (struct string_pair){keys[i], values[drawn->labels[i]]};
    }
    drawn->n_taints = chance_below(LIST_MAX + 1);
    for (uint32_t i = 0; i < drawn->n_taints; i++) {
        drawn->taints[i] = (struct drawn_taint){chance_below(KEYS), 1 + chance_below(STATES - 1),
                                                1 + chance_below(EFFECTS - 1)};
        taints[i] = (struct taint_view){keys[drawn->taints[i].key],
                                        values[drawn->taints[i].value],
                                        effects[drawn->taints[i].effect]};
    }
    const struct node_view view = {.name = names[drawn->name],
                                   .labels = {labels, n},
                                   .taints = taints,
                                   .n_taints = drawn->n_taints};
    drawn->node = (struct node){.name = view.name,
                                .cordoned = drawn->cordoned,
                                .traits = node_traits_new(&view)};
}

/* --- pods ----------------------------------------------------------------------------------- */

/* Beside each part what it allows, as the oracle sees it: bits of states, or of names. */
struct drawn_pod {
    struct constraints constraints;
    struct string_pair pairs[LIST_MAX];
    uint32_t pair_keys[LIST_MAX], pair_states[LIST_MAX];
    struct match_term terms[LIST_MAX];
    struct match matches[LIST_MAX][LIST_MAX];
    const char *lists[LIST_MAX][LIST_MAX][LIST_MAX];
    uint32_t match_keys[LIST_MAX][LIST_MAX], allowed[LIST_MAX][LIST_MAX];
    struct toleration tolerations[LIST_MAX];
    uint32_t covered_keys[LIST_MAX], covered_states[LIST_MAX], covered_effects[LIST_MAX];
    bool tolerates_cordon;
    uint32_t node_names;
};

static void draw_match(struct drawn_pod *pod, uint32_t i, uint32_t j)
{
    struct match *match = &pod->matches[i][j];
    const char **list = pod->lists[i][j];
    uint32_t listed = 0;

    *match = (struct match){.operator = (enum match_operator)chance_below(MATCH_N),
                            .values = list};
    pod->match_keys[i][j] = chance_below(KEYS);
    match->key = keys[pod->match_keys[i][j]];
    if (chance_percent(15)) {
        const uint32_t name = chance_below(2);
        match->field = true;
        match->key = "metadata.name";
        match->operator = chance_percent(50) ? MATCH_IN : MATCH_NOT_IN;
        list[0] = names[name];
        match->n_values = 1;
        pod->allowed[i][j] = match->operator == MATCH_IN ? 1U << name : ~(1U << name);
        return;
    }
    const bool compares = match->operator == MATCH_GT || match->operator == MATCH_LT;
    const bool lists = match->operator == MATCH_IN || match->operator == MATCH_NOT_IN;
    const uint32_t n = compares ? 1 : lists ? 1 + chance_below(LIST_MAX) : 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t state = 1 + chance_below(STATES - 1);
        list[match->n_values++] = values[state];
        listed |= 1U << state;
    }
    const uint32_t present = ((1U << STATES) - 1) & ~1U;
    uint32_t above = 0, below = 0;
    for (uint32_t state = FIRST_NUMBER; compares && state < STATES; state++) {
        for (uint32_t own = FIRST_NUMBER; own < STATES; own++) {
            if (listed != 1U << own)
                continue;
            above |= numbers[state] > numbers[own] ? 1U << state : 0;
            below |= numbers[state] < numbers[own] ? 1U << state : 0;
        }
    }
    const uint32_t sets[MATCH_N] = {
        [MATCH_IN] = listed,      [MATCH_NOT_IN] = ~listed,
        [MATCH_EXISTS] = present, [MATCH_DOES_NOT_EXIST] = 1U,
        [MATCH_GT] = above,       [MATCH_LT] = below,
    };
    pod->allowed[i][j] = sets[match->operator];
}

static void draw_toleration(struct drawn_pod *pod, uint32_t i)
{
    const uint32_t key = chance_below(KEYS + 1), state = chance_below(STATES);
    const uint32_t effect = chance_below(EFFECTS);
    struct toleration *toleration = &pod->tolerations[i];
    uint32_t below = 0, above = 0;

    *toleration = (struct toleration){
        .key = key < KEYS ? keys[key] : NULL,
        .value = values[state],
        .effect = effects[effect],
        .operator = (enum toleration_operator)chance_below(TOLERATION_N),
    };
    for (uint32_t other = FIRST_NUMBER; is_number(state) && other < STATES; other++) {
        below |= numbers[other] < numbers[state] ? 1U << other : 0;
        above |= numbers[other] > numbers[state] ? 1U << other : 0;
    }
    const uint32_t sets[TOLERATION_N] = {
        [TOLERATION_EQUAL] = 1U << (state ? state : 1), /* a missing value is an empty one */
        [TOLERATION_EXISTS] = ~0U,
        [TOLERATION_LT] = below,
        [TOLERATION_GT] = above,
    };
    pod->covered_keys[i] = key < KEYS ? 1U << key : ~0U;
    pod->covered_states[i] = sets[toleration->operator];
    pod->covered_effects[i] = effect ? 1U << effect : ~0U;
    /* The taint of cordoned nodes is of no key that is drawn, has no value and NoSchedule. */
    pod->tolerates_cordon |= key == KEYS && (pod->covered_states[i] & 1U << 1) &&
                             (pod->covered_effects[i] & 1U << 1);
}

static void draw_pod(struct drawn_pod *pod)
{
    struct constraints *constraints = &pod->constraints;

    memset(pod, 0, sizeof *pod);
    pod->node_names = ~0U;
    if (chance_percent(10)) {
        const uint32_t name = chance_below(2);
        constraints->node_name = names[name];
        pod->node_names = 1U << name;
    }
    constraints->selector.n = chance_percent(40) ? chance_below(LIST_MAX) : 0;
    constraints->selector.items = pod->pairs;
    for (uint32_t i = 0; i < constraints->selector.n; i++) {
        pod->pair_keys[i] = chance_below(KEYS);
        pod->pair_states[i] = 1 + chance_below(STATES - 1);
        pod->pairs[i] =
            (struct string_pair){keys[pod->pair_keys[i]], values[pod->pair_states[i]]};
    }
    constraints->has_affinity = chance_percent(60);
    constraints->terms = pod->terms;
    constraints->n_terms = constraints->has_affinity ? chance_below(LIST_MAX + 1) : 0;
    for (uint32_t i = 0; i < constraints->n_terms; i++) {
        pod->terms[i] = (struct match_term){pod->matches[i], chance_below(LIST_MAX + 1)};
        for (uint32_t j = 0; j < pod->terms[i].n; j++)
            draw_match(pod, i, j);
    }
    constraints->tolerations = pod->tolerations;
    constraints->n_tolerations = chance_below(LIST_MAX + 1);
    for (uint32_t i = 0; i < constraints->n_tolerations; i++)
        draw_toleration(pod, i);
}

/* --- the oracle ----------------------------------------------------------------------------- */

static bool has_bit(uint32_t set, uint32_t bit)
{
    return set >> bit & 1;
}

static bool expects_taints(const struct drawn_pod *pod, const struct drawn_node *node)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < node->n_taints; i++) {
        const struct drawn_taint *taint = &node->taints[i];
        uint32_t covers = taint->effect == 3; /* PreferNoSchedule */
        for (uint32_t j = 0; j < pod->constraints.n_tolerations; j++)
            covers += has_bit(pod->covered_keys[j], taint->key) &&
                      has_bit(pod->covered_states[j], taint->value) &&
                      has_bit(pod->covered_effects[j], taint->effect);
        open += covers == 0;
    }
    return open == 0;
}

static bool expects_selector(const struct drawn_pod *pod, const struct drawn_node *node)
{
    uint32_t unmet = 0;

    for (uint32_t i = 0; i < pod->constraints.selector.n; i++)
        unmet += node->labels[pod->pair_keys[i]] != pod->pair_states[i];
    return unmet == 0;
}

static bool expects_affinity(const struct drawn_pod *pod, const struct drawn_node *node)
{
    uint32_t holding = 0;

    for (uint32_t i = 0; i < pod->constraints.n_terms; i++) {
        uint32_t held = 0;
        for (uint32_t j = 0; j < pod->terms[i].n; j++)
            held += has_bit(pod->allowed[i][j], pod->matches[i][j].field
                                                    ? node->name
                                                    : node->labels[pod->match_keys[i][j]]);
        holding += held == pod->terms[i].n && held > 0;
    }
    return holding > 0 || !pod->constraints.has_affinity;
}

static enum barrier expect(const struct drawn_pod *pod, const struct drawn_node *node)
{
    return node->cordoned && !pod->tolerates_cordon  ? BARRIER_CORDONED
           : !has_bit(pod->node_names, node->name)   ? BARRIER_NODE_NAME
           : !expects_taints(pod, node)              ? BARRIER_TAINT
           : !expects_selector(pod, node)            ? BARRIER_SELECTOR
           : !expects_affinity(pod, node)            ? BARRIER_AFFINITY
                                                     : BARRIER_NONE;
}

int main(void)
{
    unsigned seen[BARRIER_N] = {0};
    struct drawn_pod pod;
    struct drawn_node node;

    chance_init("constraints", 200000);
    while (chance_next_event()) {
        draw_pod(&pod);
        draw_node(&node);
        const enum barrier wanted = expect(&pod, &node);
        const enum barrier found = constraints_check(&pod.constraints, &node.node);
        g_autofree char *told = constraints_tell(&pod.constraints, &node.node, found);
        HOLDS(found == wanted, "%s, expected %s: %s", barrier_code(found), barrier_code(wanted),
              told);
        HOLDS((told == NULL) == (found == BARRIER_NONE), "nothing is said");
        node_traits_unref(node.node.traits);
        seen[found]++;
    }
    for (int i = 0; i < BARRIER_PODS; i++) /* sums are feasibility_barrier's */
        HOLDS(seen[i] > 0 || chance_events() < 1000, "%s never came", barrier_code((enum barrier)i));
    return 0;
}
