/* SPDX-License-Identifier: Apache-2.0 */
#include "core/constraints.h"

#include <string.h>

#define HOW_MANY_TOLD 4 /* values of one expression, in a sentence */
#define VALUES_PER_KEY 8 /* a node's labels and taints are gone through for it */

/* Those of the node lifecycle controller; kube-scheduler takes a cordoned node for one that has it. */
static const struct taint_view cordon_taint = {"node.kubernetes.io/unschedulable", "",
                                               "NoSchedule"};

const char *barrier_code(enum barrier barrier)
{
    static const char *const codes[BARRIER_N] = {
        [BARRIER_CORDONED] = "cordoned",   [BARRIER_NODE_NAME] = "node_name",
        [BARRIER_TAINT] = "taint",         [BARRIER_SELECTOR] = "node_selector",
        [BARRIER_AFFINITY] = "node_affinity", [BARRIER_PODS] = "pods",
        [BARRIER_CPU] = "cpu",             [BARRIER_MEMORY] = "memory",
    };
    return codes[barrier];
}

const char *overlooked_name(enum overlooked overlooked)
{
    static const char *const names[OVERLOOKED_N] = {
        [OVERLOOKED_POD_AFFINITY] = "podAffinity",
        [OVERLOOKED_POD_ANTI_AFFINITY] = "podAntiAffinity",
        [OVERLOOKED_TOPOLOGY_SPREAD] = "topologySpreadConstraints",
        [OVERLOOKED_VOLUMES] = "volumes",
        [OVERLOOKED_HOST_PORTS] = "hostPorts",
        [OVERLOOKED_RESOURCE_CLAIMS] = "resourceClaims",
        [OVERLOOKED_SCHEDULING_GATES] = "schedulingGates",
        [OVERLOOKED_PRIORITY_CLASS] = "priorityClassName",
    };
    return names[overlooked];
}

/* --- taints --------------------------------------------------------------------------------- */

static bool read_number(const char *text, int64_t *ret_number)
{
    return g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, ret_number, NULL);
}

static bool covers_number(const struct toleration *toleration, const char *value)
{
    int64_t own, of_taint;

    if (!toleration->value || !read_number(toleration->value, &own) ||
        !read_number(value, &of_taint))
        return false;
    return toleration->operator== TOLERATION_LT ? of_taint < own : of_taint > own;
}

static bool covers(const struct toleration *toleration, const struct taint_view *taint)
{
    const char *value = toleration->value ? toleration->value : "";

    if (toleration->effect && *toleration->effect &&
        strcmp(toleration->effect, taint->effect) != 0)
        return false;
    if (toleration->key && *toleration->key && strcmp(toleration->key, taint->key) != 0)
        return false;
    if (toleration->operator== TOLERATION_EXISTS)
        return true;
    if (toleration->operator== TOLERATION_EQUAL)
        return strcmp(value, taint->value) == 0;
    return covers_number(toleration, taint->value);
}

static bool tolerates(const struct constraints *constraints, const struct taint_view *taint)
{
    for (size_t i = 0; constraints && i < constraints->n_tolerations; i++) {
        if (covers(&constraints->tolerations[i], taint))
            return true;
    }
    return false;
}

const struct taint_view *constraints_taint(const struct constraints *constraints,
                                           const struct node *node)
{
    for (uint32_t i = 0; node->traits && i < node->traits->n_taints; i++) {
        if (!tolerates(constraints, &node->traits->taints[i]))
            return &node->traits->taints[i];
    }
    return NULL;
}

/* --- labels --------------------------------------------------------------------------------- */

static const char *label_of(const struct node *node, const char *key)
{
    return node->traits ? string_pairs_get(&node->traits->labels, key) : NULL;
}

static const char *subject_of(const struct match *match, const struct node *node)
{
    return match->field ? node->name : label_of(node, match->key);
}

static bool is_among(const struct match *match, const char *value)
{
    for (size_t i = 0; i < match->n_values; i++) {
        if (strcmp(match->values[i], value) == 0)
            return true;
    }
    return false;
}

