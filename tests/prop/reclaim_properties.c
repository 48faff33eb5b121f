/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces lend each other cards and take them back, while pods come, go and are evicted, and replicas take
 * over. The cluster is a table of pods; a scheduler and controllers are played.
 *
 * The oracle adds up what pods ask for, and knows nothing else: whoever is evicted is of a namespace that has
 * as much above its min, those not counted that end already; when nothing happens from outside, evictions
 * come to an end, and nobody waits who could have room by the rule, as all sets of pods of all cards tell.
 */
#include "chance.h"
#include "../unit/literals.h"

#include "base/log.h"
#include "explain/trial.h"
#include "reclaim/reclaimer.h"

#include <stdio.h>
#include <string.h>

#define SPACES 4
#define PODS_MAX 512
#define CARD 10 /* units */
#define NODES_MAX 13
#define CARDS_MAX 8
#define QUIET_STEPS 120

enum stage { STAGE_GONE, STAGE_WAITS, STAGE_HELD, STAGE_ENDS };

struct pod {
    enum stage stage;
    int space, units, node, card, priority;
    int64_t created_s;
    unsigned born; /* part of its UID */
    bool again;    /* its controller makes it again when it was evicted */
    bool opts_out;
    bool grouped; /* with all of its namespace that are */
    int64_t ends_ms;
};

static struct pod pods[PODS_MAX];
static int n_spaces, n_nodes, n_cards;
static int64_t mins[SPACES]; /* units; -1: no quota */
static struct node_note {
    char *text;
    int version;
} notes[NODES_MAX];

static struct store *shop;
static bool gangs;
static const char *group_min = "3";
static struct reclaimer *reclaimer;
static struct moment moment;
static unsigned born;
static unsigned n_evicted, n_refused_budget, n_takeovers;
static int64_t evicted_units[SPACES];
static bool taken[SPACES][SPACES]; /* from whom for whom, since it was quiet */
static bool quiet;                 /* pods come and go by eviction alone */
static bool chaos, locked_out;     /* evictions fail at random; are all refused */

static struct pod *find(const char *uid)
{
    int number;
    unsigned of;

    return sscanf(uid, "p%d-%u", &number, &of) == 2 && pods[number].born == of ? &pods[number]
                                                                               : NULL;
}

/* --- the oracle ----------------------------------------------------------------------------------- */

static int64_t held_by(int space, bool ending)
{
    int64_t sum = 0;

    for (int i = 0; i < PODS_MAX; i++) {
        const bool holds = pods[i].stage == STAGE_HELD || (ending && pods[i].stage == STAGE_ENDS);
        sum += pods[i].space == space && holds ? pods[i].units : 0;
    }
    return sum;
}

static void judge_eviction(const struct pod *pod)
{
    HOLDS(pod->stage == STAGE_HELD, "p%d ends already", (int)(pod - pods));
    HOLDS(!pod->opts_out, "p%d has asked to stay", (int)(pod - pods));
    HOLDS(mins[pod->space] >= 0, "s%d has no quota", pod->space);
    HOLDS(held_by(pod->space, false) - pod->units >= mins[pod->space],
          "s%d has %ld of %ld and loses %d", pod->space, (long)held_by(pod->space, false),
          (long)mins[pod->space], pod->units);
}

/* For whom it ends, by what the Nodes say; nobody takes from those who take from him. */
static void note_taken(const struct pod *pod, const char *uid)
{
    for (int i = 0; i < n_nodes; i++) {
        g_autoptr(GPtrArray) claims = claims_decode(notes[i].text, NULL);
        for (guint j = 0; j < claims->len; j++) {
            const struct room_claim *claim = claims->pdata[j];
            const struct pod *other = claim_names(claim, uid) ? find(claim->uid) : NULL;
            if (!other)
                continue;
            HOLDS(other->space != pod->space, "s%d takes from itself", pod->space);
            HOLDS(held_by(other->space, true) + other->units <= mins[other->space],
                  "s%d takes, and has %ld of %ld", other->space, (long)held_by(other->space, true),
                  (long)mins[other->space]);
            taken[pod->space][other->space] = true;
            HOLDS(!quiet || !taken[other->space][pod->space], "s%d and s%d take from each other",
                  pod->space, other->space);
        }
    }
}

