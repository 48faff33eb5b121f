/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The victims that are chosen cost no more than those of any other set, tried one by one on a
 * ledger of its own: over random nodes, pods, priorities, budgets, victims that kube-scheduler has
 * named, and every dialect that places pods.
 *
 * Among more pods than that can be done for, the choice is the same where the search may take pods for
 * alike as where it may not.
 */
#include "chance.h"

#include "policy/victims/victims.h"
#include "policy/victims/victims_cost.h"

#include <gpuledger/dialect.h>
#include <stdlib.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)
#define PODS_MAX 14 /* of whom every set is tried */
#define CROWD_MAX 48
#define BUDGETS_MAX 3
#define NOW_NS INT64_C(1767225600000000000)

/* One node, pods on it, and one that finds no room. */
struct scene {
    struct ledger *ledger;
    struct request *asking;
    struct pod_facts *asked;
    uint32_t n_pods;
    bool waiting; /* some of them may wait for the node side */
    bool idling;  /* some of them may be idle */
    char uids[CROWD_MAX][8];
    bool named[CROWD_MAX], fixed[CROWD_MAX], idle[CROWD_MAX];
    uint32_t n_budgets[CROWD_MAX], budgets[CROWD_MAX];
    int64_t allowed[BUDGETS_MAX];
};

static const struct dialect *row; /* the one under test */

/* What its node side cannot serve is left out of what is drawn. */
static const struct flavour {
    const char *name, *mode; /* of the dialect, of its cards */
    bool devices, no_core, no_whole;
} flavours[] = {
    {"nvidia", NULL, true, true, true},
    {"volcano", "memory", false, true, true},
    {"gpushare", NULL, false, true, false},
    {NULL},
};
static const struct flavour *flavour;
static int64_t roominess = 1; /* so many times as much fits on a card */
static bool alike;            /* what pods ask for and are differs little */

static void set_row(const struct dialect *dialect)
{
    row = dialect;
    for (flavour = flavours; flavour->name && !g_str_equal(flavour->name, row->name);)
        flavour++;
}

/* --- drawing -------------------------------------------------------------------------------- */

static void draw_node(struct ledger *ledger)
{
    g_autofree struct topology *topology = g_new0(struct topology, 1);
    static const char *const uuids[] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};

    topology->dialect = row;
    topology->memory_unit = GIB;
    topology->n_cards = (int32_t)chance_between(1, 3);
    for (int32_t i = 0; i < topology->n_cards; i++)
        topology->cards[i] = (struct topology_card){
            .memory = chance_between(4, 10) * roominess * GIB,
            .slots = chance_percent(20) ? 3 : 0,
            .unhealthy = chance_percent(5),
            .uuid = uuids[i],
            .mode = flavour->mode,
        };
    if (flavour->devices) {
        topology->n_pools = 1;
        topology->pools[0] = (struct pool){.resource = (char *)row->resources[0],
                                           .capacity = (int32_t)chance_between(2, 12)};
    }
    ledger_set_topology(ledger, "n", topology);
}

static struct request *draw_request(int64_t units_max)
{
    struct request *request = request_new(row, chance_percent(85) ? 1 : 2);

    request->match_amount = chance_between(1, units_max);
    request->host = (struct host){chance_between(0, alike ? 1 : 3) * 100,
                                  chance_between(0, alike ? 0 : 2) * GIB};
    for (uint32_t i = 0; i < request->n_asks; i++) {
        struct card_ask *ask = &request->asks[i];
        *ask = (struct card_ask){.container = (int32_t)i, .count = chance_percent(85) ? 1 : 2};
        if (flavour->devices) {
            ask->device = row->resources[0];
            continue;
        }
        ask->memory = (struct amount){chance_between(1, units_max), AMOUNT_NODE_UNITS};
        ask->core = flavour->no_core || alike || chance_percent(60)
                        ? 0
                        : (int32_t)(chance_between(1, 10) * 100 / roominess);
        ask->exclusive = !flavour->no_whole && units_max > 2 && chance_percent(8);
    }
    return request;
}