static bool compares(const struct match *match, const char *value)
{
    int64_t wanted, found;

    if (match->n_values != 1 || !read_number(match->values[0], &wanted) ||
        !read_number(value, &found))
        return false;
    return match->operator== MATCH_GT ? found > wanted : found < wanted;
}

static bool match_holds(const struct match *match, const struct node *node)
{
    const char *value = subject_of(match, node);

    switch (match->operator) {
    case MATCH_IN:
        return value && is_among(match, value);
    case MATCH_NOT_IN:
        return !value || !is_among(match, value);
    case MATCH_EXISTS:
        return value;
    case MATCH_DOES_NOT_EXIST:
        return !value;
    case MATCH_GT:
    case MATCH_LT:
        return value && compares(match, value);
    case MATCH_N:
        break;
    }
    return false;
}

/* The first expression that does not hold; NULL: all do. */
static const struct match *first_failing(const struct match_term *term, const struct node *node)
{
    for (size_t i = 0; i < term->n; i++) {
        if (!match_holds(&term->matches[i], node))
            return &term->matches[i];
    }
    return NULL;
}

static bool affinity_holds(const struct constraints *constraints, const struct node *node)
{
    for (size_t i = 0; i < constraints->n_terms; i++) {
        if (constraints->terms[i].n > 0 && !first_failing(&constraints->terms[i], node))
            return true;
    }
    return !constraints->has_affinity;
}

static const struct string_pair *unmet_pair(const struct constraints *constraints,
                                            const struct node *node)
{
    for (size_t i = 0; i < constraints->selector.n; i++) {
        const struct string_pair *pair = &constraints->selector.items[i];
        if (g_strcmp0(label_of(node, pair->key), pair->value) != 0)
            return pair;
    }
    return NULL;
}

/* --- the whole ------------------------------------------------------------------------------ */

enum barrier constraints_check(const struct constraints *constraints, const struct node *node)
{
    if (node->cordoned && !tolerates(constraints, &cordon_taint))
        return BARRIER_CORDONED;
    if (constraints && constraints->node_name && *constraints->node_name &&
        strcmp(constraints->node_name, node->name) != 0)
        return BARRIER_NODE_NAME;
    if (!constraints)
        return BARRIER_NONE;
    if (constraints_taint(constraints, node))
        return BARRIER_TAINT;
    if (unmet_pair(constraints, node))
        return BARRIER_SELECTOR;
    return affinity_holds(constraints, node) ? BARRIER_NONE : BARRIER_AFFINITY;
}

int64_t constraints_size(const struct constraints *constraints)
{
    size_t values = 0, keys = 0;

    if (!constraints)
        return 0;
    for (size_t i = 0; i < constraints->n_terms; i++) {
        const struct match_term *term = &constraints->terms[i];
        keys += term->n;
        for (size_t j = 0; j < term->n; j++)
            values += term->matches[j].n_values;
    }
    keys += constraints->selector.n + constraints->n_tolerations;
    return (int64_t)(values + VALUES_PER_KEY * keys);
}

/* --- sentences ------------------------------------------------------------------------------ */

char *taint_tell(const struct taint_view *taint)
{
    return g_strdup_printf("%s%s%s:%s", taint->key, *taint->value ? "=" : "", taint->value,
                           taint->effect);
}

char *overlooked_tell(unsigned overlooked)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (unsigned i = 0; i < OVERLOOKED_N; i++) {
        if (overlooked & 1U << i)
            g_string_append_printf(text, "%s%s", text->len ? ", " : "",
                                   overlooked_name((enum overlooked)i));
    }
    return text->len ? g_strdup(text->str) : NULL;
}

/* What the node has under the key. */
static void tell_found(GString *text, const char *key, const char *value)
{
    if (value)
        g_string_append_printf(text, "the node has %s=%s", key, value);
    else
        g_string_append_printf(text, "the node has no label %s", key);
}

