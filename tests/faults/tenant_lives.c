/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may befall a pod besides being bound, run and ended, with an author who edits it meanwhile, also
 * while the program is down: finalizers, a twin of the same name, mirrors of static pods, spec.nodeName,
 * a node that goes and comes back, a spec that changes. Scripts as in tenant_scripts.c.
 *
 *   build/tests/faults/tenant_lives [NAME…]
 *
 * Expected in each: a pod holds what its containers were given, from its Binding until kubelet says that
 * they have ended or its object is gone; whatever is not known counts on every card; and the rest is
 * free.
 */
#include "script.h"

#define AFTER_WAITS (70 * S) /* whatever waits has ended */

/* What its author does, and when. */
enum tenant_way { WATCHED, RESTART, DOWN, TENANT_WAYS };

static const char *const way_names[TENANT_WAYS] = {"watched", "restart", "down-restart"};

typedef void deed(struct played_pod *pod, const void *with);

static void commit(enum tenant_way way, deed *does, struct played_pod *pod, const void *with)
{
    if (way == DOWN)
        program_kill();
    does(pod, with);
    if (way == DOWN) {
        program_start_again();
    } else {
        pass(S);
        if (way == RESTART)
            program_crash();
    }
    pass(way == WATCHED ? S : 30 * S);
}

static void say_other_card(struct played_pod *pod, const void *with)
{
    const struct named *row = with;
    g_autofree char *own = NULL;

    played_edit(pod, row->index_key, other_card(row, pod, &own));
}

static void lose_seal(struct played_pod *pod, const void *with)
{
    played_edit(pod, "gpuledger.io/seal", NULL);
}

/* A whole card's worth, nearly, for somebody else. */
static struct played_pod *ask_for_card(const struct named *row, int node)
{
    return announce(begin_part("bank", row->tongue, node, 7));
}

/* --- finalizers ------------------------------------------------------------------------------ */

/* A deletion releases nothing, as long as containers run; nor does what is said meanwhile. When they have
 * ended nothing is held, though the object is still there. */
static void kept(const struct named *row, enum tenant_way way, deed *does)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *pod = run_part("mallory", row->tongue, 0, 7);
    struct played_pod *other = run_part("lab", row->tongue, 0, 7);
    if (pod->node < 0 || other->node < 0)
        return;
    pod->terminating = true;
    played_touch(pod);
    pass(S);
    commit(way, does, pod, row);
    pass(AFTER_WAITS);
    struct played_pod *next = ask_for_card(row, 0);
    must_not_come(next, "a pod that is being deleted holds its card");
    pod->phase = FAILED;
    played_touch(pod);
    pass(S);
    must_come(next, SOON_S, "its containers have ended");
    if (next->node < 0)
        return;
    admit(next);
    /* The object can still be edited. */
    commit(way, does, pod, row);
    must_not_come(ask_for_card(row, 0), "both cards are taken");
}

/* --- twins ----------------------------------------------------------------------------------- */

/* The next of a StatefulSet, or somebody's YAML of the last: its name and all its words, seal included. */
static struct played_pod *begin_twin(struct played_pod *pod, const struct named *row)
{
    struct words annotations = {0}, labels = {0};
    g_autofree char *ns = g_strdup(pod->ns);

    words_add(&annotations, &pod->annotations);
    words_add(&labels, &pod->labels);
    played_delete(pod);
    played_pod_new(pod, ns);
    words_add(&pod->annotations, &annotations);
    words_add(&pod->labels, &labels);
    words_clear(&annotations);
    words_clear(&labels);
    tenants_ask(pod, row->tongue, &played.nodes[0], 7);
    return pod;
}

static void twin(const struct named *row, enum tenant_way way)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *pod = run_part("mallory", row->tongue, 0, 7);
    struct played_pod *other = run_part("lab", row->tongue, 0, 7);
    if (pod->node < 0 || other->node < 0)
        return;
    if (way == DOWN)
        program_kill();
    begin_twin(pod, row);
    played_announce(pod);
    if (way == DOWN)
        program_start_again();
    pass(30 * S);
    struct played_pod *first = ask_for_card(row, 0);
    must_come(first, SOON_S, "the card of the first twin is free: the second holds nothing");
    if (first->node < 0)
        return;
    admit(first);
    must_not_come(pod, "both cards are taken, whatever its words say");
    played_delete(other);
    pass(S);
    must_come(pod, SOON_S, "a card is free");
    if (pod->node >= 0)
        admit(pod);
    if (way != WATCHED) {
        program_crash();
        pass(30 * S);
    }
    must_not_come(ask_for_card(row, 0), "both cards are taken");
}