/* Whether the pods of one card that may end, as many as their namespaces have borrowed, make so much room. */
static bool could_make_room(int node, int card, int space, int units)
{
    int on[CARD + 1], n = 0;
    int64_t left = CARD;

    for (int i = 0; i < PODS_MAX; i++) {
        if (pods[i].node != node || pods[i].card != card)
            continue;
        left -= pods[i].stage == STAGE_HELD || pods[i].stage == STAGE_ENDS ? pods[i].units : 0;
        if (pods[i].stage == STAGE_HELD && pods[i].space != space && mins[pods[i].space] >= 0 &&
            !pods[i].opts_out)
            on[n++] = i;
    }
    for (unsigned set = 0; set < 1u << n; set++) {
        int64_t freed = 0, of[SPACES] = {0};
        bool allowed = true;
        for (int i = 0; i < n; i++) {
            if (!(set >> i & 1))
                continue;
            freed += pods[on[i]].units;
            of[pods[on[i]].space] += pods[on[i]].units;
        }
        for (int i = 0; i < n_spaces; i++)
            allowed &= of[i] == 0 || held_by(i, false) - of[i] >= mins[i];
        if (allowed && left + freed >= units)
            return true;
    }
    return false;
}

static void judge_waiting(void)
{
    for (int i = 0; i < PODS_MAX; i++) {
        const struct pod *pod = &pods[i];
        if (pod->stage != STAGE_WAITS || mins[pod->space] <= 0 ||
            held_by(pod->space, true) + pod->units > mins[pod->space])
            continue;
        for (int node = 0; node < n_nodes; node++) {
            for (int card = 0; card < n_cards; card++)
                HOLDS(!could_make_room(node, card, pod->space, pod->units),
                      "p%d of s%d (%d units) waits, n%d/%d could have room", i, pod->space,
                      pod->units, node, card);
        }
    }
}

/* --- the cluster ------------------------------------------------------------------------------------ */

static char *uid_of(int number)
{
    return g_strdup_printf("p%d-%u", number, pods[number].born);
}

struct told {
    char *ns, *name, *uid, *node, *units, *card, *created;
    struct container_view container;
    struct string_pair limits[1], words[6], group[2];
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
    const struct pod *pod = &pods[number];
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
        {"ALIYUN_COM_GPU_MEM_IDX", told->card},
        {"ALIYUN_COM_GPU_MEM_POD", told->units},
        {"ALIYUN_COM_GPU_MEM_DEV", "10"},
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"},
        {"scheduling.koordinator.sh/refuse-to-migrate", "true"},
    };
    memcpy(told->words, words, sizeof words);
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
    told->group[0] = (struct string_pair){"gang.scheduling.koordinator.sh/name", "g"};
    told->group[1] =
        (struct string_pair){"gang.scheduling.koordinator.sh/min-available", group_min};
    if (pod->grouped)
        told->view.annotations = (struct string_pairs){told->group, 2};
    if (pod->stage != STAGE_WAITS) {
        told->view.node_name = told->node;
        told->view.annotations = (struct string_pairs){told->words, pod->opts_out ? 6 : 5};
    }
}

static void tell(int number)
{
    struct told told;

    view_of(number, &told);
    store_apply_pod(shop, &told.view);
    told_clear(&told);
}