static void tell_match(GString *text, const struct match *match, const struct node *node)
{
    static const char *const words[MATCH_N] = {
        [MATCH_IN] = "In",         [MATCH_NOT_IN] = "NotIn",
        [MATCH_EXISTS] = "Exists", [MATCH_DOES_NOT_EXIST] = "DoesNotExist",
        [MATCH_GT] = "Gt",         [MATCH_LT] = "Lt",
    };

    g_string_append_printf(text, "%s %s", match->key, words[match->operator]);
    for (size_t i = 0; i < MIN(match->n_values, HOW_MANY_TOLD); i++)
        g_string_append_printf(text, "%s%s", i ? ", " : " [", match->values[i]);
    if (match->n_values > HOW_MANY_TOLD)
        g_string_append(text, ", …");
    g_string_append_printf(text, "%s; ", match->n_values ? "]" : "");
    if (match->field)
        g_string_append_printf(text, "the node is %s", node->name);
    else
        tell_found(text, match->key, subject_of(match, node));
}

static void tell_affinity(GString *text, const struct constraints *constraints,
                          const struct node *node)
{
    const struct match *failing = NULL;

    for (size_t i = 0; i < constraints->n_terms && !failing; i++)
        failing = first_failing(&constraints->terms[i], node);
    g_string_append(text, "nodeAffinity: ");
    if (!failing) {
        g_string_append(text, "its terms are empty, which no node matches");
        return;
    }
    tell_match(text, failing, node);
    if (constraints->n_terms > 1)
        g_string_append_printf(text, "; nor does another of %zu terms hold", constraints->n_terms);
}

char *constraints_tell(const struct constraints *constraints, const struct node *node,
                       enum barrier barrier)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (barrier == BARRIER_NONE)
        return NULL;
    if (barrier == BARRIER_CORDONED) {
        g_string_append(text, "cordoned");
    } else if (barrier == BARRIER_NODE_NAME) {
        g_string_append_printf(text, "nodeName: the pod names %s", constraints->node_name);
    } else if (barrier == BARRIER_TAINT) {
        g_autofree char *taint = taint_tell(constraints_taint(constraints, node));
        g_string_append_printf(text, "taint %s is not tolerated", taint);
    } else if (barrier == BARRIER_SELECTOR) {
        const struct string_pair *pair = unmet_pair(constraints, node);
        g_string_append_printf(text, "nodeSelector: %s=%s; ", pair->key, pair->value);
        tell_found(text, pair->key, label_of(node, pair->key));
    } else {
        tell_affinity(text, constraints, node);
    }
    return g_strdup(text->str);
}

/* --- the same? -------------------------------------------------------------------------------- */

static bool same_pairs(const struct string_pairs *a, const struct string_pairs *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = g_strcmp0(a->items[i].key, b->items[i].key) == 0 &&
               g_strcmp0(a->items[i].value, b->items[i].value) == 0;
    return same;
}

static bool same_match(const struct match *a, const struct match *b)
{
    bool same = a->operator== b->operator&& a->field == b->field && a->n_values == b->n_values &&
                g_strcmp0(a->key, b->key) == 0;

    for (size_t i = 0; same && i < a->n_values; i++)
        same = g_strcmp0(a->values[i], b->values[i]) == 0;
    return same;
}

static bool same_term(const struct match_term *a, const struct match_term *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = same_match(&a->matches[i], &b->matches[i]);
    return same;
}

static bool same_toleration(const struct toleration *a, const struct toleration *b)
{
    return a->operator== b->operator&& g_strcmp0(a->key, b->key) == 0 &&
           g_strcmp0(a->value, b->value) == 0 && g_strcmp0(a->effect, b->effect) == 0;
}

bool constraints_equal(const struct constraints *a, const struct constraints *b)
{
    if (a == b || !a || !b)
        return a == b;
    bool same = g_strcmp0(a->node_name, b->node_name) == 0 &&
                same_pairs(&a->selector, &b->selector) && a->has_affinity == b->has_affinity &&
                a->n_terms == b->n_terms && a->n_tolerations == b->n_tolerations;
    for (size_t i = 0; same && i < a->n_terms; i++)
        same = same_term(&a->terms[i], &b->terms[i]);
    for (size_t i = 0; same && i < a->n_tolerations; i++)
        same = same_toleration(&a->tolerations[i], &b->tolerations[i]);
    return same;
}