static struct pod_facts *draw_facts(void)
{
    char amount[8];
    const struct string_pair requests[] = {{"example.com/x", amount}};
    const struct container_view container = {.name = "c", .requests = {requests, 1}};

    g_snprintf(amount, sizeof amount, "%u", chance_below(alike ? 2 : 4));
    return pod_facts_new(&(struct pod_view){.containers = &container, .n_containers = 1});
}

static enum admission admit(const struct node *node, const struct request *request,
                            struct placement *ret_placement)
{
    static const struct dialect_options options = {0};
    const struct admission_query query = {request, policies, &options, NOW_NS, 50};
    enum reason reason;
    const enum admission admission = dialect_admit(node, &query, ret_placement, &reason);

    if (!ret_placement)
        HOLDS(dialect_admits(node, &query) == admission, "%d of two kinds", admission);
    return admission;
}

/* Who ends first, by class; most are of none. */
static struct work_class *draw_class(void)
{
    static struct work_class *all[3];
    const unsigned drawn = alike ? G_N_ELEMENTS(all) : chance_below(6);

    for (unsigned i = 0; i < G_N_ELEMENTS(all) && !all[i]; i++) {
        all[i] = work_class_new();
        all[i]->number = i + 1;
        all[i]->shares_with = WORK_CLASS_ANY;
        all[i]->victims = (enum victim_order)((int)i - 1);
    }
    return drawn < G_N_ELEMENTS(all) ? work_class_ref(all[drawn]) : NULL;
}

/* Where admission puts it, or, as another scheduler would, anywhere. */
static void draw_pod(struct scene *scene, int64_t units_max)
{
    const struct node *node = ledger_node(scene->ledger, "n");
    g_autoptr(request) request = draw_request(units_max);
    char *uid = scene->uids[scene->n_pods];
    struct placement placement;

    if (admit(node, request, &placement) != ADMISSION_YES)
        return;
    g_snprintf(uid, sizeof scene->uids[0], "p%u", scene->n_pods);
    struct allocation *allocation = allocation_new(uid, "ml", uid, placement.n_shares);
    memcpy(allocation->shares, placement.shares, placement.n_shares * sizeof *placement.shares);
    allocation->dialect = row;
    allocation->host = request->host;
    allocation->match_amount = request->match_amount;
    allocation->waiting = scene->waiting && chance_percent(15);
    allocation->assume_time_ns = NOW_NS - 1000;
    allocation->work_class = draw_class();
    allocation->priority = chance_between(-2, 2) * (chance_percent(20) ? 1000000000 : 1);
    allocation->created_s = chance_between(1, 4);
    allocation->started_s = chance_between(0, 3);
    allocation->terminating = chance_percent(10);
    allocation->facts = draw_facts();
    if (chance_percent(3) && !allocation->shares[0].device)
        allocation->shares[0].card = CARD_UNKNOWN;
    ledger_put(scene->ledger, "n", allocation);
    /* One at most: with more the count depends on the order, and the API server evicts no such pod. */
    scene->n_budgets[scene->n_pods] = chance_percent(30);
    scene->budgets[scene->n_pods] = chance_below(BUDGETS_MAX);
    scene->named[scene->n_pods] = chance_percent(20);
    scene->idle[scene->n_pods] = scene->idling && chance_percent(50);
    scene->fixed[scene->n_pods] = scene->named[scene->n_pods] && chance_percent(30);
    scene->n_pods++;
}

