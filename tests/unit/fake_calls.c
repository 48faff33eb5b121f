/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_internal.h"

#include <check.h>
#include <gpuledger/error.h>
#include <stdlib.h>
#include <string.h>

void fake_delayed_free(gpointer data)
{
    struct delayed *delayed = data;
    g_free(delayed->key);
    g_free(delayed->uid);
    g_free(delayed->node);
    g_ptr_array_unref(delayed->annotations);
    g_free(delayed);
}

/* --- Bindings ------------------------------------------------------------------------------- */

struct check {
    struct fake_cluster *fake;
    const struct pod_object *newcomer;
    const struct node_object *node;
    const char *card;
    int64_t held;
};

static gboolean check_neighbour(gpointer key, gpointer data, gpointer user_data)
{
    struct check *check = user_data;
    const struct pod_object *pod = data;
    const char *card = g_tree_lookup(pod->annotations, KEY_IDX);

    if (g_strcmp0(pod->node, check->newcomer->node) != 0 || !card || fake_pod_is_over(pod))
        return FALSE;
    if (g_str_equal(card, check->card))
        check->held += pod->mem;
    else if (check->node->count > 1 && pod->mem == check->newcomer->mem &&
             g_str_equal(pod->phase, "Pending") && !check->fake->violation &&
             (!pod->started ||
              g_strcmp0(g_tree_lookup(pod->annotations, KEY_ASSIGNED), "false") == 0))
        check->fake->violation = g_strdup_printf(
            "%s on card %s and %s on card %s of %s wait with %" G_GINT64_FORMAT " each", pod->name,
            card, check->newcomer->name, check->card, pod->node, pod->mem);
    return FALSE;
}

static void check_cards(struct fake_cluster *fake, const struct pod_object *pod)
{
    struct check check = {fake, pod, g_tree_lookup(fake->nodes, pod->node),
                          g_tree_lookup(pod->annotations, KEY_IDX), 0};

    /* Kubelet asks for nothing on behalf of a pod that was over before its Binding came. */
    if (!check.node || !check.card || check.node->count == 0 || fake_pod_is_over(pod))
        return;
    g_tree_foreach(fake->pods, check_neighbour, &check);
    if (check.held > check.node->mem / check.node->count && !fake->violation)
        fake->violation =
            g_strdup_printf("card %s of %s holds %" G_GINT64_FORMAT " of %d", check.card, pod->node,
                            check.held, check.node->mem / check.node->count);
}

static enum outcome bind_pod(struct fake_cluster *fake, const struct delayed *binding)
{
    struct pod_object *pod = g_tree_lookup(fake->pods, binding->key);

    if (!pod)
        return OUTCOME_NOT_FOUND;
    if (!g_str_equal(pod->uid, binding->uid) || pod->node || pod->terminating)
        return OUTCOME_CONFLICT;
    pod->node = g_strdup(binding->node);
    for (guint i = 0; i < binding->annotations->len; i += 2)
        g_tree_insert(pod->annotations, g_strdup(g_ptr_array_index(binding->annotations, i)),
                      g_strdup(g_ptr_array_index(binding->annotations, i + 1)));
    fake->n_bound++;
    check_cards(fake, pod);
    fake_cluster_pod_changed(fake, pod, false);
    return OUTCOME_OK;
}

void fake_cluster_carry_out(struct fake_cluster *fake)
{
    struct delayed *delayed;

    lock(fake);
    while ((delayed = g_queue_pop_head(&fake->delayed))) {
        bind_pod(fake, delayed);
        fake_delayed_free(delayed);
    }
    unlock(fake);
}

void fake_cluster_forget_delayed(struct fake_cluster *fake)
{
    lock(fake);
    g_queue_clear_full(&fake->delayed, fake_delayed_free);
    unlock(fake);
}

/* --- calls ---------------------------------------------------------------------------------- */

