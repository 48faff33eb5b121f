/* SPDX-License-Identifier: Apache-2.0 */
#include "lending_cluster.h"

#include "chance.h"
#include "../unit/fake_claims.h"
#include "../unit/literals.h"

#include "base/log.h"
#include "explain/trial.h"

#include <stdio.h>
#include <string.h>

#define QUIET_STEPS 120

struct lending lending;
static unsigned born;

struct lending_pod *lending_find(const char *uid)
{
    int number;
    unsigned of;

    return sscanf(uid, "p%d-%u", &number, &of) == 2 && lending.pods[number].born == of
               ? &lending.pods[number]
               : NULL;
}

static char *uid_of(int number)
{
    return g_strdup_printf("p%d-%u", number, lending.pods[number].born);
}

/* --- what it shows ------------------------------------------------------------------------------- */

struct told {
    char *ns, *name, *uid, *node, *units, *card, *created;
    struct container_view container;
    struct string_pair limits[1], words[8];
    struct pod_view view;
};

static void told_clear(struct told *told)
{
    g_free(told->ns);
    g_free(told->name);
    g_free(told->uid);
    g_free(told->node);
    g_free(told->units);
    g_free(told->card);
    g_free(told->created);
}

static void view_of(int number, struct told *told)
{
    const struct lending_pod *pod = &lending.pods[number];
    g_autoptr(GDateTime) created = g_date_time_new_from_unix_utc(pod->created_s);

    *told = (struct told){
        .ns = g_strdup_printf("s%d", pod->space),
        .name = g_strdup_printf("p%d", number),
        .uid = uid_of(number),
        .node = g_strdup_printf("n%d", pod->node),
        .units = g_strdup_printf("%d", pod->units),
        .card = g_strdup_printf("%d", pod->card),
        .created = g_date_time_format(created, "%Y-%m-%dT%H:%M:%SZ"),
    };
    const struct string_pair words[] = {
        {"ALIYUN_COM_GPU_MEM_IDX", told->card},  {"ALIYUN_COM_GPU_MEM_POD", told->units},
        {"ALIYUN_COM_GPU_MEM_DEV", "10"},        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"},
    };
    const struct string_pair stays = {"scheduling.koordinator.sh/refuse-to-migrate", "true"};
    const struct string_pair group[] = {
        {"gang.scheduling.koordinator.sh/name", "g"},
        {"gang.scheduling.koordinator.sh/min-available", lending.group_min},
    };
    size_t n_words = 0;

    if (pod->stage != STAGE_WAITS) {
        memcpy(told->words, words, sizeof words);
        n_words = G_N_ELEMENTS(words);
        if (pod->opts_out)
            told->words[n_words++] = stays;
    }
    if (pod->grouped) {
        memcpy(told->words + n_words, group, sizeof group);
        n_words += G_N_ELEMENTS(group);
    }
    told->limits[0] = (struct string_pair){"aliyun.com/gpu-mem", told->units};
    told->container = (struct container_view){.name = "c", .limits = {told->limits, 1}};
    told->view = (struct pod_view){
        .ns = told->ns,
        .name = told->name,
        .uid = told->uid,
        .phase = pod->stage == STAGE_WAITS ? "Pending" : "Running",
        .priority = pod->priority,
        .created = told->created,
        .terminating = pod->stage == STAGE_ENDS,
        .containers = &told->container,
        .n_containers = 1,
    };
    told->view.annotations = (struct string_pairs){told->words, n_words};
    if (pod->stage != STAGE_WAITS)
        told->view.node_name = told->node;
}

void lending_tell(int number)
{
    struct told told;

    view_of(number, &told);
    store_apply_pod(lending.store, &told.view);
    told_clear(&told);
}

static void tell_node(int node)
{
    g_autofree char *name = g_strdup_printf("n%d", node);
    g_autofree char *units = g_strdup_printf("%d", LENDING_CARD * lending.n_cards);
    g_autofree char *count = g_strdup_printf("%d", lending.n_cards);
    struct node_view view = {
        .name = name,
        .capacity = PAIRS({"aliyun.com/gpu-mem", units}, {"aliyun.com/gpu-count", count}),
    };
    const struct string_pair note[] = {{CLAIM_KEY, lending.notes[node].shown}};

    view.allocatable = view.capacity;
    if (lending.notes[node].shown)
        view.annotations = (struct string_pairs){note, 1};
    store_apply_node(lending.store, &view);
}