/* Two that run, made from one template, say of themselves what is true of the other. */
static void exchange(struct played_pod *pod, const void *with)
{
    struct played_pod *other = (struct played_pod *)with;
    const struct words annotations = pod->annotations, labels = pod->labels;

    pod->annotations = other->annotations;
    pod->labels = other->labels;
    other->annotations = annotations;
    other->labels = labels;
    played_edit(pod, "touched", "1");
    played_edit(other, "touched", "1");
}

static void exchanged(const struct named *row, enum tenant_way way)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *large = run_part("mallory", row->tongue, 0, 6);
    struct played_pod *small = run_part("mallory", row->tongue, 0, 3);
    if (large->node < 0 || small->node < 0)
        return;
    commit(way, exchange, large, small);
    pass(AFTER_WAITS);
    struct played_pod *next = announce(begin_part("bank", row->tongue, 0, 4));
    if (way == WATCHED)
        must_come(next, 10, "there is room beside the small one");
    else
        comes_within(next, 10); /* nobody knows any more which is where: nothing, or rightly */
    must_not_come(announce(begin_part("bank", row->tongue, 0, 4)),
                  "there is no room beside the large one");
}

/* --- pods with spec.nodeName ------------------------------------------------------------------ */

/* A mirror of a static pod, which has no words: its node side gives it what it gives such pods. */
static void mirrored(const struct named *row, enum tenant_way way)
{
    one_node(row->kind, 1);
    start();
    struct played_pod *pod = begin_part("kube-system", row->tongue, 0, 7);
    words_parse(&pod->annotations, "kubernetes.io/config.mirror=0123 kubernetes.io/config.hash=0123 "
                                   "kubernetes.io/config.source=file");
    pod->node = 0;
    if (way == DOWN)
        program_kill();
    played_announce(pod);
    if (way == DOWN)
        program_start_again();
    pass(5 * S);
    admit(pod);
    if (way == RESTART)
        program_crash();
    pass(AFTER_WAITS);
    for (int i = 0; i < 2; i++) {
        struct played_pod *next = ask_for_card(row, 0);
        if (comes_within(next, 10))
            admit(next);
    }
}

/* On a node of the author's choice, with all the words of one that was bound there, and its seal. */
static void placed(const struct named *row, enum tenant_way way)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *pod = run_part("mallory", row->tongue, 0, 7);
    if (pod->node < 0)
        return;
    struct played_pod *copy = begin_part("mallory", row->tongue, 0, 7);
    words_add(&copy->annotations, &pod->annotations);
    words_add(&copy->labels, &pod->labels);
    g_autofree char *own = NULL;
    words_set(&copy->annotations, row->index_key, other_card(row, pod, &own));
    copy->node = 0;
    if (way == DOWN)
        program_kill();
    played_announce(copy);
    if (way == DOWN)
        program_start_again();
    pass(5 * S);
    admit(copy);
    if (way == RESTART)
        program_crash();
    pass(AFTER_WAITS);
    must_not_come(ask_for_card(row, 0), "both cards are taken");
}

/* --- nodes that go and come back --------------------------------------------------------------- */

static void take_words_of(struct played_pod *pod, const void *with)
{
    const struct played_pod *other = with;

    words_add(&pod->annotations, &other->annotations);
    words_add(&pod->labels, &other->labels);
    played_edit(pod, "touched", "1");
}

/* The Node is deleted, as its kubelet goes on; it is back when its author has written another's words. */
static void returned(const struct named *row, enum tenant_way way)
{
    one_node(row->kind, 2);
    sites_put(1, row->kind, 2, MIB_OF_A_CARD);
    start();
    struct played_pod *pod = run_part("mallory", row->tongue, 0, 7);
    struct played_pod *other = run_part("lab", row->tongue, 1, 7);
    struct played_pod *third = run_part("lab", row->tongue, 1, 7);
    if (pod->node < 0 || other->node < 0 || third->node < 0)
        return;
    const int gone = pod->node;
    struct played_pod *from = other->node != gone ? other : third;
    played_delete_node(gone);
    pass(10 * S);
    commit(way, take_words_of, pod, from);
    pass(AFTER_WAITS);
    played_put_node(gone);
    pass(10 * S);
    for (int i = 0; i < 4; i++) {
        struct played_pod *next = ask_for_card(row, gone);
        if (comes_within(next, i < 1 && way == WATCHED ? SOON_S : 10))
            admit(next);
        else if (i < 1 && way == WATCHED)
            complain("%s/%s is not served: a card is free: %s", next->ns, next->name,
                     program_last());
    }
}

