/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/node_switch.h"

#include "base/log.h"
#include "core/fail.h"
#include "dialect/marks/node_marks.h"
#include "kube/clock.h"
#include "evict/door.h"
#include "policy/victims/may_end.h"
#include "store/cluster.h"
#include "switch/layout_target.h"
#include "switch/slot_drain.h"

#include <string.h>

#define CALL_MS 10000
#define NOTE "its node is made to share its GPUs in another way"

void node_look_clear(struct node_look *look)
{
    g_free(look->label);
    g_free(look->is);
    g_free(look->mark);
    g_free(look->unread);
    *look = (struct node_look){0};
}

/* One look at one node. */
struct looking {
    const struct node_switch *with;
    struct json_arena *arena;
    const cJSON *object;
    struct node_view view;
    struct pod_view *pods; /* that have a GPU, or have to go for fewer slots; those on their way not
                            * among them */
    size_t n_pods;
    bool listed;     /* the pods were read */
    bool slots;      /* it is about slots: */
    guint n_leaving; /* who have to go, those on their way among them */
    int64_t now_s;
};

/* --- reading ------------------------------------------------------------------------------------ */

/* Free with g_free. */
static char *node_path(const char *node)
{
    g_autofree char *escaped = g_uri_escape_string(node, NULL, FALSE);

    return g_strconcat("/api/v1/nodes/", escaped, NULL);
}

static enum outcome read_node(struct looking *looking, const char *node, GError **error)
{
    g_autofree char *path = node_path(node);
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(looking->with->client, &call, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    looking->object = json_parse(looking->arena, reply->str, reply->len, error);
    return looking->object &&
                   node_view_decode(looking->arena, looking->object, &looking->view, error)
               ? OUTCOME_OK
               : OUTCOME_REFUSED;
}

static bool has_gpu(const struct looking *looking, const struct pod_view *pod)
{
    g_autofree char *warning = NULL;
    g_autoptr(allocation) held = dialect_read_allocation(pod, looking->with->dialects, &warning);

    return held != NULL;
}

static enum outcome read_pods(struct looking *looking, GError **error)
{
    struct cluster *cluster = looking->with->cluster;
    struct pod_view *pods;
    size_t n = 0;
    const enum outcome outcome = cluster->ops->list_pods_on(
        cluster, looking->arena, looking->view.name, clock_ms() + CALL_MS, &pods, &n, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    looking->pods = pods;
    looking->listed = true;
    for (size_t i = 0; i < n; i++) {
        if (has_gpu(looking, &pods[i]))
            pods[looking->n_pods++] = pods[i];
    }
    return OUTCOME_OK;
}

static bool stays(const struct pod_view *pod)
{
    return may_end_not(ENDER_SWITCH, false, pod_view_ties(pod));
}

/* --- who has to go for fewer slots ---------------------------------------------------------------- */

/* Whether gpuledger chooses the node's cards, so that it can bound their holders. */
static bool counts_cards(const struct looking *looking)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *warning = NULL;
    bool places = false;

    if (!dialect_read_topology(&looking->view, looking->with->dialects, topology, &warning, NULL))
        return false;
    for (int32_t i = 0; i < topology->n_dialects; i++)
        places |=
            topology->dialects[i]->refuse != NULL; /* else another scheduler places its pods */
    return places && topology->n_cards > 0;
}

/* The node as the API server shows it, for whoever keeps no ledger. */
static struct ledger *make_ledger(const struct looking *looking)
{
    g_autoptr(topology) topology = topology_new();
    g_autofree char *told = NULL;
    struct ledger *ledger = ledger_new();