/* --- copies --------------------------------------------------------------------------------- */

/* What outlives that from which it was read: all in one block. */
#define ALIGNMENT ((size_t)16)

/* Without a base it only measures. */
struct packer {
    char *base;
    size_t used;
};

static void *pack(struct packer *packer, const void *data, size_t size)
{
    void *at = packer->base ? packer->base + packer->used : NULL;

    if (at && size)
        memcpy(at, data, size);
    packer->used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

static const char *pack_text(struct packer *packer, const char *text)
{
    return text ? pack(packer, text, strlen(text) + 1) : NULL;
}

static const struct string_pair *pack_pairs(struct packer *packer, const struct string_pairs *from)
{
    struct string_pair *pairs = pack(packer, from->items, from->n * sizeof *pairs);

    for (size_t i = 0; i < from->n; i++) {
        const struct string_pair pair = {pack_text(packer, from->items[i].key),
                                         pack_text(packer, from->items[i].value)};
        if (pairs)
            pairs[i] = pair;
    }
    return pairs;
}

static const char *const *pack_values(struct packer *packer, const struct match *from)
{
    const char **values = pack(packer, from->values, from->n_values * sizeof *values);

    for (size_t i = 0; i < from->n_values; i++) {
        const char *value = pack_text(packer, from->values[i]);
        if (values)
            values[i] = value;
    }
    return values;
}

static const struct match *pack_matches(struct packer *packer, const struct match_term *from)
{
    struct match *matches = pack(packer, from->matches, from->n * sizeof *matches);

    for (size_t i = 0; i < from->n; i++) {
        const char *key = pack_text(packer, from->matches[i].key);
        const char *const *values = pack_values(packer, &from->matches[i]);
        if (!matches)
            continue;
        matches[i].key = key;
        matches[i].values = values;
    }
    return matches;
}

static const struct match_term *pack_terms(struct packer *packer, const struct constraints *from)
{
    struct match_term *terms = pack(packer, from->terms, from->n_terms * sizeof *terms);

    for (size_t i = 0; i < from->n_terms; i++) {
        const struct match *matches = pack_matches(packer, &from->terms[i]);
        if (terms)
            terms[i].matches = matches;
    }
    return terms;
}

static const struct toleration *pack_tolerations(struct packer *packer,
                                                 const struct constraints *from)
{
    struct toleration *tolerations =
        pack(packer, from->tolerations, from->n_tolerations * sizeof *tolerations);

    for (size_t i = 0; i < from->n_tolerations; i++) {
        const struct toleration *one = &from->tolerations[i];
        const char *key = pack_text(packer, one->key), *value = pack_text(packer, one->value),
                   *effect = pack_text(packer, one->effect);
        if (tolerations)
            tolerations[i] = (struct toleration){key, value, effect, one->operator};
    }
    return tolerations;
}

static struct constraints *pack_all(struct packer *packer, const struct constraints *from)
{
    struct constraints *to = pack(packer, from, sizeof *from);
    const char *node_name = pack_text(packer, from->node_name);
    const struct string_pair *selector = pack_pairs(packer, &from->selector);
    const struct match_term *terms = pack_terms(packer, from);
    const struct toleration *tolerations = pack_tolerations(packer, from);

    if (to) {
        to->node_name = node_name;
        to->selector.items = selector;
        to->terms = terms;
        to->tolerations = tolerations;
    }
    return to;
}

struct constraints *constraints_dup(const struct constraints *constraints)
{
    struct packer packer = {0};

    if (!constraints)
        return NULL;
    pack_all(&packer, constraints);
    packer = (struct packer){.base = g_malloc(packer.used)};
    return pack_all(&packer, constraints);
}