/* The same machine under another name, and a copy of its pod that names the new one. */
static void renamed_node(const struct named *row, enum tenant_way way)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *pod = run_part("mallory", row->tongue, 0, 7);
    if (pod->node < 0)
        return;
    if (way == DOWN)
        program_kill();
    played_delete_node(0);
    sites_put(1, row->kind, 2, MIB_OF_A_CARD);
    struct played_pod *copy = begin_part("mallory", row->tongue, 1, 7);
    words_add(&copy->annotations, &pod->annotations);
    words_add(&copy->labels, &pod->labels);
    copy->node = 1;
    played_announce(copy);
    if (way == DOWN)
        program_start_again();
    pass(10 * S);
    admit(copy);
    if (way == RESTART)
        program_crash();
    pass(AFTER_WAITS);
    for (int i = 0; i < 2; i++) {
        struct played_pod *next = ask_for_card(row, 1);
        if (comes_within(next, 10))
            admit(next);
    }
}

/* --- specs that change ------------------------------------------------------------------------- */

/* No API server lets anybody do so with devices today: a resize is of cpu and memory, names stay. */
static void shrink(struct played_pod *pod, const void *with)
{
    const struct named *row = with;
    struct words *limits = &g_array_index(pod->boxes, struct box, 0).limits;

    words_clear(limits);
    words_parse(limits, row->least);
    played_edit(pod, "touched", "1");
}

static void rename_box(struct played_pod *pod, const void *with)
{
    struct box *box = &g_array_index(pod->boxes, struct box, 0);

    /* For the oracle, which finds a container's card by its name: it is that of the Binding. */
    for (unsigned i = pod->grant.n; i-- > 0;) {
        const struct word *word = &pod->grant.items[i];
        if (!g_str_has_suffix(word->key, box->name))
            continue;
        g_autofree char *family = g_strndup(word->key, strlen(word->key) - strlen(box->name));
        g_autofree char *key = g_strconcat(family, "renamed", NULL);
        g_autofree char *value = g_strdup(word->value);
        words_set(&pod->grant, key, value);
    }
    g_free(box->name);
    box->name = g_strdup("renamed");
    played_edit(pod, "touched", "1");
}

/* What the container was given when it was admitted it has until it ends. */
static void respecified(const struct named *row, enum tenant_way way, deed *does)
{
    one_node(row->kind, 2);
    start();
    struct played_pod *pod = run_part("mallory", row->tongue, 0, 7);
    if (pod->node < 0)
        return;
    commit(way, does, pod, row);
    pass(AFTER_WAITS);
    struct played_pod *next = ask_for_card(row, 0);
    must_come(next, 10, "a card is free");
    if (next->node >= 0)
        admit(next);
    must_not_come(ask_for_card(row, 0), "both cards are taken");
}

/* --- all of them -------------------------------------------------------------------------------- */

#define EACH(what, ...)                                                                            \
    SCRIPT(g_strdup_printf("%s-%s-%s", what, way_names[way], row->kind), __VA_ARGS__)

static void run_all(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(named); i++) {
        const struct named *row = &named[i];
        for (enum tenant_way way = WATCHED; way < TENANT_WAYS; way++) {
            EACH("kept-other-card", kept(row, way, say_other_card));
            EACH("kept-unsealed", kept(row, way, lose_seal));
            EACH("twin", twin(row, way));
            EACH("exchanged", exchanged(row, way));
            EACH("mirrored", mirrored(row, way));
            EACH("placed", placed(row, way));
            EACH("returned", returned(row, way));
            EACH("renamed-node", renamed_node(row, way));
            EACH("shrunk", respecified(row, way, shrink));
            EACH("renamed-container", respecified(row, way, rename_box));
        }
    }
}

int main(int argc, char **argv)
{
    return script_main(argc, argv, run_all);
}