static void script(struct fake_cluster *fake, GQueue *steps, const struct fake_step *step)
{
    lock(fake);
    g_queue_push_tail(steps, g_memdup2(step, sizeof *step));
    unlock(fake);
}

void fake_cluster_script_bind(struct fake_cluster *fake, const struct fake_step *step)
{
    script(fake, &fake->bind_script, step);
}

void fake_cluster_script_get(struct fake_cluster *fake, const struct fake_step *step)
{
    script(fake, &fake->get_script, step);
}

void fake_cluster_script_list(struct fake_cluster *fake, const struct fake_step *step)
{
    script(fake, &fake->list_script, step);
}

void fake_cluster_script_annotate(struct fake_cluster *fake, const struct fake_step *step)
{
    script(fake, &fake->annotate_script, step);
}

void fake_cluster_script_lock(struct fake_cluster *fake, const struct fake_step *step)
{
    script(fake, &fake->lock_script, step);
}

void fake_cluster_set_chaos(struct fake_cluster *fake, uint32_t seed, unsigned percent)
{
    lock(fake);
    g_rand_set_seed(fake->chaos, seed);
    fake->chaos_percent = percent;
    unlock(fake);
}

static const struct fake_step mishaps[] = {
    {FAKE_FAIL, OUTCOME_UNKNOWN},
    {FAKE_FAIL, OUTCOME_REFUSED},
    {FAKE_LOSE_REPLY},
    {FAKE_DELAY_EFFECT},
};

/* The step of this call; its hook and its delay are over when this returns. `n_mishaps` of the
 * table are possible. */
static struct fake_step next_step(struct fake_cluster *fake, GQueue *steps, gint32 n_mishaps)
{
    struct fake_step step = {FAKE_ANSWER};

    lock(fake);
    g_autofree struct fake_step *scripted = g_queue_pop_head(steps);
    if (scripted)
        step = *scripted;
    else if (n_mishaps > 0 && fake->chaos_percent > 0 &&
             g_rand_int_range(fake->chaos, 0, 100) < (gint32)fake->chaos_percent)
        step = mishaps[g_rand_int_range(fake->chaos, 0, n_mishaps)];
    unlock(fake);
    if (step.hook)
        step.hook(step.data);
    if (step.delay_ms > 0)
        g_usleep((gulong)step.delay_ms * 1000);
    return step;
}

static enum outcome ended(enum outcome outcome, GError **error)
{
    static const struct {
        int code;
        const char *text;
    } failures[] = {
        [OUTCOME_CONFLICT] = {GPULEDGER_ERROR_CONFLICT, "fake: conflict"},
        [OUTCOME_NOT_FOUND] = {GPULEDGER_ERROR_NOT_FOUND, "fake: not found"},
        [OUTCOME_REFUSED] = {GPULEDGER_ERROR_DENIED, "fake: refused"},
        [OUTCOME_UNKNOWN] = {GPULEDGER_ERROR_UNKNOWN, "fake: timed out"},
    };

    if (outcome != OUTCOME_OK)
        g_set_error_literal(error, GPULEDGER_ERROR, failures[outcome].code, failures[outcome].text);
    return outcome;
}