static void tell_node(int node)
{
    g_autofree char *name = g_strdup_printf("n%d", node);
    g_autofree char *units = g_strdup_printf("%d", CARD * n_cards);
    g_autofree char *count = g_strdup_printf("%d", n_cards);
    struct node_view view = {
        .name = name,
        .capacity = PAIRS({"aliyun.com/gpu-mem", units}, {"aliyun.com/gpu-count", count}),
    };
    const struct string_pair note[] = {{CLAIM_KEY, notes[node].text}};

    view.allocatable = view.capacity;
    if (notes[node].text)
        view.annotations = (struct string_pairs){note, 1};
    store_apply_node(shop, &view);
}

static enum outcome get_node(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error)
{
    const int node = name[1] - '0' + (name[2] ? 10 * (name[1] - '0') + name[2] - name[1] : 0);
    struct string_pair *pair = json_arena_alloc(arena, sizeof *pair);
    char *version = json_arena_alloc(arena, 16);

    g_snprintf(version, 16, "%d", notes[node].version);
    *pair = (struct string_pair){CLAIM_KEY, notes[node].text};
    *ret_node = (struct node_view){.name = name, .resource_version = version};
    if (notes[node].text)
        ret_node->annotations = (struct string_pairs){pair, 1};
    return OUTCOME_OK;
}

/* A namespace is promised no more than its min: what it holds, and all for whom room is kept. */
static void judge_claims(int node)
{
    g_autoptr(GPtrArray) fresh = claims_decode(notes[node].text, NULL);

    for (guint i = 0; fresh && i < fresh->len; i++) {
        const struct room_claim *claim = fresh->pdata[i];
        const struct pod *pod = find(claim->uid);
        if (!pod || pod->stage != STAGE_WAITS || claim->since_s != moment.now_ns / 1000000000)
            continue;
        int64_t sum = held_by(pod->space, true);
        for (int j = 0; j < n_nodes; j++) {
            g_autoptr(GPtrArray) claims = claims_decode(notes[j].text, NULL);
            for (guint k = 0; k < claims->len; k++) {
                const struct room_claim *one = claims->pdata[k];
                const struct pod *other = find(one->uid);
                sum += other && other->space == pod->space && other->stage == STAGE_WAITS &&
                               claim_counts(one, moment.now_ns)
                           ? other->units
                           : 0;
            }
        }
        HOLDS(sum <= mins[pod->space], "s%d is promised %ld of %ld", pod->space, (long)sum,
              (long)mins[pod->space]);
    }
}

static enum outcome annotate_node(struct cluster *cluster, const struct node_annotation *annotation,
                                  int64_t deadline_ms, GError **error)
{
    int node = 0;

    sscanf(annotation->node, "n%d", &node);
    if (chaos && chance_percent(10)) {
        g_set_error(error, g_quark_from_static_string("test"), 0, "the Node has changed");
        return OUTCOME_CONFLICT;
    }
    g_free(notes[node].text);
    notes[node].text = g_strdup(annotation->value);
    notes[node].version++;
    if (!chaos) /* else a watch is late, or another replica's claim has not been seen */
        judge_claims(node);
    if (!chaos || chance_percent(80))
        tell_node(node); /* else the watch is late */
    return OUTCOME_OK;
}

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    static struct told told;
    int number = 0;

    sscanf(name, "p%d", &number);
    if (pods[number].stage == STAGE_GONE)
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
    struct pod *pod = find(evictee->uid);

    if (!pod || pod->stage == STAGE_GONE)
        return EVICTION_DONE;
    if (locked_out || (chaos && chance_percent(20))) {
        n_refused_budget++;
        g_set_error(error, g_quark_from_static_string("test"), 0, "no");
        return chance_percent(50) ? EVICTION_LATER : EVICTION_FAILED;
    }
    if (try)
        return EVICTION_DONE;
    judge_eviction(pod);
    note_taken(pod, evictee->uid);
    pod->stage = STAGE_ENDS;
    pod->ends_ms = moment.now_ms + chance_between(0, 5) * 1000;
    evicted_units[pod->space] += pod->units;
    n_evicted++;
    tell((int)(pod - pods));
    return EVICTION_DONE;
}

