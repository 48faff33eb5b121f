/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/remedy_step.h"

#include "base/printable.h"
#include "explain/messages/messages.h"
#include "core/node.h"
#include "dialect/discovery.h"

#include <string.h>

/* --- nodes ---------------------------------------------------------------------------------- */

static bool make_uncordon(struct step *step, struct search *search, struct node *node,
                          size_t number)
{
    if (number > 0 || !node->cordoned)
        return false;
    node->cordoned = false;
    step->remedy.text = g_strdup_printf("uncordon %s", node->name);
    return true;
}

static bool make_heal(struct step *step, struct search *search, struct node *node, size_t number)
{
    struct card *card = NULL;
    size_t n = 0;

    for (int32_t i = 0; i < node->n_cards && !card; i++) {
        if (!card_is_open(&node->cards[i]) && n++ == number)
            card = &node->cards[i];
    }
    if (!card)
        return false;
    step->card = card;
    step->healthy = card->healthy;
    step->closure = card->closure;
    node_set_health(node, card, true, CLOSURE_NONE);
    step->remedy.card = card->index;
    if (step->closure != CLOSURE_NONE)
        step->remedy.text = g_strdup_printf("open card %d of %s again: %s", card->index, node->name,
                                            message_of_closure(step->closure));
    else
        step->remedy.text = g_strdup_printf("mend card %d of %s, which %s says is unhealthy", card->index, node->name,
                        card->broken ? "its node side" : "a ConfigMap");
    return true;
}

static bool make_label(struct step *step, struct search *search, struct node *node, size_t number)
{
    const struct terms *terms = search->query->request->terms;
    const bool first = terms && node->compute == 0 && terms->compute_min > 0;

    if (number > 0 || (!first && (!terms || node->driver != 0 || terms->driver_min == 0)))
        return false;
    const char *label = first ? DISCOVERY_COMPUTE : DISCOVERY_DRIVER;
    node->compute = MAX(node->compute, terms->compute_min);
    node->driver = MAX(node->driver, terms->driver_min);
    step->remedy.key = g_strdup(label);
    step->remedy.text = g_strdup_printf(
        "let GPU Feature Discovery label %s (%s), if its GPUs are such", node->name, label);
    return true;
}

/* --- constraints of the pod ------------------------------------------------------------------- */

static bool make_tolerate(struct step *step, struct search *search, struct node *node,
                          size_t number)
{
    struct constraints *more = &step->constraints;
    g_autoptr(GString) taints = g_string_new(NULL);
    const struct taint_view *taint;

    if (number > 0 || !step->pod.constraints || !node->traits ||
        !constraints_taint(step->pod.constraints, node))
        return false;
    *more = *step->pod.constraints;
    struct toleration *tolerations =
        g_new(struct toleration, more->n_tolerations + node->traits->n_taints);
    for (size_t i = 0; i < more->n_tolerations; i++)
        tolerations[i] = more->tolerations[i];
    more->tolerations = step->items = tolerations;
    while ((taint = constraints_taint(more, node))) {
        g_autofree char *text = taint_tell(taint);
        printable_append(taints, "%s%s", taints->len ? ", " : "", text);
        tolerations[more->n_tolerations++] = (struct toleration){
            .key = taint->key, .value = taint->value, .effect = taint->effect};
    }
    step->pod.constraints = more;
    step->remedy.key = g_strdup(taints->str);
    step->remedy.text = g_strdup_printf("tolerate %s", taints->str);
    return true;
}

/* Without the labels that this node has not; what it has may as well be asked for. */
static bool make_selector(struct step *step, struct search *search, struct node *node,
                          size_t number)
{
    struct constraints *less = &step->constraints;
    g_autoptr(GString) gone = g_string_new(NULL);
    size_t n = 0;

    if (number > 0 || !step->pod.constraints)
        return false;
    *less = *step->pod.constraints;
    struct string_pair *pairs = g_new(struct string_pair, less->selector.n + 1);
    step->items = pairs;
    for (size_t i = 0; i < less->selector.n; i++) {
        const struct string_pair *pair = &less->selector.items[i];
        const char *value =
            node->traits ? string_pairs_get(&node->traits->labels, pair->key) : NULL;
        if (g_strcmp0(value, pair->value) == 0)
            pairs[n++] = *pair;
        else
            printable_append(gone, "%s%s=%s", gone->len ? ", " : "", pair->key, pair->value);
    }
    if (gone->len == 0)
        return false;
    less->selector = (struct string_pairs){pairs, n};
    step->pod.constraints = less;
    step->remedy.key = g_strdup(gone->str);
    step->remedy.text = g_strdup_printf("take %s out of its nodeSelector", gone->str);
    return true;
}