static void draw_scene(struct scene *scene, uint32_t pods)
{
    *scene = (struct scene){.ledger = ledger_new(),
                            .waiting = row->in_flight && chance_percent(50),
                            .idling = chance_percent(60)};
    draw_node(scene->ledger);
    for (uint32_t tries = 0; tries < MAX(60, 4 * pods) && scene->n_pods < pods; tries++)
        draw_pod(scene, pods >= PODS_MAX ? 2 : 6);
    for (int i = 0; i < BUDGETS_MAX; i++)
        scene->allowed[i] = chance_between(-1, 2);
    for (int tries = 0; tries < 20; tries++) {
        request_free(scene->asking);
        scene->asking = draw_request(8 * roominess);
        if (admit(ledger_node(scene->ledger, "n"), scene->asking, NULL) == ADMISSION_NO)
            break;
    }
    scene->asked = draw_facts();
}

static void clear_scene(struct scene *scene)
{
    ledger_free(scene->ledger);
    request_free(scene->asking);
    pod_facts_unref(scene->asked);
}

/* --- set by set ----------------------------------------------------------------------------- */

static bool has(uint32_t set, uint32_t pod)
{
    return set >> pod & 1;
}

static int64_t sum_of(const struct scene *scene, uint32_t set, int what)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < scene->n_pods; i++) {
        const struct allocation *pod = ledger_get(scene->ledger, scene->uids[i]);
        if (has(set, i))
            sum += what == 0   ? pod->host.cpu
                   : what == 1 ? pod->host.memory
                               : pod_facts_amount(pod->facts, "example.com/x");
    }
    return sum;
}

/* What is asked for and counted by kube-scheduler is freed as much as it wanted. */
static bool frees_enough(const struct scene *scene, uint32_t set)
{
    uint32_t wanted = 0;

    for (uint32_t i = 0; i < MIN(scene->n_pods, PODS_MAX); i++) /* which gcc does not know of n_pods */
        wanted |= (uint32_t)scene->named[i] << i;
    const bool asks[] = {scene->asking->host.cpu > 0, scene->asking->host.memory > 0, true};
    for (int what = 0; what < 3; what++) {
        if (asks[what] && sum_of(scene, set, what) < sum_of(scene, wanted, what))
            return false;
    }
    return true;
}

static bool helps(const struct scene *scene, uint32_t set)
{
    g_autoptr(ledger) what_if = ledger_new();

    for (uint32_t i = 0; i < scene->n_pods; i++) {
        if (scene->fixed[i] && !has(set, i))
            return false;
    }
    if (!frees_enough(scene, set))
        return false;
    ledger_copy_node(what_if, ledger_node(scene->ledger, "n"));
    for (uint32_t i = 0; i < scene->n_pods; i++) {
        if (has(set, i))
            ledger_drop(what_if, scene->uids[i]);
    }
    return admit(ledger_node(what_if, "n"), scene->asking, NULL) != ADMISSION_NO;
}

static struct victims_cost price(const struct scene *scene, uint32_t set)
{
    struct victims_cost cost = {
        .dearest = INT64_MIN, .highest = INT64_MIN, .idle_highest = INT64_MIN, .oldest = INT64_MAX};
    int64_t drawn[BUDGETS_MAX] = {0};

    for (uint32_t i = 0; i < scene->n_pods; i++) {
        const struct allocation *pod = ledger_get(scene->ledger, scene->uids[i]);
        if (!has(set, i))
            continue;
        if (pod->terminating) {
            cost.going++;
            continue;
        }
        if (scene->n_budgets[i] > 0)
            cost.violations +=
                ++drawn[scene->budgets[i]] > MAX(scene->allowed[scene->budgets[i]], 0);
        cost.n++;
        const int64_t highest = MAX(cost.highest, cost.idle_highest);
        const int64_t started_s = pod->started_s > 0 ? pod->started_s : INT64_MAX;
        if (pod->priority >= highest)
            cost.oldest = pod->priority > highest ? started_s : MIN(cost.oldest, started_s);
        if (pod->work_class && pod->work_class->victims == VICTIMS_FIRST && scene->idle[i]) {
            cost.dearest = MAX(cost.dearest, VICTIMS_FIRST - 1);
            cost.idle_highest = MAX(cost.idle_highest, pod->priority);
            cost.idle_sum += pod->priority + (INT64_C(1) << 31);
            continue;
        }
        cost.dearest = MAX(cost.dearest, pod->work_class ? pod->work_class->victims : 0);
        cost.highest = MAX(cost.highest, pod->priority);
        cost.sum += pod->priority + (INT64_C(1) << 31);
    }
    return cost;
}