/* --- what is played ---------------------------------------------------------------------------------- */

static int create(int space, int units, int priority, bool again)
{
    for (int i = 0; i < PODS_MAX; i++) {
        if (pods[i].stage != STAGE_GONE)
            continue;
        pods[i] = (struct pod){.stage = STAGE_WAITS,
                               .space = space,
                               .units = units,
                               .priority = priority,
                               .again = again,
                               .opts_out = chaos && chance_percent(10),
                               .created_s = moment.now_ns / 1000000000,
                               .born = ++born};
        tell(i);
        return i;
    }
    return -1;
}

/* Nobody takes room that is kept for another: beside those who do not end for it, and all for whom room on
 * the card is kept, the pod must fit. Where these do not fit already, since the watch was late, nothing is
 * kept. */
static void judge_binding(int number)
{
    const struct pod *pod = &pods[number];
    g_autoptr(GPtrArray) claims = claims_decode(notes[pod->node].text, NULL);
    g_autofree char *own = uid_of(number);
    int64_t sum = 0;

    for (int i = 0; i < PODS_MAX; i++) {
        bool ends = false;
        g_autofree char *uid = uid_of(i);
        for (guint j = 0; j < claims->len; j++)
            ends |= claim_names(claims->pdata[j], uid);
        sum += pods[i].stage >= STAGE_HELD && !ends && pods[i].node == pod->node &&
                       pods[i].card == pod->card
                   ? pods[i].units
                   : 0;
    }
    for (guint j = 0; j < claims->len; j++) {
        const struct room_claim *claim = claims->pdata[j];
        const struct pod *other = find(claim->uid);
        sum += other && other->stage == STAGE_WAITS && claim->card == pod->card &&
                       claim_counts(claim, moment.now_ns)
                   ? other->units
                   : 0;
    }
    bool has_own = false;
    for (guint j = 0; j < claims->len; j++)
        has_own |= g_str_equal(((const struct room_claim *)claims->pdata[j])->uid, own);
    HOLDS(sum <= CARD || sum - pod->units > CARD || has_own,
          "%s takes what is kept on n%d/%d: %ld units, %s", own, pod->node, pod->card, (long)sum,
          notes[pod->node].text);
}

/* kube-scheduler: asks filter, takes the best, and the Binding is seen. */
static void schedule(int number)
{
    struct told told;
    struct placement placement;
    struct moment now;

    view_of(number, &told);
    store_decide(shop, &now);
    const struct request *request = store_pending(shop, told.uid);
    const struct node *node =
        trial_choose(shop, &(struct trial_pod){&told.view, request, &now}, &placement);
    if (node) {
        sscanf(node->name, "n%d", &pods[number].node);
        pods[number].card = placement.shares[0].card;
        pods[number].stage = STAGE_HELD;
    }
    store_unlock(shop);
    told_clear(&told);
    if (node) {
        if (!chaos)
            judge_binding(number);
        tell(number);
    }
}

static void schedule_all(void)
{
    uint32_t order[PODS_MAX];

    chance_order(order, PODS_MAX);
    for (int i = 0; i < PODS_MAX; i++) {
        if (pods[order[i]].stage == STAGE_WAITS)
            schedule((int)order[i]);
    }
}

static void end(int number)
{
    const struct pod pod = pods[number];
    g_autofree char *uid = uid_of(number);

    store_delete_pod(shop, uid);
    pods[number].stage = STAGE_GONE;
    if (pod.stage == STAGE_ENDS && pod.again)
        create(pod.space, pod.units, pod.priority, true);
}

static void let_end(void)
{
    for (int i = 0; i < PODS_MAX; i++) {
        if (pods[i].stage == STAGE_ENDS && pods[i].ends_ms <= moment.now_ms)
            end(i);
    }
}