static enum outcome get_node(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error)
{
    const int node = name[1] - '0' + (name[2] ? 10 * (name[1] - '0') + name[2] - name[1] : 0);
    char *version = json_arena_alloc(arena, 16);

    g_snprintf(version, 16, "%d", lending.notes[node].version);
    *ret_node = (struct node_view){.name = name, .resource_version = version};
    return OUTCOME_OK;
}

/* --- what is kept and taken ----------------------------------------------------------------------- */

int64_t lending_promised(int space)
{
    int64_t sum = 0;

    for (int i = 0; i < lending.n_nodes; i++) {
        g_autoptr(GPtrArray) claims = claims_decode(lending.notes[i].text, NULL);
        for (guint j = 0; j < claims->len; j++) {
            const struct room_claim *claim = claims->pdata[j];
            const struct lending_pod *pod = lending_find(claim->uid);
            if (pod && pod->space == space && pod->stage == STAGE_WAITS &&
                claim_counts(claim, lending.moment.now_ns))
                sum += pod->units;
        }
    }
    return sum;
}

static bool is_among(const struct room_claim *claim, const GPtrArray *claims)
{
    for (guint i = 0; i < claims->len; i++) {
        const struct room_claim *one = claims->pdata[i];
        if (g_str_equal(one->uid, claim->uid) && one->since_s == claim->since_s)
            return true;
    }
    return false;
}

/* Those that are new. Who claims after another may be surer of it, and take of what that was promised. */
static void judge_claims(int node, const char *before)
{
    g_autoptr(GPtrArray) known = claims_decode(before, NULL);
    g_autoptr(GPtrArray) fresh = claims_decode(lending.notes[node].text, NULL);

    for (guint i = 0; fresh && i < fresh->len; i++) {
        const struct room_claim *claim = fresh->pdata[i];
        const struct lending_pod *pod = lending_find(claim->uid);
        if (!pod || pod->stage != STAGE_WAITS || is_among(claim, known) ||
            claim->since_s != lending.moment.now_ns / 1000000000)
            continue;
        HOLDS(!lending.deposed, "claims after its term");
        if (!lending.chaos) /* else a watch is late, or another replica's claim has not been seen */
            lending.judge->claim(pod);
        for (int j = 0; lending.judge->named && j < LENDING_PODS; j++) {
            g_autofree char *uid = uid_of(j);
            if (lending.pods[j].stage != STAGE_GONE && claim_names(claim, uid))
                lending.judge->named(&lending.pods[j]);
        }
    }
}

/* For whom it ends, by what the Nodes say; nobody takes from those who take from him. */
static void note_taken(const struct lending_pod *pod, const char *uid)
{
    for (int i = 0; i < lending.n_nodes; i++) {
        g_autoptr(GPtrArray) claims = claims_decode(lending.notes[i].text, NULL);
        for (guint j = 0; j < claims->len; j++) {
            const struct room_claim *claim = claims->pdata[j];
            const struct lending_pod *other =
                claim_names(claim, uid) ? lending_find(claim->uid) : NULL;
            if (!other)
                continue;
            HOLDS(other->space != pod->space, "s%d takes from itself", pod->space);
            lending.judge->taking(pod, other);
            lending.taken[pod->space][other->space] = true;
            HOLDS(!lending.quiet || !lending.taken[other->space][pod->space],
                  "s%d and s%d take from each other", pod->space, other->space);
        }
    }
}

static enum outcome annotate_node(struct cluster *cluster, const struct node_annotation *annotation,
                                  int64_t deadline_ms, GError **error)
{
    int node = 0;

    sscanf(annotation->node, "n%d", &node);
    if (lending.chaos && chance_percent(10)) {
        g_set_error(error, g_quark_from_static_string("test"), 0, "the Node has changed");
        return OUTCOME_CONFLICT;
    }
    g_free(lending.notes[node].shown);
    lending.notes[node].shown = g_strdup(annotation->value);
    lending.notes[node].version++;
    if (!lending.chaos || chance_percent(80))
        tell_node(node); /* else the watch is late */
    return OUTCOME_OK;
}