static bool best_of_all(const struct scene *scene, struct victims_cost *ret_best)
{
    bool found = false;

    for (uint32_t set = 0; set < 1u << scene->n_pods; set++) {
        const struct victims_cost cost = price(scene, set);
        if ((found && victims_cost_compare(&cost, ret_best) >= 0) || !helps(scene, set))
            continue;
        *ret_best = cost;
        found = true;
    }
    return found;
}

/* --- the choice ----------------------------------------------------------------------------- */

static bool finds_room(const struct node *node, void *data)
{
    const struct scene *scene = data;
    return admit(node, scene->asking, NULL) != ADMISSION_NO;
}

/* Makes each pod one that the search cannot take for another's like: words of the same meaning. */
static void tell_apart(struct allocation *allocation, struct dialect *its)
{
    *its = *row;
    for (uint32_t i = 0; i < allocation->n_shares; i++)
        allocation->shares[i].dialect = its;
}

static bool choose(const struct scene *scene, bool apart, uint64_t *ret_set,
                   struct victims_cost *ret_cost)
{
    g_autofree struct dialect *copies = g_new(struct dialect, CROWD_MAX);
    g_autoptr(what_if) what_if = what_if_new(ledger_node(scene->ledger, "n"));
    const struct victims_query query = {
        .admits = finds_room,
        .data = (void *)scene,
        .asked_host = scene->asking->host,
        .asked = scene->asked,
        .allowed = scene->allowed,
        .n_allowed = BUDGETS_MAX,
        .one_card = dialect_asks_one_card(what_if->node, scene->asking),
        .fickle = dialect_is_fickle(scene->asking),
    };
    struct victim victims[CROWD_MAX] = {0};
    struct victims all = {victims, scene->n_pods, 0};

    for (uint32_t i = 0; apart && i < scene->n_pods; i++)
        tell_apart(what_if->allocations->pdata[i], &copies[i]);
    g_autoptr(roster) roster = roster_new(what_if);
    for (uint32_t i = 0; i < scene->n_pods; i++) {
        const struct seat *seat = &roster->seats[scene->n_pods - 1 - i]; /* it is in no order */
        const uint32_t pod = (uint32_t)atoi(seat->allocation->uid + 1);
        victims[i] = (struct victim){.seat = seat,
                                     .named = scene->named[pod],
                                     .fixed = scene->fixed[pod],
                                     .idle = scene->idle[pod],
                                     .n_budgets = (uint8_t)scene->n_budgets[pod],
                                     .budgets = {scene->budgets[pod]}};
    }
    const bool found = victims_choose(what_if, roster, &query, &all, ret_cost);
    *ret_set = 0;
    for (size_t i = 0; i < all.n_chosen; i++)
        *ret_set |= UINT64_C(1) << atoi(victims[i].seat->allocation->uid + 1);
    const struct node *node = ledger_node(scene->ledger, "n");
    for (int32_t i = 0; i < node->n_cards; i++)
        HOLDS(what_if->node->cards[i].memory_used == node->cards[i].memory_used, "card %d", i);
    HOLDS(what_if->node->allocations->len == node->allocations->len, "pods are missing");
    return found;
}

/* Of two victims who free the same, one of them idle, it is the idle one who ends: by what is chosen, not
 * by what it is said to cost. And whoever is idle changes nothing for pods of other classes. */