static enum outcome fake_bind(struct cluster *cluster, const struct binding *binding,
                              int64_t deadline_ms, GError **error)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;
    GString *body = g_string_new(NULL);
    struct json_writer writer;
    struct delayed *effect = g_new(struct delayed, 1);
    bool is_late = g_get_monotonic_time() / 1000 >= deadline_ms;

    json_writer_init(&writer, body);
    binding_encode(&writer, binding);
    *effect = (struct delayed){g_strdup_printf("%s/%s", binding->ns, binding->name),
                               g_strdup(binding->uid), g_strdup(binding->node),
                               g_ptr_array_new_with_free_func(g_free)};
    for (size_t i = 0; i < binding->annotations->n; i++) {
        g_ptr_array_add(effect->annotations, g_strdup(binding->annotations->items[i].key));
        g_ptr_array_add(effect->annotations, g_strdup(binding->annotations->items[i].value));
    }
    lock(fake);
    g_ptr_array_add(fake->sent, g_string_free(body, FALSE));
    unlock(fake);

    struct fake_step step = next_step(fake, &fake->bind_script, G_N_ELEMENTS(mishaps));
    enum outcome outcome = step.act == FAKE_FAIL ? step.outcome : OUTCOME_UNKNOWN;
    if (is_late)
        step.act = FAKE_FAIL;
    lock(fake);
    if (step.act == FAKE_ANSWER)
        outcome = bind_pod(fake, effect);
    else if (step.act == FAKE_LOSE_REPLY)
        bind_pod(fake, effect);
    else if (step.act == FAKE_DELAY_EFFECT)
        g_queue_push_tail(&fake->delayed, g_steal_pointer(&effect));
    unlock(fake);
    g_clear_pointer(&effect, fake_delayed_free);
    if (step.then)
        step.then(step.data);
    return ended(outcome, error);
}

static enum outcome fake_get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                                 const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                                 GError **error)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;
    g_autofree char *key = g_strdup_printf("%s/%s", ns, name);
    struct fake_step step = next_step(fake, &fake->get_script, 2);

    lock(fake);
    fake->n_gets++;
    unlock(fake);
    g_autofree char *text = fake_cluster_pod_json(fake, key);
    if (step.then)
        step.then(step.data);
    if (step.act == FAKE_FAIL)
        return ended(step.outcome, error);
    if (!text)
        return ended(OUTCOME_NOT_FOUND, error);
    const cJSON *json = json_parse(arena, text, strlen(text), NULL);
    ck_assert(json != NULL && pod_view_decode(arena, json, ret_pod, NULL));
    return OUTCOME_OK;
}

static enum outcome fake_list(struct cluster *cluster, enum feed feed, struct store *store,
                              GError **error)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;
    struct fake_step step = next_step(fake, &fake->list_script, 0);

    store_list_begin(store, feed);
    if (step.act == FAKE_FAIL)
        return ended(step.outcome, error);
    g_autoptr(GPtrArray) objects = fake_cluster_objects(fake, feed);
    for (guint i = 0; i < objects->len; i++)
        feed_event(store, feed, false, g_ptr_array_index(objects, i));
    store_list_end(store, feed);
    if (step.then)
        step.then(step.data);
    return OUTCOME_OK;
}

static enum outcome fake_annotate_pod(struct cluster *cluster,
                                      const struct pod_annotation *annotation, int64_t deadline_ms,
                                      GError **error)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;
    g_autofree char *key = g_strdup_printf("%s/%s", annotation->ns, annotation->name);
    struct fake_step step = next_step(fake, &fake->annotate_script, 0);
    enum outcome outcome = step.act == FAKE_FAIL ? step.outcome : OUTCOME_OK;

    lock(fake);
    const struct pod_object *pod = g_tree_lookup(fake->pods, key);
    fake->n_annotated++;
    if (outcome == OUTCOME_OK && !pod)
        outcome = OUTCOME_NOT_FOUND;
    else if (outcome == OUTCOME_OK && !g_str_equal(pod->uid, annotation->uid))
        outcome = OUTCOME_CONFLICT;
    unlock(fake);
    if (outcome == OUTCOME_OK && annotation->key)
        fake_cluster_annotate(fake, key, annotation->key, annotation->value);
    for (size_t i = 0; outcome == OUTCOME_OK && annotation->all && i < annotation->all->n; i++)
        fake_cluster_annotate(fake, key, annotation->all->items[i].key,
                              annotation->all->items[i].value);
    if (step.then)
        step.then(step.data);
    return ended(outcome, error);
}