/* Of the ConfigMap, split by nodes. */
static void note_written(void)
{
    for (int node = 0; node < lending.n_nodes; node++) {
        g_autofree char *name = g_strdup_printf("n%d", node), *before = lending.notes[node].text;
        lending.notes[node].text = fake_claims_on(name);
        judge_claims(node, before);
    }
    if (lending.shaky && chance_percent(10))
        lending.deposed = true;
}

static bool conflicts(void)
{
    fake_claims.lost = lending.chaos && chance_percent(5);
    return lending.chaos && chance_percent(10);
}

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    static struct told told;
    int number = 0;

    sscanf(name, "p%d", &number);
    if (lending.pods[number].stage == STAGE_GONE)
        return OUTCOME_NOT_FOUND;
    told_clear(&told);
    view_of(number, &told);
    *ret_pod = told.view;
    return OUTCOME_OK;
}

static const struct cluster_ops ops = {
    .name = "table", .get_pod = get_pod, .get_node = get_node, .annotate_node = annotate_node};
static struct cluster cluster = {&ops};

static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    struct lending_pod *pod = lending_find(evictee->uid);

    if (!pod || pod->stage == STAGE_GONE)
        return EVICTION_DONE;
    if (lending.chaos && chance_percent(20)) {
        lending.n_refused++;
        g_set_error(error, g_quark_from_static_string("test"), 0, "no");
        pod->refused = try && chance_percent(50);
        return pod->refused || (!try && chance_percent(50)) ? EVICTION_FAILED : EVICTION_LATER;
    }
    pod->refused &= !try;
    if (try)
        return EVICTION_DONE;
    HOLDS(!lending.deposed, "evicts after its term");
    if (lending.stuck) {
        g_set_error(error, g_quark_from_static_string("test"), 0, "a budget");
        return EVICTION_LATER;
    }
    lending.judge->eviction(pod);
    note_taken(pod, evictee->uid);
    if (lending.shaky && chance_percent(20))
        lending.deposed = true;
    const bool unsure = lending.unsure && chance_percent(30);
    if (unsure && chance_percent(50)) {
        g_set_error(error, g_quark_from_static_string("test"), 0, "no answer");
        return EVICTION_UNKNOWN;
    }
    pod->stage = STAGE_ENDS;
    pod->ends_ms = lending.moment.now_ms + chance_between(0, 5) * 1000;
    lending.evicted_units[pod->space] += pod->units;
    lending.n_evicted++;
    lending_tell((int)(pod - lending.pods));
    if (unsure)
        g_set_error(error, g_quark_from_static_string("test"), 0, "no answer");
    return unsure ? EVICTION_UNKNOWN : EVICTION_DONE;
}

static uint64_t term(struct leadership *leadership)
{
    return lending.deposed ? 0 : 1 + lending.n_takeovers;
}

static const struct leadership_ops leads = {.term = term};
static struct leadership leadership = {&leads};

/* --- what is played ------------------------------------------------------------------------------- */

int lending_create(int space, int units, int priority, bool again)
{
    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[i].stage != STAGE_GONE)
            continue;
        lending.pods[i] = (struct lending_pod){.stage = STAGE_WAITS,
                                               .space = space,
                                               .units = units,
                                               .priority = priority,
                                               .again = again,
                                               .opts_out = lending.chaos && chance_percent(10),
                                               .created_s = lending.moment.now_ns / 1000000000,
                                               .born = ++born};
        lending_tell(i);
        return i;
    }
    return -1;
}

int64_t lending_held(int space, bool ending)
{
    int64_t sum = 0;

    for (int i = 0; i < LENDING_PODS; i++) {
        const struct lending_pod *pod = &lending.pods[i];
        const bool holds = pod->stage == STAGE_HELD || (ending && pod->stage == STAGE_ENDS);
        sum += pod->space == space && holds ? pod->units : 0;
    }
    return sum;
}

int lending_count(int space, enum lending_stage stage)
{
    int n = 0;

    for (int i = 0; i < LENDING_PODS; i++)
        n += lending.pods[i].space == space && lending.pods[i].stage == stage;
    return n;
}

/* Nobody takes room that is kept for another: beside those who do not end for it, and all for whom room on
 * the card is kept, the pod must fit. Where these do not fit already, since the watch was late, nothing is
 * kept. */