static void check_cards(void)
{
    for (int node = 0; node < n_nodes; node++) {
        for (int card = 0; card < n_cards; card++) {
            int used = 0;
            for (int i = 0; i < PODS_MAX; i++)
                used += pods[i].stage >= STAGE_HELD && pods[i].node == node && pods[i].card == card
                            ? pods[i].units
                            : 0;
            HOLDS(used <= CARD, "n%d/%d holds %d", node, card, used);
        }
    }
}

static void step(void)
{
    moment.now_ms += 1000;
    moment.now_ns += 1000000000;
    let_end();
    schedule_all();
    reclaimer_look(reclaimer);
    for (int node = 0; node < n_nodes; node++)
        tell_node(node);
    check_cards();
}

static void new_reclaimer(void)
{
    reclaimer_free(reclaimer);
    reclaimer = reclaimer_new(&(struct reclaimer_args){
        .store = shop,
        .cluster = &cluster,
        .evict = evict,
        .options = {.delay_ms = 3000, .at_once = 50, .per_minute = 1000, .uncontrolled = true},
    });
}

static void set_min(int space, int64_t units)
{
    g_autofree char *ns = g_strdup_printf("s%d", space);
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT "00m", units);
    struct resource_quota_view view = {.ns = ns, .name = "q", .elastic = true};
    const struct string_pair pairs[] = {{"gpuledger.io/gpus", text}};

    mins[space] = units;
    if (units < 0) {
        store_delete_resource_quota(shop, &view);
        return;
    }
    view.min = (struct string_pairs){pairs, 1};
    store_apply_resource_quota(shop, &view);
}

static void begin(int spaces, int nodes, int cards)
{
    if (shop) {
        reclaimer_free(g_steal_pointer(&reclaimer));
        store_free(shop);
    }
    for (int i = 0; i < NODES_MAX; i++)
        g_clear_pointer(&notes[i].text, g_free);
    memset(pods, 0, sizeof pods);
    memset(evicted_units, 0, sizeof evicted_units);
    chaos = locked_out = quiet = false;
    n_spaces = spaces;
    n_nodes = nodes;
    n_cards = cards;
    moment = (struct moment){.now_ns = INT64_C(1764100000000000000), .now_ms = 1000000};
    shop = store_new(&(struct store_options){.policy = &policies[0],
                                             .patience_ms = 60000,
                                             .elastic_quotas = true,
                                             .reclaim = true,
                                             .gangs = gangs,
                                             .silent = true});
    store_set_moment(shop, &moment);
    for (int feed = 0; feed < FEED_N; feed++) {
        store_list_begin(shop, (enum feed)feed);
        store_list_end(shop, (enum feed)feed);
    }
    for (int i = 0; i < n_nodes; i++)
        tell_node(i);
    for (int i = 0; i < SPACES; i++)
        mins[i] = -1;
    new_reclaimer();
}

static int count(int space, enum stage stage)
{
    int n = 0;

    for (int i = 0; i < PODS_MAX; i++)
        n += pods[i].space == space && pods[i].stage == stage;
    return n;
}

/* --- what was asked for --------------------------------------------------------------------------------- */

/* A is sure of 60 cards and B of 40; A has all 100 when B submits 40. */
static void check_hundred_cards(void)
{
    begin(2, 13, 8);
    set_min(0, 600);
    set_min(1, 400);
    for (int i = 0; i < 100; i++)
        create(0, CARD, 0, true);
    for (int card = 4; card < 8; card++) { /* 13 nodes have 104 cards: four are somebody else's */
        const int number = create(3, CARD, 0, false);
        pods[number].stage = STAGE_HELD;
        pods[number].node = 12;
        pods[number].card = card;
        tell(number);
    }
    step();
    HOLDS(count(0, STAGE_HELD) == 100, "A has %d", count(0, STAGE_HELD));
    moment.now_ns += INT64_C(3600000000000);
    for (int i = 0; i < 40; i++)
        create(1, CARD, 0, true);
    for (int i = 0; i < QUIET_STEPS; i++)
        step();
    HOLDS(evicted_units[0] == 400 && evicted_units[1] == 0, "A gave %ld, B %ld",
          (long)evicted_units[0], (long)evicted_units[1]);
    HOLDS(count(0, STAGE_HELD) == 60 && count(1, STAGE_HELD) == 40, "A has %d, B %d",
          count(0, STAGE_HELD), count(1, STAGE_HELD));
    printf("# A of 100 cards gave back %ld tenths to B; A has %d cards, B %d\n",
           (long)evicted_units[0], count(0, STAGE_HELD), count(1, STAGE_HELD));
}