static void check_idle(const struct scene *scene, uint32_t set)
{
    for (uint32_t i = 0; i < scene->n_pods; i++) {
        const struct allocation *out = ledger_get(scene->ledger, scene->uids[i]);
        if (!has(set, i) || scene->idle[i] || scene->fixed[i] || out->terminating ||
            !out->work_class || out->work_class->victims != VICTIMS_FIRST)
            continue;
        for (uint32_t j = 0; j < scene->n_pods; j++) {
            const struct allocation *in = ledger_get(scene->ledger, scene->uids[j]);
            const uint32_t other = (set & ~(1u << i)) | 1u << j;
            if (has(set, j) || !scene->idle[j] || in->work_class != out->work_class ||
                scene->n_budgets[i] + scene->n_budgets[j] > 0 || in->terminating)
                continue;
            HOLDS(!helps(scene, other), "busy p%u ends, and idle p%u would do", i, j);
        }
    }
}

/* Whether there was something to choose. */
static bool compare(struct scene *scene)
{
    struct victims_cost cost, best;
    uint64_t chosen;
    const bool found = choose(scene, false, &chosen, &cost), possible = best_of_all(scene, &best);
    const uint32_t set = (uint32_t)chosen;

    HOLDS(found == possible, "%u pods: %s", scene->n_pods, possible ? "there are" : "there are none");
    if (!found)
        return false;
    HOLDS(helps(scene, set), "set %x does not help", set);
    const struct victims_cost paid = price(scene, set);
    HOLDS(victims_cost_compare(&paid, &cost) == 0, "set %x costs otherwise than said", set);
    HOLDS(victims_cost_compare(&cost, &best) == 0, "set %x: there are better ones", set);
    check_idle(scene, set);
    return set != 0;
}

static void compare_crowd(struct scene *scene)
{
    struct victims_cost cost, other_cost;
    uint64_t set, other;
    const bool found = choose(scene, false, &set, &cost);

    HOLDS(choose(scene, true, &other, &other_cost) == found, "%u pods: found %d", scene->n_pods,
          found);
    HOLDS(set == other, "%u pods: %" G_GINT64_MODIFIER "x, and told apart %" G_GINT64_MODIFIER "x",
          scene->n_pods, set, other);
    HOLDS(!found || victims_cost_compare(&cost, &other_cost) == 0, "the same costs otherwise");
}

static void try_crowds(void)
{
    g_autofree char *property = g_strdup_printf("%s: who is alike is chosen alike", row->name);
    unsigned crowds = 0, scenes = 0;

    roominess = 4;
    chance_init(property, 1000);
    while (chance_next_event()) {
        struct scene scene;
        alike = chance_percent(80);
        draw_scene(&scene, (uint32_t)chance_between(PODS_MAX, CROWD_MAX));
        compare_crowd(&scene);
        crowds += scene.n_pods > VICTIMS_FEW;
        scenes++;
        clear_scene(&scene);
    }
    HOLDS(scenes < 100 || crowds * 4 >= scenes, "%u of %u scenes had many pods", crowds, scenes);
    roominess = 1;
    alike = false;
}

int main(void)
{
    for (size_t i = 0; dialects[i]; i++) {
        g_autofree char *property =
            g_strdup_printf("%s: no set of victims costs less", dialects[i]->name);
        unsigned scenes = 0, with_victims = 0;
        if (!dialects[i]->write_annotations)
            continue; /* it is counted, never placed */
        set_row(dialects[i]);
        chance_init(property, 1000);
        while (chance_next_event()) {
            struct scene scene;
            /* Of more pods sets are not all looked at: right where nobody else picks the card. */
            const bool many = !row->policy && chance_percent(4);
            draw_scene(&scene, many ? PODS_MAX : 1 + chance_below(9));
            with_victims += compare(&scene);
            scenes++;
            clear_scene(&scene);
        }
        HOLDS(scenes < 100 || with_victims * 5 >= scenes, "%u of %u scenes had victims",
              with_victims, scenes);
        if (!row->policy && !flavour->devices) /* of others nobody is taken for alike */
            try_crowds();
    }
    return EXIT_SUCCESS;
}