static void judge_binding(int number)
{
    const struct lending_pod *pod = &lending.pods[number];
    g_autoptr(GPtrArray) claims = claims_decode(lending.notes[pod->node].text, NULL);
    g_autofree char *own = uid_of(number);
    int64_t sum = 0;

    for (int i = 0; i < LENDING_PODS; i++) {
        bool ends = false;
        g_autofree char *uid = uid_of(i);
        for (guint j = 0; j < claims->len; j++)
            ends |= claim_names(claims->pdata[j], uid);
        sum += lending.pods[i].stage >= STAGE_HELD && !ends && lending.pods[i].node == pod->node &&
                       lending.pods[i].card == pod->card
                   ? lending.pods[i].units
                   : 0;
    }
    for (guint j = 0; j < claims->len; j++) {
        const struct room_claim *claim = claims->pdata[j];
        const struct lending_pod *other = lending_find(claim->uid);
        sum += other && other->stage == STAGE_WAITS && claim->card == pod->card &&
                       claim_counts(claim, lending.moment.now_ns)
                   ? other->units
                   : 0;
    }
    bool has_own = false;
    for (guint j = 0; j < claims->len; j++)
        has_own |= g_str_equal(((const struct room_claim *)claims->pdata[j])->uid, own);
    HOLDS(sum <= LENDING_CARD || sum - pod->units > LENDING_CARD || has_own,
          "%s takes what is kept on n%d/%d: %ld units, %s", own, pod->node, pod->card, (long)sum,
          lending.notes[pod->node].text);
}

/* kube-scheduler: asks filter, takes the best, and the Binding is seen. */
void lending_schedule(int number)
{
    struct told told;
    struct placement placement;
    struct moment now;

    view_of(number, &told);
    store_decide(lending.store, &now);
    const struct request *request = store_pending(lending.store, told.uid);
    const struct node *node =
        trial_choose(lending.store, &(struct trial_pod){&told.view, request, &now}, &placement);
    if (node) {
        sscanf(node->name, "n%d", &lending.pods[number].node);
        lending.pods[number].card = placement.shares[0].card;
        lending.pods[number].stage = STAGE_HELD;
    }
    store_unlock(lending.store);
    told_clear(&told);
    if (node) {
        if (!lending.chaos)
            judge_binding(number);
        lending_tell(number);
    }
}

static void schedule_all(void)
{
    uint32_t order[LENDING_PODS];

    chance_order(order, LENDING_PODS);
    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[order[i]].stage == STAGE_WAITS)
            (lending.schedule ? lending.schedule : lending_schedule)((int)order[i]);
    }
}

void lending_end(int number)
{
    const struct lending_pod pod = lending.pods[number];
    g_autofree char *uid = uid_of(number);

    store_delete_pod(lending.store, uid);
    lending.pods[number].stage = STAGE_GONE;
    if (pod.stage == STAGE_ENDS && pod.again)
        lending_create(pod.space, pod.units, pod.priority, true);
}

static void let_end(void)
{
    for (int i = 0; i < LENDING_PODS; i++) {
        if (lending.pods[i].stage == STAGE_ENDS && lending.pods[i].ends_ms <= lending.moment.now_ms)
            lending_end(i);
    }
}

static void check_cards(void)
{
    for (int node = 0; node < lending.n_nodes; node++) {
        for (int card = 0; card < lending.n_cards; card++) {
            int used = 0;
            for (int i = 0; i < LENDING_PODS; i++)
                used += lending.pods[i].stage >= STAGE_HELD && lending.pods[i].node == node &&
                                lending.pods[i].card == card
                            ? lending.pods[i].units
                            : 0;
            HOLDS(used <= LENDING_CARD, "n%d/%d holds %d", node, card, used);
        }
    }
}

void lending_step(void)
{
    lending.moment.now_ms += 1000;
    lending.moment.now_ns += 1000000000;
    let_end();
    schedule_all();
    reclaimer_look(lending.reclaimer);
    if (lending.deposed)
        lending_change_replica(NULL);
    for (int node = 0; node < lending.n_nodes; node++)
        tell_node(node);
    check_cards();
    if (lending.judge->step)
        lending.judge->step();
}

void lending_take_over(void)
{
    reclaimer_free(lending.reclaimer);
    lending.reclaimer = reclaimer_new(&(struct reclaimer_args){
        .store = lending.store,
        .cluster = &cluster,
        .files = &fake_claims_files,
        .leadership = &leadership,
        .evict = evict,
        .options = {.delay_ms = 3000,
                    .at_once = lending.at_once ? lending.at_once : 50,
                    .per_minute = lending.per_minute ? lending.per_minute : 1000},
    });
    lending.deposed = false;
}

