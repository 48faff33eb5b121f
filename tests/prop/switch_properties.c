/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switching a node while anything happens in any order: the plugin's config-manager, or mig-manager 0.14
 * or 0.15, obeys late, in pieces or not at all; kubelet and labels follow in any order; pods come, end,
 * or outlast their eviction; whoever switches loses his word, is away, or is another one.
 *
 * The world keeps what the cards really are, which nobody is told. Held against that: pods that are there
 * together were given devices of one and the same geometry; nobody is admitted while cards, kubelet,
 * labels and the label's value are not of one mind; pods that are there never have more than the cards
 * have; and each switch ends in time, done, given up, or rolled back, and says what it waits for.
 *
 * The world's rules are what the two managers' sources do, not those of src/dialect: a
 * geometry is a number of devices of one card.
 */
#include "chance.h"

#include "json/json.h"
#include "store/feasibility.h"
#include "switch/machine.h"

#include <stdio.h>
#include <string.h>

#define CARDS 2
#define PODS_MAX 32
#define STEP_MAX_S 90
#define AWAY_MAX_S 4000
#define NEVER INT64_MAX
#define WORLD_EVENTS 20000

/* What a value of the label makes of a card: so many devices. */
struct geometry {
    const char *value, *profile;
    int devices;
};
static const struct geometry replicas[] = {{"day", NULL, 4}, {"night", NULL, 1}};
static const struct geometry layouts[] = {{"day", "1g.5gb", 7}, {"night", "3g.20gb", 2}};

struct pod {
    bool there, evicted;
    int devices;    /* of one card, when it was given one */
    int64_t ends_s; /* NEVER: by itself it does not */
    int64_t gone_s; /* after its eviction; NEVER: it does not go */
};

/* Something that happens to the node later. */
struct later {
    int64_t at_s; /* NEVER: not at all */
    int to;       /* geometry */
};

struct world {
    bool mig, old; /* mig-manager, 0.14 */
    const struct geometry *geometries;
    int64_t now_s;
    struct calendar *calendar;

    /* The Node. */
    char label[64];
    char *mark, *state, *done;
    bool taint;
    char manager_state[16]; /* "": the label is not there */
    bool paused;
    int reported; /* geometry that kubelet reports; -1: none */
    int labelled; /* that of GPU Feature Discovery */

    int cards;        /* what they really are */
    char seen[64];    /* the label as the manager saw it last */
    struct later act; /* the cards become another geometry */
    struct later report, tell, finish;
    struct later failure;
    struct pod pods[PODS_MAX];

    int64_t away_s; /* until then nobody switches */
    int64_t
        begun_s; /* when the switch left "announced", less the time that nobody was there; 0: none */
    unsigned ended[SWITCH_EVENTS];
    unsigned n_admitted;
};

/* --- the node as the API server shows it ----------------------------------------------------------- */

struct shown {
    struct node_view view;
    struct string_pair labels[12], annotations[4], amounts[4];
    struct taint_view taint;
    char text[6][32];
};

static void add(struct string_pairs *pairs, struct string_pair *items, const char *key,
                const char *value)
{
    items[pairs->n++] = (struct string_pair){key, value};
    pairs->items = items;
}

static void show_amount(const struct world *world, struct shown *shown)
{
    static char resource[2][48];
    struct string_pairs amounts = {0};

    if (world->reported < 0) {
        add(&amounts, shown->amounts, world->mig ? "nvidia.com/mig-1g.5gb" : "nvidia.com/gpu", "0");
    } else {
        const struct geometry *one = &world->geometries[world->reported];
        g_snprintf(resource[0], sizeof resource[0], "nvidia.com/mig-%s",
                   one->profile ? one->profile : "");
        g_snprintf(shown->text[0], sizeof shown->text[0], "%d", CARDS * one->devices);
        add(&amounts, shown->amounts, world->mig ? resource[0] : "nvidia.com/gpu", shown->text[0]);
    }
    shown->view.capacity = shown->view.allocatable = amounts;
}