    if (dialect_read_topology(&looking->view, looking->with->dialects, topology, &told, NULL))
        ledger_set_topology(ledger, looking->view.name, topology);
    for (size_t i = 0; i < looking->n_pods; i++) {
        g_autofree char *warning = NULL;
        struct allocation *held =
            dialect_read_allocation(&looking->pods[i], looking->with->dialects, &warning);
        if (held)
            ledger_put(ledger, looking->view.name, held);
    }
    return ledger;
}

/* Of those that a ledger has there; who is there and not in it counts as well, as nobody knows where. */
static GHashTable *find_leaving(const struct looking *looking, const struct ledger *ledger,
                                int32_t most, guint *ret_n)
{
    g_autoptr(GHashTable) staying = g_hash_table_new(g_str_hash, g_str_equal);
    const struct node *node = ledger_node(ledger, looking->view.name);
    guint n_unknown = 0;

    for (size_t i = 0; i < looking->n_pods; i++) {
        const struct pod_view *pod = &looking->pods[i];
        const struct allocation *held = ledger_get(ledger, pod->uid);
        n_unknown += !held || held->node != node;
        if (stays(pod))
            g_hash_table_add(staying, (gpointer)pod->uid);
    }
    GHashTable *leaving =
        node ? slot_drain_find(node, most, staying) : g_hash_table_new(g_str_hash, g_str_equal);
    *ret_n = g_hash_table_size(leaving) + n_unknown;
    return leaving;
}

/* Leaves of the pods those that have to go, if the switch that is announced, or wanted, is of slots. */
static void choose_leaving(struct looking *looking, const struct switch_mark *wanted)
{
    const char *text = string_pairs_get(&looking->view.annotations, SWITCH_KEY);
    g_autoptr(GHashTable) leaving = NULL;
    g_autoptr(ledger) own = NULL;
    struct switch_mark mark;
    size_t n = 0;

    if (text ? !switch_mark_parse(text, &mark) : !wanted)
        return;
    mark = text ? mark : *wanted;
    const struct node_slots slots = node_slots_parse(mark.value);
    if (!g_str_equal(mark.label, NODE_SLOTS_KEY) || !slots.readable)
        return;
    looking->slots = true;
    struct store *store = looking->with->store;
    if (!store)
        own = make_ledger(looking);
    leaving =
        find_leaving(looking, store ? store_lock(store) : own, slots.most, &looking->n_leaving);
    if (store)
        store_unlock(store);
    for (size_t i = 0; i < looking->n_pods; i++) {
        if (g_hash_table_contains(leaving, looking->pods[i].uid))
            looking->pods[n++] = looking->pods[i];
    }
    looking->n_pods = n;
}

/* Whoever binds knows that the time has come. */
static bool has_heard(const struct looking *looking, const struct node *node)
{
    return node->switches_ns != 0 &&
           node->switches_ns / (G_USEC_PER_SEC * G_GINT64_CONSTANT(1000)) <= looking->now_s;
}

/* Those in the ledger as well: their Bindings may be on their way. Until it has heard of the switch itself
 * somebody else may be. */
static guint count_holders(const struct looking *looking, const struct switch_state *state)
{
    guint n = looking->slots ? looking->n_leaving : (guint)looking->n_pods;

    if (!looking->with->store)
        return n > 0 ? n : looking->now_s - state->since_s < SWITCH_SETTLE_S;
    const struct node *node = ledger_node(store_lock(looking->with->store), looking->view.name);
    if (node)
        n = MAX(n, !has_heard(looking, node) ? 1 : looking->slots ? n : node->allocations->len);
    store_unlock(looking->with->store);
    return n;
}

/* --- writing ------------------------------------------------------------------------------------ */

static bool serves(const struct node_switch *with)
{
    return !with->leadership || leadership_term(with->leadership) == with->term;
}

static void write_word(struct json_writer *writer, const char *key, const struct switch_word *word)
{
    if (!word->set)
        return;
    json_key_string(writer, key, word->text);
}

static bool is_ours(const cJSON *taint)
{
    const cJSON *key = cJSON_GetObjectItemCaseSensitive(taint, "key");

    return cJSON_IsString(key) && g_str_equal(key->valuestring, SWITCH_TAINT);
}

/* All of them: a merge patch replaces lists. */
static void write_taints(struct json_writer *writer, const struct looking *looking, bool ours)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(looking->object, "spec");
    const cJSON *taint;