void lending_begin(int spaces, int nodes, int cards)
{
    if (lending.store) {
        reclaimer_free(g_steal_pointer(&lending.reclaimer));
        store_free(lending.store);
    }
    for (int i = 0; i < LENDING_NODES; i++) {
        g_clear_pointer(&lending.notes[i].text, g_free);
        g_clear_pointer(&lending.notes[i].shown, g_free);
    }
    fake_claims_reset();
    fake_claims.written = note_written;
    fake_claims.conflicts = conflicts;
    memset(lending.pods, 0, sizeof lending.pods);
    memset(lending.evicted_units, 0, sizeof lending.evicted_units);
    lending.chaos = lending.quiet = lending.shaky = lending.unsure = lending.stuck = false;
    lending.at_once = lending.per_minute = 0;
    lending.n_spaces = spaces;
    lending.n_nodes = nodes;
    lending.n_cards = cards;
    lending.moment = (struct moment){.now_ns = INT64_C(1764100000000000000), .now_ms = 1000000};
    lending.store = store_new(&(struct store_options){.policy = &policies[0],
                                                      .patience_ms = 60000,
                                                      .elastic_quotas = true,
                                                      .tree_namespaces = "admin",
                                                      .reclaim = true,
                                                      .reclaim_uncontrolled = true,
                                                      .gangs = lending.group_min != NULL,
                                                      .hold_ms = lending.hold_ms,
                                                      .n_places = lending.hold_ms > 0 ? 4 : 0,
                                                      .silent = true});
    store_set_moment(lending.store, &lending.moment);
    if (lending.observe)
        lending.observe(lending.store);
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(lending.store, (enum feed)feed);
        store_list_end(lending.store, (enum feed)feed);
    }
    for (int i = 0; i < lending.n_nodes; i++)
        tell_node(i);
    lending_take_over();
}

/* --- rest --------------------------------------------------------------------------------------- */

/* For who looks for a mistake. */
static void dump(void)
{
    static const char *const stages[] = {"gone", "waits", "held", "ends"};

    for (int i = 0; i < lending.n_spaces; i++)
        printf("# s%d: %ld\n", i, (long)lending_held(i, true));
    for (int i = 0; i < lending.n_nodes; i++)
        printf("# n%d: %s\n", i, lending.notes[i].text ? lending.notes[i].text : "");
    for (int i = 0; i < LENDING_PODS; i++) {
        const struct lending_pod *pod = &lending.pods[i];
        if (pod->stage != STAGE_GONE)
            printf("# p%d-%u s%d %d units %s n%d/%d priority %d%s\n", i, pod->born, pod->space,
                   pod->units, stages[pod->stage], pod->node, pod->card, pod->priority,
                   pod->opts_out ? " stays" : "");
    }
    fflush(stdout);
}

static bool has_claims(void)
{
    bool some = false;

    for (int i = 0; i < lending.n_nodes; i++)
        some |= lending.notes[i].text != NULL;
    return some;
}

void lending_rest(void)
{
    unsigned last;

    lending.chaos = lending.shaky = lending.unsure = false;
    lending.at_once = lending.per_minute = 0;
    /* Who was let off for a failure or has let room lapse is not forgiven for hours: somebody new looks. */
    lending_take_over();
    memset(lending.taken, 0, sizeof lending.taken);
    lending.quiet = true;
    for (int i = 0; i < QUIET_STEPS; i++)
        lending_step();
    /* What cannot be kept is given up when its time is over. */
    for (int i = 0; has_claims() && i < (int)(CLAIM_MS / 1000) + 10; i++)
        lending_step();
    /* Then it is looked for anew, after a pause. */
    for (int i = 0; i < QUIET_STEPS; i++)
        lending_step();
    last = lending.n_evicted;
    for (int i = 0; i < 30; i++)
        lending_step();
    HOLDS(lending.n_evicted == last, "evictions go on: %u", lending.n_evicted - last);
    if (g_getenv("GPULEDGER_TRACE"))
        dump();
    for (int i = 0; i < lending.n_nodes; i++)
        HOLDS(!lending.notes[i].text, "a claim is left on n%d: %s", i, lending.notes[i].text);
    lending.judge->rest();
}