static bool make_affinity(struct step *step, struct search *search, struct node *node,
                          size_t number)
{
    if (number > 0 || !step->pod.constraints || !step->pod.constraints->has_affinity)
        return false;
    step->constraints = *step->pod.constraints;
    step->constraints.has_affinity = false;
    step->constraints.n_terms = 0;
    step->pod.constraints = &step->constraints;
    step->remedy.text = g_strdup("take its required nodeAffinity away");
    return true;
}

/* --- its annotations -------------------------------------------------------------------------- */

static bool make_condition(struct step *step, struct search *search, struct node *node,
                           size_t number)
{
    const struct string_pairs all = step->pod.annotations;

    if (number >= all.n)
        return false;
    struct string_pair *others = g_memdup2(all.items, all.n * sizeof *others);
    const struct string_pair gone = others[number];
    others[number] = others[all.n - 1];
    step->items = others;
    step->pod.annotations = (struct string_pairs){others, all.n - 1};
    step->request =
        dialect_read_request(&step->pod, &store_options(search->query->copy)->dialects, NULL);
    step->remedy.key = g_strdup(gone.key);
    step->remedy.from = g_strdup(gone.value);
    step->remedy.text = g_strdup_printf("take away the annotation %s: %s", gone.key, gone.value);
    return true;
}

/* --- the table -------------------------------------------------------------------------------- */

static bool (*const makers[REMEDY_N])(struct step *step, struct search *search, struct node *node,
                                      size_t number) = {
    [REMEDY_UNCORDON] = make_uncordon, [REMEDY_TOLERATE] = make_tolerate,
    [REMEDY_SELECTOR] = make_selector, [REMEDY_AFFINITY] = make_affinity,
    [REMEDY_LABEL] = make_label,       [REMEDY_HEAL] = make_heal,
    [REMEDY_CONDITION] = make_condition,
};

bool step_make(struct step *ret_step, struct search *search, struct node *node,
               enum remedy_kind kind, size_t number)
{
    *ret_step = (struct step){
        .kind = kind,
        .pod = *search->query->pod,
        .remedy.kind = kind,
        .cordoned = node->cordoned,
        .compute = node->compute,
        .driver = node->driver,
    };
    if (kind < REMEDY_N && makers[kind] && makers[kind](ret_step, search, node, number))
        return true;
    g_clear_pointer(&ret_step->items, g_free);
    return false;
}

void step_undo(struct step *step, struct node *node)
{
    node->cordoned = step->cordoned;
    node->compute = step->compute;
    node->driver = step->driver;
    if (step->card)
        node_set_health(node, step->card, step->healthy, step->closure);
    g_clear_pointer(&step->request, request_free);
    g_clear_pointer(&step->items, g_free);
    remedy_clear(&step->remedy);
}

struct remedy step_tell(struct step *step)
{
    const struct remedy remedy = step->remedy;

    step->remedy = (struct remedy){0};
    return remedy;
}

enum remedy_kind step_of_barrier(enum barrier barrier)
{
    static const struct {
        enum barrier barrier;
        enum remedy_kind kind;
    } rows[] = {
        {BARRIER_CORDONED, REMEDY_UNCORDON},
        {BARRIER_TAINT, REMEDY_TOLERATE},
        {BARRIER_SELECTOR, REMEDY_SELECTOR},
        {BARRIER_AFFINITY, REMEDY_AFFINITY},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].barrier == barrier)
            return rows[i].kind;
    }
    return REMEDY_N;
}