static void show_labels(const struct world *world, struct shown *shown)
{
    static char count_key[48];
    const struct geometry *one = &world->geometries[world->labelled];
    struct string_pairs *labels = &shown->view.labels;

    if (*world->label)
        add(labels, shown->labels,
            world->mig ? "nvidia.com/mig.config" : "nvidia.com/device-plugin.config", world->label);
    if (world->mig) {
        g_snprintf(count_key, sizeof count_key, "nvidia.com/mig-%s.count", one->profile);
        g_snprintf(shown->text[1], sizeof shown->text[1], "%d", CARDS * one->devices);
        add(labels, shown->labels, count_key, shown->text[1]);
        if (*world->manager_state)
            add(labels, shown->labels, "nvidia.com/mig.config.state", world->manager_state);
        add(labels, shown->labels, "nvidia.com/gpu.deploy.device-plugin",
            world->paused ? "paused-for-mig-change" : "true");
        return;
    }
    g_snprintf(shown->text[1], sizeof shown->text[1], "%d", one->devices);
    add(labels, shown->labels, "nvidia.com/gpu.count", "2");
    add(labels, shown->labels, "nvidia.com/gpu.replicas", shown->text[1]);
    add(labels, shown->labels, "nvidia.com/gpu.product", one->devices > 1 ? "A100-SHARED" : "A100");
    add(labels, shown->labels, "nvidia.com/gpu.sharing-strategy",
        one->devices > 1 ? "time-slicing" : "none");
}

static void show(const struct world *world, struct shown *shown)
{
    *shown = (struct shown){.view = {.name = "n"}};
    show_labels(world, shown);
    show_amount(world, shown);
    if (world->mark)
        add(&shown->view.annotations, shown->annotations, SWITCH_KEY, world->mark);
    if (world->state)
        add(&shown->view.annotations, shown->annotations, SWITCH_STATE_KEY, world->state);
    if (world->done)
        add(&shown->view.annotations, shown->annotations, SWITCH_DONE_KEY, world->done);
    if (world->taint) {
        shown->taint = (struct taint_view){SWITCH_TAINT, "", "NoSchedule"};
        shown->view.taints = &shown->taint;
        shown->view.n_taints = 1;
    }
}

/* --- the node side ---------------------------------------------------------------------------------- */

static int geometry_of(const struct world *world, const char *value)
{
    for (int i = 0; i < 2; i++) {
        if (g_str_equal(world->geometries[i].value, value))
            return i;
    }
    return -1;
}

static struct later in(const struct world *world, int64_t max_s, int to)
{
    return (struct later){world->now_s + chance_between(1, max_s), to};
}

static bool has_come(const struct world *world, struct later *later)
{
    if (later->at_s > world->now_s)
        return false;
    later->at_s = NEVER;
    return true;
}

static void set_manager(struct world *world, const char *state)
{
    g_strlcpy(world->manager_state, state, sizeof world->manager_state);
}

static bool is_used(const struct world *world)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        if (world->pods[i].there)
            return true;
    }
    return false;
}

/* The sidecar sees any change; the plugin is away for a moment, or for ever. */
static void obey_config(struct world *world, int to)
{
    if (to < 0 || chance_percent(10))
        return;
    world->cards = to;
    if (chance_percent(30))
        world->reported = -1;
    world->report = chance_percent(5) ? (struct later){NEVER, to} : in(world, 60, to);
    world->tell = chance_percent(5) ? (struct later){NEVER, to} : in(world, 200, to);
}

/* mig-manager looks for the entry, then whether it is so already, then begins. */
static void obey_mig(struct world *world, int to)
{
    world->finish.at_s = world->failure.at_s = world->act.at_s = NEVER;
    if (to < 0) {
        set_manager(world, "failed");
        return;
    }
    if (to == world->cards) {
        set_manager(world, "success");
        return;
    }
    set_manager(world, "pending");
    world->paused = true;
    world->reported = -1;
    world->report.at_s = NEVER;
    if (chance_percent(15)) /* the clients do not leave in five minutes: 0.14 stays so */
        world->failure = (struct later){world->old ? NEVER : world->now_s + 300, to};
    else
        world->act = in(world, 400, to);
}

static void come_back(struct world *world)
{
    world->paused = false;
    world->report = in(world, 60, world->cards);
    world->tell = in(world, 120, world->cards);
}

static void run_node_side(struct world *world)
{
    if (!g_str_equal(world->label, world->seen) && chance_percent(50)) {
        g_strlcpy(world->seen, world->label, sizeof world->seen);
        if (world->mig)
            obey_mig(world, geometry_of(world, world->label));
        else
            obey_config(world, geometry_of(world, world->label));
    }
    if (has_come(world, &world->act)) {
        if (is_used(world)) {
            set_manager(world, "failed"); /* in use by another client */
        } else {
            world->cards = world->act.to;
            set_manager(world, "success");
        }
        come_back(world);
    }
    if (has_come(world, &world->failure)) {
        set_manager(world, "failed");
        come_back(world);
    }
    if (has_come(world, &world->report))
        world->reported = world->report.to;
    if (has_come(world, &world->tell))
        world->labelled = world->tell.to;
}

/* --- pods -------------------------------------------------------------------------------------------- */