/* A claim of 0.2 cards ends 0.2 cards: the youngest of lowest priority among equals. */
static void check_a_fifth(void)
{
    begin(2, 1, 2);
    set_min(0, 10);
    set_min(1, 10);
    const int high = create(0, 2, 5, false), old = create(0, 2, 0, false);
    step();
    const int young = create(0, 2, 0, false);
    for (int i = 0; i < 7; i++)
        create(0, 2, 3, false);
    step();
    HOLDS(count(0, STAGE_HELD) == 10, "A has %d", count(0, STAGE_HELD));
    create(1, 2, 0, false);
    for (int i = 0; i < 20; i++)
        step();
    HOLDS(count(1, STAGE_HELD) == 1 && evicted_units[0] == 2, "B has %d, A gave %ld",
          count(1, STAGE_HELD), (long)evicted_units[0]);
    HOLDS(pods[high].stage == STAGE_HELD && pods[old].stage == STAGE_HELD &&
              pods[young].stage == STAGE_GONE,
          "not the youngest of lowest priority");
    printf("# a claim of 2 tenths ended %ld tenths\n", (long)evicted_units[0]);
}

/* Three cards for a group of three; and of four that need four, for which its namespace is not sure of
 * enough, nobody ends. Who is of a group that is not whole is not bound here. */
static void check_group(int members, const char *needs, int64_t gives)
{
    gangs = true;
    group_min = needs;
    begin(2, 1, 4);
    gangs = false;
    set_min(0, 10);
    set_min(1, 30);
    for (int i = 0; i < 4; i++)
        create(0, CARD, 0, false);
    step();
    HOLDS(count(0, STAGE_HELD) == 4, "A has %d", count(0, STAGE_HELD));
    for (int i = 0; i < members; i++) {
        const int number = create(1, CARD, 0, false);
        pods[number].grouped = true;
        tell(number);
    }
    for (int i = 0; i < 30; i++)
        step();
    HOLDS(evicted_units[0] == gives * CARD, "A gave %ld", (long)evicted_units[0]);
    HOLDS(count(1, STAGE_HELD) == gives, "B has %d", count(1, STAGE_HELD));
    printf("# a group of %d that needs %s got %ld cards\n", members, needs, (long)gives);
}

/* --- rounds ---------------------------------------------------------------------------------------------- */

static void submit(void *data)
{
    create((int)chance_below((uint32_t)n_spaces), (int)chance_between(1, CARD),
           (int)chance_below(3), chance_percent(70));
}

/* One namespace has the cards to itself for a while. */
static void crowd(void *data)
{
    const int space = (int)chance_below((uint32_t)n_spaces);
    const int units = (int)chance_between(1, CARD);

    for (int i = 0; i < 12; i++)
        create(space, chance_percent(50) ? units : (int)chance_between(1, CARD),
               (int)chance_below(3), chance_percent(70));
    step();
    step();
}

static void finish(void *data)
{
    int live[PODS_MAX], n = 0;

    for (int i = 0; i < PODS_MAX; i++) {
        if (pods[i].stage == STAGE_WAITS || pods[i].stage == STAGE_HELD)
            live[n++] = i;
    }
    if (n > 0)
        end(live[chance_below((uint32_t)n)]);
}