static enum outcome fake_get_node(struct cluster *cluster, struct json_arena *arena,
                                  const char *name, int64_t deadline_ms,
                                  struct node_view *ret_node, GError **error)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;

    lock(fake);
    const struct node_object *node = g_tree_lookup(fake->nodes, name);
    g_autofree char *text = node ? fake_cluster_node_json(node) : NULL;
    unlock(fake);
    if (!text)
        return ended(OUTCOME_NOT_FOUND, error);
    const cJSON *json = json_parse(arena, text, strlen(text), NULL);
    ck_assert(json != NULL && node_view_decode(arena, json, ret_node, NULL));
    return OUTCOME_OK;
}

static enum outcome fake_annotate_node(struct cluster *cluster,
                                       const struct node_annotation *annotation,
                                       int64_t deadline_ms, GError **error)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;
    struct fake_step step = next_step(fake, &fake->lock_script, 0);
    enum outcome outcome = step.act == FAKE_FAIL         ? step.outcome
                           : step.act == FAKE_LOSE_REPLY ? OUTCOME_UNKNOWN
                                                         : OUTCOME_OK;

    lock(fake);
    struct node_object *node = g_tree_lookup(fake->nodes, annotation->node);
    if (step.act != FAKE_FAIL && !node) {
        outcome = OUTCOME_NOT_FOUND;
    } else if (step.act != FAKE_FAIL) {
        g_autofree char *version = g_strdup_printf("%" G_GINT64_FORMAT, node->version);
        if (g_str_equal(version, annotation->version))
            fake_cluster_change_node(fake, node, annotation->key, annotation->value);
        else
            outcome = OUTCOME_CONFLICT;
    }
    unlock(fake);
    if (step.then)
        step.then(step.data);
    return ended(outcome, error);
}

static void fake_post_event(struct cluster *cluster, const struct pod_event *event)
{
    struct fake_cluster *fake = (struct fake_cluster *)cluster;

    lock(fake);
    g_ptr_array_add(fake->posted,
                    g_strdup_printf("%s %s/%s: %s", pod_event_info(event->cause)->reason,
                                    event->ns ? event->ns : "", event->name, event->note));
    unlock(fake);
}

char *fake_cluster_posted(struct fake_cluster *fake, unsigned i)
{
    lock(fake);
    char *text = i < fake->posted->len ? g_strdup(g_ptr_array_index(fake->posted, i)) : NULL;
    unlock(fake);
    return text;
}

unsigned fake_cluster_n_annotated(struct fake_cluster *fake)
{
    lock(fake);
    unsigned n = fake->n_annotated;
    unlock(fake);
    return n;
}

char *fake_cluster_sent(struct fake_cluster *fake, unsigned i)
{
    lock(fake);
    char *text = g_strdup(i < fake->sent->len ? g_ptr_array_index(fake->sent, i) : "");
    unlock(fake);
    return text;
}

unsigned fake_cluster_n_sent(struct fake_cluster *fake)
{
    lock(fake);
    unsigned n = fake->sent->len;
    unlock(fake);
    return n;
}

unsigned fake_cluster_n_gets(struct fake_cluster *fake)
{
    lock(fake);
    unsigned n = fake->n_gets;
    unlock(fake);
    return n;
}

unsigned fake_cluster_n_bound(struct fake_cluster *fake)
{
    lock(fake);
    unsigned n = fake->n_bound;
    unlock(fake);
    return n;
}

char *fake_cluster_violation(struct fake_cluster *fake)
{
    lock(fake);
    char *text = g_strdup(fake->violation);
    unlock(fake);
    return text;
}

const struct cluster_ops fake_cluster_ops = {
    .name = "fake",
    .bind = fake_bind,
    .get_pod = fake_get_pod,
    .list = fake_list,
    .annotate_pod = fake_annotate_pod,
    .get_node = fake_get_node,
    .annotate_node = fake_annotate_node,
    .post_event = fake_post_event,
};