    json_key_object(writer, "spec");
    json_key_array(writer, "taints");
    cJSON_ArrayForEach (taint, cJSON_GetObjectItemCaseSensitive(spec, "taints")) {
        if (!is_ours(taint))
            json_value(writer, taint);
    }
    if (ours) {
        json_begin_object(writer);
        json_key_string(writer, "key", SWITCH_TAINT);
        json_key_string(writer, "effect", "NoSchedule");
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static void write_patch(GString *body, const struct looking *looking,
                        const struct switch_step *step)
{
    const struct switch_word gone = {true, NULL};
    struct json_writer writer;

    json_writer_init(&writer, body);
    const bool slots = step->mode && switch_mode_is_slots(step->mode);
    json_begin_object(&writer);
    json_key_object(&writer, "metadata");
    json_key_string(&writer, "resourceVersion", looking->view.resource_version);
    json_key_object(&writer, "annotations");
    write_word(&writer, SWITCH_KEY, &step->mark);
    write_word(&writer, SWITCH_STATE_KEY, &step->state);
    write_word(&writer, SWITCH_DONE_KEY, &step->done);
    if (slots)
        write_word(&writer, step->mode->label, &step->label);
    json_end_object(&writer);
    json_key_object(&writer, "labels");
    if (step->mode && !slots) {
        write_word(&writer, step->mode->label, &step->label);
        if (step->clears_state && step->mode->state)
            write_word(&writer, step->mode->state, &gone);
    }
    json_end_object(&writer);
    json_end_object(&writer);
    write_taints(&writer, looking, step->taint);
    json_end_object(&writer);
}

static enum outcome send_patch(const struct looking *looking, const struct switch_step *step,
                               GError **error)
{
    g_autofree char *path = node_path(looking->view.name);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    const struct api_call call = {.method = "PATCH",
                                  .path = path,
                                  .body = body,
                                  .deadline_ms = clock_ms() + CALL_MS,
                                  .once = true};

    if (!serves(looking->with)) {
        leadership_set_error(error);
        return OUTCOME_CONFLICT;
    }
    write_patch(body, looking, step);
    return api_client_call(looking->with->client, &call, reply, error);
}

/* One pod that leaves. */
struct leaving {
    const struct looking *looking;
    const struct pod_view *pod;
    struct node_look *look;
};

/* Right before its end, which takes its place in the hour if that has a bound. False: none is left, or nobody knows;
 * that is in the look. */
static bool has_place(void *data, GError **error)
{
    const struct leaving *leaving = data;
    const struct node_switch *with = leaving->looking->with;
    const struct moves moves = {with->client, with->moves_ns, MOVES_SWITCH};
    const struct moved_pod pod = {leaving->pod->uid, leaving->pod->ns, leaving->looking->view.name};
    g_autoptr(GError) failure = NULL;
    int64_t wait_ms = 0;

    if (with->limits.max_per_hour == 0)
        return true;
    if (!moves_book(&moves, &pod, with->limits.max_per_hour, &wait_ms, &failure)) {
        leaving->look->waits = "how many pods were evicted within the hour is not known";
        leaving->look->unread = g_strdup(failure->message);
        return false;
    }
    if (wait_ms > 0)
        leaving->look->waits = "as many pods as may have been evicted within an hour";
    return wait_ms == 0 && serves(with); /* that may have taken long */
}

/* Who would not end now takes no place in the hour. */
static enum door_answer evict(const struct leaving *leaving)
{
    const struct node_switch *with = leaving->looking->with;
    const struct pod_view *pod = leaving->pod;
    const struct evictee evictee = {.ns = (char *)pod->ns,
                                    .name = (char *)pod->name,
                                    .uid = (char *)pod->uid,
                                    .node = (char *)leaving->looking->view.name};
    g_autofree char *whom = g_strdup_printf("node %s", evictee.node);
    const struct door_order order = {.client = with->client,
                                     .store = with->store,
                                     .whom = whom,
                                     .ender = ENDER_SWITCH,
                                     .permits = with->permits,
                                     .ns = pod->ns,
                                     .name = pod->name,
                                     .uid = pod->uid,
                                     .note = NOTE,
                                     .leadership = with->leadership,
                                     .term = with->term,
                                     .is_wanted = has_place,
                                     .data = (void *)leaving};
    enum door_answer answer =
        with->limits.max_per_hour == 0 ? DOOR_OPEN : door_try(&order, &evictee, NULL);

    if (answer == DOOR_OPEN)
        answer = door_end(&order, &evictee, NULL);
    return answer;
}

/* Of the pods with GPUs that are on the node still: why none of them ends now, a constant; NULL: they may. */
static const char *why_none_ends(const struct looking *looking)
{
    struct permits *permits = looking->with->permits;
    g_autofree const char **namespaces = g_new0(const char *, looking->n_pods + 1);
    g_autofree char *stopped = permits ? permits_why_stopped(permits) : NULL;

    for (size_t i = 0; i < looking->n_pods; i++)
        namespaces[i] = looking->pods[i].ns;
    if (!limiter_spreads(namespaces, looking->n_pods, looking->with->limits.max_per_namespace))
        return "more pods of one namespace are there than may end";
    return stopped ? "evictions are stopped" : NULL;
}

/* Of those that have yet to be told. A budget that has nothing to give is asked again at the next look;
 * what goes wrong is known by then, too, since the pod is still there. What keeps the others is in the look. */
static guint evict_all(const struct looking *looking, struct node_look *look)
{
    enum door_answer answer = DOOR_OPEN;
    guint n = 0;

    look->waits = why_none_ends(looking);
    if (look->waits)
        return 0;
    for (size_t i = 0; i < looking->n_pods && answer != DOOR_UNWANTED; i++) {
        const struct leaving leaving = {looking, &looking->pods[i], look};
        if (leaving.pod->terminating || stays(leaving.pod))
            continue;
        answer = evict(&leaving);
        n += answer == DOOR_OPEN;
    }
    return n;
}

/* --- the whole ---------------------------------------------------------------------------------- */

static void describe(const struct looking *looking, const struct switch_step *step,
                     struct node_look *look)
{
    const char *mark = string_pairs_get(&looking->view.annotations, SWITCH_KEY);
    const char *label = step->mode ? step->mode->label : NULL;

    look->event = step->event;
    look->phase = step->phase;
    look->stuck = step->stuck;
    look->waits = step->waits;
    look->label = g_strdup(label);
    look->is = label ? g_strdup(switch_mode_value(step->mode, &looking->view)) : NULL;
    look->mark = g_strdup(mark);
}

/* What somebody wants now is announced, unless another switch is. */
static bool find_wanted(const struct looking *looking, const struct switch_mark *wanted,
                        struct switch_step *ret_step)
{
    if (!wanted || string_pairs_get(&looking->view.annotations, SWITCH_KEY) ||
        string_pairs_get(&looking->view.annotations, SWITCH_STATE_KEY))
        return false;
    *ret_step = (struct switch_step){
        .event = SWITCH_EVENT_ANNOUNCED,
        .writes = true,
        .mark = {true, switch_mark_format(wanted)},
        .mode = switch_mode_find(wanted->label),
    };
    return true;
}

/* Of a window that leaves the layout to what is expected. Only serve knows that. */
static void find_advice(const struct looking *looking, const struct switch_sight *sight,
                        struct switch_advice *ret_advice)
{
    g_autoptr(GError) failure = NULL;

    *ret_advice = (struct switch_advice){0};
    if (looking->with->store && switch_wants_advice(sight) &&
        !layout_target_find(looking->with->store, sight->calendar, sight->node, ret_advice,
                            &failure))
        log_event_limited(LOG_LEVEL_WARN, "which layout serves most is not known",
                          LOG_TEXT("node", sight->node->name), LOG_TEXT("why", failure->message));
}

static enum outcome carry_out(struct looking *looking, const struct switch_step *step,
                              struct node_look *look, GError **error)
{
    if (looking->with->dry_run)
        return OUTCOME_OK;
    if (step->drains)
        look->n_evicted = evict_all(looking, look);
    return step->writes ? send_patch(looking, step, error) : OUTCOME_OK;
}

/* What cannot be read is left to the step, which says so. */
static bool may_carry_out(const struct looking *looking, GError **error)
{
    const struct switch_mark *only = looking->with->only;
    const char *text = string_pairs_get(&looking->view.annotations, SWITCH_KEY);
    struct switch_mark mark;

    return !only || !text || !switch_mark_parse(text, &mark) ||
           (g_str_equal(mark.label, only->label) && g_str_equal(mark.value, only->value)) ||
           fail_with(error, GPULEDGER_ERROR_CONFLICT,
                     "node '%s': another switch is announced: %s; it has to be over, or be taken "
                     "away with "
                     "'kubectl annotate node %s " SWITCH_KEY "-'",
                     looking->view.name, text, looking->view.name);
}

enum outcome node_switch_look(const struct node_switch *with, const char *node,
                              const struct switch_mark *wanted, struct node_look *ret_look,
                              GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct looking looking = {
        .with = with, .arena = arena, .now_s = g_get_real_time() / G_USEC_PER_SEC};
    struct switch_state state = {0};
    struct switch_step step;
    enum outcome outcome = read_node(&looking, node, error);

    *ret_look = (struct node_look){0};
    if (outcome != OUTCOME_OK)
        return outcome;
    if (!may_carry_out(&looking, error))
        return OUTCOME_REFUSED;
    const char *said = string_pairs_get(&looking.view.annotations, SWITCH_STATE_KEY);
    const bool drains = said && switch_state_parse(said, &state) && state.phase == SWITCH_DRAINING;
    if (drains || with->dry_run)
        outcome = read_pods(&looking, error);
    if (outcome != OUTCOME_OK)
        return outcome;
    const bool countable = counts_cards(&looking);
    if (wanted && !countable && g_str_equal(wanted->label, NODE_SLOTS_KEY)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "node '%s': %s", node,
                    switch_uncounted);
        return OUTCOME_REFUSED;
    }
    if (looking.listed)
        choose_leaving(&looking, wanted);
    struct switch_advice advice;
    struct switch_sight sight = {
        .now_s = looking.now_s,
        .node = &looking.view,
        .calendar = with->calendar,
        .replicas = with->replicas,
        .limits = with->limits,
        .n_holders = drains ? count_holders(&looking, &state) : (guint)looking.n_pods,
        .counts_cards = countable,
    };
    find_advice(&looking, &sight, &advice);
    sight.advice = with->store ? &advice : NULL;
    if (!find_wanted(&looking, wanted, &step))
        switch_step_find(&sight, &step);
    g_free(advice.value);
    describe(&looking, &step, ret_look);
    ret_look->n_holders = sight.n_holders;
    outcome = carry_out(&looking, &step, ret_look, error);
    switch_step_clear(&step);
    return outcome;
}