/* Most of a namespace's pods end, so that others may borrow. */
static void leave(void *data)
{
    const int space = (int)chance_below((uint32_t)n_spaces);

    for (int i = 0; i < PODS_MAX; i++) {
        if (pods[i].space == space && chance_percent(97) &&
            (pods[i].stage == STAGE_WAITS || pods[i].stage == STAGE_HELD))
            end(i);
    }
    step();
}

static void change_quota(void *data)
{
    set_min((int)chance_below((uint32_t)n_spaces),
            chance_percent(10) ? -1 : chance_between(0, n_nodes * n_cards * CARD / n_spaces));
}

static void take_over(void *data)
{
    n_takeovers++;
    new_reclaimer();
}

static void let_time_pass(void *data)
{
    step();
}

static void stir(void *data)
{
    chaos = !chaos;
}

static const struct chance_action actions[] = {
    {"submit", 6, submit},      {"crowd", 6, crowd},        {"finish", 12, finish},
    {"leave", 8, leave},        {"quota", 1, change_quota}, {"step", 40, let_time_pass},
    {"takeover", 1, take_over}, {"chaos", 1, stir},         {0},
};

/* For who looks for a mistake. */
static void dump(void)
{
    static const char *const stages[] = {"gone", "waits", "held", "ends"};

    for (int i = 0; i < n_spaces; i++)
        printf("# s%d: %ld of %ld\n", i, (long)held_by(i, true), (long)mins[i]);
    for (int i = 0; i < n_nodes; i++)
        printf("# n%d: %s\n", i, notes[i].text ? notes[i].text : "");
    for (int i = 0; i < PODS_MAX; i++) {
        const struct pod *pod = &pods[i];
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

    for (int i = 0; i < n_nodes; i++)
        some |= notes[i].text != NULL;
    return some;
}

/* Nothing comes from outside: it comes to rest, and rightly. */
static void quieten(void)
{
    unsigned last;

    chaos = locked_out = false;
    /* Who was let off for a failure or has let room lapse is not forgiven for hours: somebody new looks. */
    new_reclaimer();
    memset(taken, 0, sizeof taken);
    quiet = true;
    for (int i = 0; i < QUIET_STEPS; i++)
        step();
    /* What cannot be kept is given up when its time is over. */
    for (int i = 0; has_claims() && i < (int)(CLAIM_MS / 1000) + 10; i++)
        step();
    /* Then it is looked for anew, after a pause. */
    for (int i = 0; i < QUIET_STEPS; i++)
        step();
    last = n_evicted;
    for (int i = 0; i < 30; i++)
        step();
    HOLDS(n_evicted == last, "evictions go on: %u", n_evicted - last);
    if (g_getenv("GPULEDGER_TRACE"))
        dump();
    for (int i = 0; i < n_nodes; i++)
        HOLDS(!notes[i].text, "a claim is left on n%d: %s", i, notes[i].text);
    judge_waiting();
}

int main(void)
{
    log_configure(g_getenv("GPULEDGER_TRACE") ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR,
                  LOG_FORMAT_LOGFMT);
    chance_init("reclaim", 60000);
    check_hundred_cards();
    check_a_fifth();
    check_group(3, "3", 3);
    check_group(4, "4", 0);
    while (chance_next_event()) {
        begin((int)chance_between(2, SPACES), (int)chance_between(1, 3), (int)chance_between(1, 3));
        const bool full = chance_percent(80); /* they are sure of all that there is */
        int64_t left = n_nodes * n_cards * CARD;
        for (int i = 0; i < n_spaces; i++) {
            const int64_t own = full && i == n_spaces - 1 ? left : chance_between(0, left / 2);
            set_min(i, own);
            left -= own;
        }
        for (int i = 0; i < 100 && chance_next_event(); i++)
            chance_act(actions, NULL);
        quieten();
    }
    printf("# %u evictions, %u refused, %u takeovers\n", n_evicted, n_refused_budget, n_takeovers);
    HOLDS(n_evicted > 100, "only %u evictions", n_evicted);
    return 0;
}