static void run_pods(struct world *world)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod *pod = &world->pods[i];
        if (pod->there &&
            (pod->ends_s <= world->now_s || (pod->evicted && pod->gone_s <= world->now_s)))
            *pod = (struct pod){0};
    }
}

static int count_pods(const struct world *world)
{
    int n = 0;

    for (size_t i = 0; i < PODS_MAX; i++)
        n += world->pods[i].there;
    return n;
}

/* Whether cards, kubelet, labels and the label's value are of one mind. */
static bool agrees(const struct world *world)
{
    return world->cards == world->reported && world->cards == world->labelled &&
           geometry_of(world, world->label) == world->cards && !world->paused;
}

static void come(struct world *world)
{
    const int64_t lasts_s = chance_percent(50) ? 0 : chance_between(60, 20000);
    struct node node = {0};
    struct shown shown;

    show(world, &shown);
    node.switches_ns = switch_mark_ahead(&shown.view, NULL).at_ns;
    /* A pod that may be there then, with two minutes to spare, is not bound. */
    if ((node.switches_ns != 0 &&
         (lasts_s == 0 || lasts_s > node.switches_ns / INT64_C(1000000000) - world->now_s - 120)) ||
        world->reported < 0 ||
        count_pods(world) >= CARDS * world->geometries[world->reported].devices)
        return;
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod *pod = &world->pods[i];
        if (pod->there)
            continue;
        /* Before anything is switched the world is of one mind. */
        HOLDS(agrees(world),
              "admitted while things disagree: label %s, cards %d, kubelet %d, labels %d",
              world->label, world->cards, world->reported, world->labelled);
        *pod = (struct pod){
            .there = true,
            .devices = world->geometries[world->cards].devices,
            .ends_s = lasts_s > 0          ? world->now_s + chance_between(1, lasts_s)
                      : chance_percent(50) ? NEVER
                                           : world->now_s + chance_between(60, 40000),
        };
        world->n_admitted++;
        return;
    }
}

static void evict(struct world *world)
{
    for (size_t i = 0; i < PODS_MAX; i++) {
        struct pod *pod = &world->pods[i];
        if (!pod->there || pod->evicted || chance_percent(20)) /* a budget has nothing to give */
            continue;
        pod->evicted = true;
        pod->gone_s = chance_percent(3) ? NEVER : world->now_s + chance_between(1, 600);
    }
}

static void hold_cards(const struct world *world)
{
    int devices = 0, n = 0;

    for (size_t i = 0; i < PODS_MAX; i++) {
        if (!world->pods[i].there)
            continue;
        HOLDS(n == 0 || world->pods[i].devices == devices, "pods of two geometries are there");
        HOLDS(world->pods[i].devices == world->geometries[world->cards].devices,
              "the cards were changed under a pod");
        devices = world->pods[i].devices;
        n++;
    }
    HOLDS(n <= CARDS * devices, "%d pods on %d devices", n, CARDS * devices);
}

/* --- whoever switches -------------------------------------------------------------------------------- */

static void write_word(char **text, const struct switch_word *word)
{
    if (!word->set)
        return;
    g_free(*text);
    *text = g_strdup(word->text);
}

static void carry_out(struct world *world, const struct switch_step *step)
{
    write_word(&world->mark, &step->mark);
    write_word(&world->state, &step->state);
    write_word(&world->done, &step->done);
    world->taint = step->taint;
    if (step->label.set)
        g_strlcpy(world->label, step->label.text ? step->label.text : "", sizeof world->label);
    if (step->clears_state && world->mig)
        set_manager(world, "");
    world->ended[step->event]++;
}

static void hold_time(struct world *world, const struct switch_step *step)
{
    const struct switch_limits *limits = calendar_limits(world->calendar);
    const int64_t bound_s =
        limits->drain_s + 3 * limits->deadline_s + limits->deadline_s / 4 + 8 * STEP_MAX_S;

    if (step->phase == SWITCH_NONE || step->phase == SWITCH_STUCK) {
        world->begun_s = 0;
    } else if (world->begun_s == 0) {
        world->begun_s = world->now_s;
    }
    HOLDS(world->begun_s == 0 || world->now_s - world->begun_s <= bound_s, "in %s for %d s",
          switch_phases[step->phase], (int)(world->now_s - world->begun_s));
    HOLDS(step->writes || step->waits, "nothing is done in %s, and nothing said",
          switch_phases[step->phase]);
    HOLDS(step->phase != SWITCH_STUCK || step->stuck || step->writes, "nobody is called");
}

static void control(struct world *world)
{
    struct switch_step step;
    struct shown shown;

    if (world->now_s < world->away_s)
        return;
    if (chance_percent(2)) {
        world->away_s = world->now_s + chance_between(1, AWAY_MAX_S);
        if (world->begun_s > 0)
            world->begun_s += world->away_s - world->now_s + STEP_MAX_S;
        return;
    }
    show(world, &shown);
    const struct switch_sight sight = {
        .now_s = world->now_s,
        .node = &shown.view,
        .calendar = world->calendar,
        .limits = *calendar_limits(world->calendar),
        .n_holders = (guint)count_pods(world),
    };
    switch_step_find(&sight, &step);
    hold_time(world, &step);
    if (step.drains)
        evict(world);
    if (step.writes && chance_percent(95)) /* else a conflict, or it dies before */
        carry_out(world, &step);
    switch_step_clear(&step);
}

/* Somebody has looked: the node is as the label says, and the announcement goes. */
static void repair(struct world *world)
{
    const int wanted = geometry_of(world, world->label);

    if (!world->state || !g_str_has_prefix(world->state, "stuck") || chance_percent(99) ||
        wanted < 0 || (is_used(world) && wanted != world->cards))
        return;
    world->cards = world->reported = world->labelled = wanted;
    world->paused = false;
    world->report.at_s = world->tell.at_s = world->act.at_s = world->failure.at_s = NEVER;
    set_manager(world, "success");
    g_strlcpy(world->seen, world->label, sizeof world->seen);
    g_clear_pointer(&world->mark, g_free);
}

/* --- worlds ------------------------------------------------------------------------------------------ */

static struct calendar *make_calendar(bool mig)
{
    static const char text[] =
        "{\"timeZone\":\"UTC\",\"notice\":\"2h\",\"drain\":\"30m\",\"deadline\":\"15m\","
        "\"layouts\":{\"day\":{\"1g.5gb\":7},\"night\":{\"3g.20gb\":2}},"
        "\"nodes\":[{\"label\":\"%s\",\"windows\":["
        "{\"from\":\"08:00\",\"to\":\"20:00\",\"target\":\"day\"},"
        "{\"from\":\"20:00\",\"to\":\"08:00\",\"target\":\"night\"}]}]}";
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *filled = NULL;
    GString *whole = g_string_new(text);

    g_string_replace(whole, "%s", mig ? "nvidia.com/mig.config" : "nvidia.com/device-plugin.config",
                     0);
    filled = g_string_free(whole, FALSE);
    struct calendar *calendar =
        calendar_new(json_parse(arena, filled, strlen(filled), &error), "day=4,night=1", &error);
    HOLDS(calendar, "%s", error->message);
    return calendar;
}

static void world_init(struct world *world)
{
    *world = (struct world){
        .mig = chance_percent(50),
        .old = chance_percent(50),
        .now_s = 1795600000 + chance_between(0, 86400),
        .label = "day",
        .seen = "day",
        .manager_state = "success",
        .act.at_s = NEVER,
        .report.at_s = NEVER,
        .tell.at_s = NEVER,
        .finish.at_s = NEVER,
        .failure.at_s = NEVER,
    };
    world->geometries = world->mig ? layouts : replicas;
    world->calendar = make_calendar(world->mig);
}

static void world_clear(struct world *world)
{
    calendar_free(world->calendar);
    g_free(world->mark);
    g_free(world->state);
    g_free(world->done);
}

int main(void)
{
    unsigned ended[SWITCH_EVENTS] = {0}, n_admitted = 0;

    chance_init("switch", 400000);
    for (unsigned done = 0; done < chance_events(); done += WORLD_EVENTS) {
        struct world world;
        chance_restart(chance_seed() + (done > 0));
        world_init(&world);
        for (int i = 0; i < WORLD_EVENTS && chance_next_event(); i++) {
            world.now_s += chance_between(1, STEP_MAX_S);
            run_pods(&world);
            run_node_side(&world);
            if (chance_percent(20))
                come(&world);
            control(&world);
            repair(&world);
            hold_cards(&world);
        }
        for (size_t i = 0; i < SWITCH_EVENTS; i++)
            ended[i] += world.ended[i];
        n_admitted += world.n_admitted;
        world_clear(&world);
    }
    printf("admitted %u", n_admitted);
    for (size_t i = 1; i < SWITCH_EVENTS; i++)
        printf(", %s %u", switch_events[i], ended[i]);
    printf("\n");
    HOLDS(ended[SWITCH_EVENT_DONE] > 0 && ended[SWITCH_EVENT_ROLLED_BACK] > 0 &&
              ended[SWITCH_EVENT_GIVEN_UP] > 0 && n_admitted > 0,
          "too little has happened");
    return 0;
}
