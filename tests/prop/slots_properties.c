/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many holders a card takes, changed by a calendar's protocol and by hand while anything happens in any
 * order: pods are filtered now and bound later, run for as long as they say or for ever, outlast their
 * eviction; the extender hears of the Node late; whoever switches is away, or loses his word.
 *
 * The oracle reads the card from the Binding and the Node's words by itself. Held: no grant gives a card
 * more holders than the extender had heard that it may have, nor than the Node says unless somebody
 * has changed that by hand; when the protocol sets a number no card has more; those that have to go for
 * it are as many of each card as are too many there; and each switch ends in time.
 */
#include "chance.h"

#include "core/ledger.h"
#include "base/log.h"
#include "json/json.h"
#include "simulate/memory_cluster.h"
#include "switch/machine.h"
#include "switch/slot_drain.h"
#include "verbs/extender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CARDS 3
#define PODS 24
#define ANY_NUMBER 1000000
#define STEP_MAX_S 90
#define WORLD_EVENTS 1500
#define NEVER INT64_MAX
#define SLOTS "gpuledger.io/slots"
#define CARD_WORD "ALIYUN_COM_GPU_MEM_IDX"
#define LEADS_S 120 /* so much before a switch a pod has to have ended at the latest */

enum stage { STAGE_FREE, STAGE_FILTERED, STAGE_BOUND };

struct pod {
    enum stage stage;
    int card;
    int64_t lasts_s; /* its deadline and its grace period; 0: it has none */
    int64_t ends_s;
    bool evicted;
    unsigned id;
};

/* The Node, and the words of it that the extender has heard. */
struct words {
    char *slots, *mark, *state, *done;
    bool taint;
};

struct world {
    struct extender extender;
    struct calendar *calendar;
    struct words now, heard;
    int64_t now_s, away_s, begun_s;
    struct moment moment; /* the same, for the store */
    bool by_hand;         /* somebody has changed the number, or what is announced, himself */
    struct pod pods[PODS];
    unsigned n_pods;
};

static unsigned n_granted, n_refused, n_done, n_shrunk, n_given_up, n_evicted, n_beside;

/* --- the oracle ---------------------------------------------------------------------------------- */

/* What the words let a card have; 0: nobody can read them. */
static int bound_of(const char *slots)
{
    if (!slots || strcmp(slots, "any") == 0)
        return ANY_NUMBER;
    return strspn(slots, "0123456789") == strlen(slots) ? atoi(slots) : 0;
}

static int count_holders(const struct world *world, int card)
{
    int n = 0;

    for (int i = 0; i < PODS; i++)
        n += world->pods[i].stage == STAGE_BOUND && world->pods[i].card == card;
    return n;
}

/* "gpuledger.io/slots=2@2026-11-25T20:00:00Z" in numbers; false: there is none. */
static bool split_mark(const char *mark, int *ret_slots, int64_t *ret_at_s)
{
    const char *value = mark ? mark + strlen(SLOTS "=") : NULL,
               *at = mark ? strchr(mark, '@') : NULL;

    if (!mark)
        return false;
    g_autofree char *number = g_strndup(value, (gsize)(at - value));
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(at + 1, NULL);
    *ret_slots = bound_of(number);
    *ret_at_s = g_date_time_to_unix(time);
    return true;
}

static void hold_grant(const struct world *world, const struct pod *pod)
{
    const int holders = count_holders(world, pod->card), bound = bound_of(world->heard.slots);
    int slots;
    int64_t at_s;

    HOLDS(pod->card >= 0 && pod->card < CARDS, "bound to card %d", pod->card);
    HOLDS(holders <= bound, "%d holders by a grant, %d are let", holders, bound);
    HOLDS(world->by_hand || holders <= bound_of(world->now.slots),
          "%d holders by a grant, the Node lets %s", holders, world->now.slots);
    HOLDS(!world->heard.state, "a grant while a switch is under way");
    if (!split_mark(world->heard.mark, &slots, &at_s) || slots >= bound)
        return;
    HOLDS(at_s > world->now_s, "a grant after the time of a switch");
    if (pod->lasts_s > 0 && pod->lasts_s <= at_s - world->now_s - LEADS_S)
        return;
    HOLDS(holders <= slots, "%d holders by a grant to one who is there still when %d are let",
          holders, slots);
    n_beside++;
}

/* --- the extender ---------------------------------------------------------------------------------- */

static void set_clock(struct world *world)
{
    world->moment = (struct moment){.now_ms = 1, /* before any deadline of a bind */
                                    .now_ns = world->now_s * INT64_C(1000000000)};
    store_set_moment(world->extender.store, &world->moment);
}

static void hear(struct world *world)
{
    struct string_pair words[4];
    const struct string_pair capacity[] = {{"aliyun.com/gpu-mem", "300"},
                                           {"aliyun.com/gpu-count", "3"}};
    struct node_view view = {.name = "n", .capacity = {capacity, 2}, .annotations = {words, 0}};
    const struct string_pair said[] = {{SLOTS, world->now.slots},
                                       {SWITCH_KEY, world->now.mark},
                                       {SWITCH_STATE_KEY, world->now.state}};

    for (size_t i = 0; i < G_N_ELEMENTS(said); i++) {
        if (said[i].value)
            words[view.annotations.n++] = said[i];
    }
    store_apply_node(world->extender.store, &view);
    g_free(world->heard.slots);
    g_free(world->heard.mark);
    g_free(world->heard.state);
    world->heard.slots = g_strdup(world->now.slots);
    world->heard.mark = g_strdup(world->now.mark);
    world->heard.state = g_strdup(world->now.state);
}

static char *format_pod(const struct pod *pod)
{
    g_autofree char *deadline = pod->lasts_s > 0
                                    ? g_strdup_printf("\"activeDeadlineSeconds\":%d,"
                                                      "\"terminationGracePeriodSeconds\":1,",
                                                      (int)pod->lasts_s - 1)
                                    : g_strdup("");

    return g_strdup_printf("{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ml\",\"uid\":\"p%u\"},"
                           "\"spec\":{%s\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
                           "{\"aliyun.com/gpu-mem\":\"1\"}}}]}}",
                           pod->id, pod->id, deadline);
}

static bool filter(struct world *world, const struct pod *pod)
{
    g_autofree char *text = format_pod(pod);
    g_autofree char *body = g_strdup_printf("{\"Pod\":%s,\"NodeNames\":[\"n\"]}", text);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_filter(&world->extender, body, strlen(body), reply);
    return strstr(reply->str, "\"NodeNames\":[\"n\"]") != NULL;
}

static void forget(struct world *world, struct pod *pod)
{
    g_autofree char *name = g_strdup_printf("p%u", pod->id);

    memory_cluster_remove(world->extender.cluster, "ml", name);
    *pod = (struct pod){STAGE_FREE};
}

/* As the Binding says. */
static int card_of(struct world *world, const struct pod *pod)
{
    g_autoptr(GPtrArray) all = memory_cluster_pods(world->extender.cluster);
    g_autofree char *name = g_strdup_printf("p%u", pod->id);

    for (guint i = 0; i < all->len; i++) {
        const struct memory_pod *one = all->pdata[i];
        for (size_t j = 0; strcmp(one->name, name) == 0 && j < one->words.n; j++) {
            if (strcmp(one->words.items[j].key, CARD_WORD) == 0)
                return atoi(one->words.items[j].value);
        }
    }
    return -1;
}

static void bind(struct world *world, struct pod *pod)
{
    g_autofree char *body = g_strdup_printf(
        "{\"PodName\":\"p%u\",\"PodNamespace\":\"ml\",\"PodUID\":\"p%u\",\"Node\":\"n\"}", pod->id,
        pod->id);
    g_autoptr(GString) reply = g_string_new(NULL);

    extender_bind(&world->extender, body, strlen(body), reply);
    if (!strstr(reply->str, "\"Error\":\"\"")) {
        n_refused++;
        forget(world, pod);
        return;
    }
    pod->stage = STAGE_BOUND;
    pod->card = card_of(world, pod);
    pod->ends_s = chance_percent(40)  ? NEVER
                  : pod->lasts_s == 0 ? world->now_s + chance_between(60, 20000)
                                      : world->now_s + chance_between(1, pod->lasts_s);
    if (pod->lasts_s > 0)
        pod->ends_s = MIN(pod->ends_s, world->now_s + pod->lasts_s); /* kubelet sees to it */
    n_granted++;
    hold_grant(world, pod);
}

static void come(struct world *world)
{
    struct pod *pod = &world->pods[chance_below(PODS)];

    if (pod->stage == STAGE_FREE) {
        *pod = (struct pod){.stage = STAGE_FILTERED,
                            .card = -1,
                            .lasts_s = chance_percent(50) ? 0 : chance_between(60, 8000),
                            .id = world->n_pods++};
        HOLDS(memory_cluster_add(world->extender.cluster, format_pod(pod), NULL), "no pod");
        if (!filter(world, pod)) {
            n_refused++;
            forget(world, pod);
            return;
        }
    }
    if (pod->stage == STAGE_FILTERED && chance_percent(70))
        bind(world, pod);
}

static void run_pods(struct world *world)
{
    for (int i = 0; i < PODS; i++) {
        struct pod *pod = &world->pods[i];
        if (pod->stage == STAGE_BOUND && pod->ends_s <= world->now_s)
            forget(world, pod);
    }
}

/* --- whoever switches -------------------------------------------------------------------------------- */

/* As many of each card as are too many there. */
static void hold_leaving(const struct world *world, GHashTable *leaving, int slots)
{
    int n[CARDS] = {0};

    for (int i = 0; i < PODS; i++) {
        const struct pod *pod = &world->pods[i];
        g_autofree char *uid = g_strdup_printf("p%u", pod->id);
        if (pod->stage == STAGE_BOUND)
            n[pod->card] += g_hash_table_contains(leaving, uid);
    }
    for (int i = 0; i < CARDS; i++)
        HOLDS(n[i] == MAX(count_holders(world, i) - slots, 0), "%d of %d have to go for %d", n[i],
              count_holders(world, i), slots);
}

static void evict(struct world *world, GHashTable *leaving)
{
    for (int i = 0; i < PODS; i++) {
        struct pod *pod = &world->pods[i];
        g_autofree char *uid = g_strdup_printf("p%u", pod->id);
        if (pod->stage != STAGE_BOUND || pod->evicted || !g_hash_table_contains(leaving, uid) ||
            chance_percent(20)) /* a budget has nothing to give */
            continue;
        pod->evicted = true;
        pod->ends_s = chance_percent(5) ? NEVER : world->now_s + chance_between(1, 600);
        n_evicted++;
    }
}

static void write_word(char **text, const struct switch_word *word)
{
    if (!word->set)
        return;
    g_free(*text);
    *text = g_strdup(word->text);
}

static void carry_out(struct world *world, const struct switch_step *step)
{
    if (step->label.set) {
        const bool fewer = step->phase == SWITCH_DRAINING;
        world->by_hand &= !fewer;
        for (int i = 0; i < CARDS && !world->by_hand; i++)
            HOLDS(count_holders(world, i) <= bound_of(step->label.text), "%d holders, %s are set",
                  count_holders(world, i), step->label.text);
        n_shrunk += fewer;
    }
    write_word(&world->now.mark, &step->mark);
    write_word(&world->now.state, &step->state);
    write_word(&world->now.done, &step->done);
    write_word(&world->now.slots, &step->label);
    world->now.taint = step->taint;
    n_done += step->event == SWITCH_EVENT_DONE;
    n_given_up += step->event == SWITCH_EVENT_GIVEN_UP;
}

static void hold_time(struct world *world, const struct switch_step *step)
{
    const int64_t bound_s = calendar_limits(world->calendar)->drain_s + 8 * STEP_MAX_S;

    if (step->phase != SWITCH_DRAINING || step->stuck)
        world->begun_s = 0;
    else if (world->begun_s == 0)
        world->begun_s = world->now_s;
    HOLDS(world->begun_s == 0 || world->now_s - world->begun_s <= bound_s, "draining for %d s",
          (int)(world->now_s - world->begun_s));
    HOLDS(step->writes || step->waits, "nothing is done, and nothing said");
}

static void control(struct world *world)
{
    struct string_pair words[4];
    const struct taint_view taint = {SWITCH_TAINT, "", "NoSchedule"};
    struct node_view view = {.name = "n", .annotations = {words, 0}};
    const struct string_pair said[] = {{SLOTS, world->now.slots},
                                       {SWITCH_KEY, world->now.mark},
                                       {SWITCH_STATE_KEY, world->now.state},
                                       {SWITCH_DONE_KEY, world->now.done}};
    g_autoptr(GHashTable) leaving = NULL;
    struct switch_step step;
    int slots = ANY_NUMBER;
    int64_t at_s;

    if (world->now_s < world->away_s)
        return;
    if (chance_percent(2)) {
        world->away_s = world->now_s + chance_between(1, 4000);
        world->begun_s += world->begun_s > 0 ? world->away_s - world->now_s + STEP_MAX_S : 0;
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(said); i++) {
        if (said[i].value)
            words[view.annotations.n++] = said[i];
    }
    view.taints = &taint;
    view.n_taints = world->now.taint;
    split_mark(world->now.mark, &slots, &at_s);
    const struct node *node = ledger_node(store_lock(world->extender.store), "n");
    leaving = slot_drain_find(node, slots == ANY_NUMBER ? 0 : slots, NULL);
    hold_leaving(world, leaving, slots);
    const struct switch_sight sight = {
        .now_s = world->now_s,
        .node = &view,
        .calendar = world->calendar,
        .limits = *calendar_limits(world->calendar),
        .n_holders =
            MAX(g_hash_table_size(leaving),
                node->switches_ns == 0 || node->switches_ns > world->now_s * INT64_C(1000000000)),
        .counts_cards = true,
    };
    store_unlock(world->extender.store);
    switch_step_find(&sight, &step);
    hold_time(world, &step);
    if (step.drains)
        evict(world, leaving);
    if (step.writes && chance_percent(95)) /* else a conflict, or it dies before */
        carry_out(world, &step);
    switch_step_clear(&step);
}

/* --- people -------------------------------------------------------------------------------------------- */

static void meddle(struct world *world)
{
    static const char *const numbers[] = {NULL, "any", "1", "2", "3", "5", "x", "0"};
    const char *number = numbers[chance_below(G_N_ELEMENTS(numbers))];

    if (chance_percent(50)) { /* announced, by him; what stands there is not heeded */
        const char *wanted = numbers[chance_between(1, 5)];
        g_autofree char *time =
            switch_time_format(world->now_s + chance_between(-100, chance_percent(50) ? 10000 : 0));
        if (world->now.state)
            return;
        g_free(world->now.mark);
        world->now.mark = g_strdup_printf(SLOTS "=%s@%s", wanted, time);
    } else if (chance_percent(30)) {
        g_clear_pointer(&world->now.mark, g_free);
    } else {
        g_free(world->now.slots);
        world->now.slots = g_strdup(number);
    }
    world->by_hand = true;
}

/* Stuck: somebody looks, and takes the announcement away. */
static void repair(struct world *world)
{
    if (world->now.state && g_str_has_prefix(world->now.state, "stuck") && chance_percent(10)) {
        g_clear_pointer(&world->now.mark, g_free);
        g_clear_pointer(&world->now.state, g_free);
        world->by_hand = true;
    }
}

/* --- worlds -------------------------------------------------------------------------------------------- */

static struct calendar *make_calendar(void)
{
    static const char text[] = "{\"timeZone\":\"UTC\",\"notice\":\"1h\",\"drain\":\"30m\","
                               "\"nodes\":[{\"label\":\"" SLOTS "\",\"windows\":["
                               "{\"from\":\"06:00\",\"to\":\"12:00\",\"target\":\"4\"},"
                               "{\"from\":\"12:00\",\"to\":\"18:00\",\"target\":\"2\"},"
                               "{\"from\":\"18:00\",\"to\":\"22:00\",\"target\":\"any\"},"
                               "{\"from\":\"22:00\",\"to\":\"06:00\",\"target\":\"1\"}]}]}";
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct calendar *calendar =
        calendar_new(json_parse(arena, text, strlen(text), &error), NULL, &error);

    HOLDS(calendar, "%s", error->message);
    return calendar;
}

static void world_begin(struct world *world)
{
    *world = (struct world){
        .extender = {.store = store_new(&(struct store_options){.patience_ms = 60000}),
                     .bind_timeout_ms = 60},
        .calendar = make_calendar(),
        .now_s = 1795600000 + chance_between(0, 86400),
    };
    world->extender.cluster = memory_cluster_new(world->extender.store);
    set_clock(world);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(world->extender.store, feed);
    hear(world);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(world->extender.store, feed);
}

static void words_clear(struct words *words)
{
    g_free(words->slots);
    g_free(words->mark);
    g_free(words->state);
    g_free(words->done);
}

static void world_end(struct world *world)
{
    memory_cluster_free(world->extender.cluster);
    store_free(world->extender.store);
    calendar_free(world->calendar);
    words_clear(&world->now);
    words_clear(&world->heard);
}

int main(void)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    chance_init("slots", 60000);
    for (unsigned done = 0; done < chance_events(); done += WORLD_EVENTS) {
        struct world world;
        chance_restart(chance_seed() + (done > 0));
        world_begin(&world);
        for (int i = 0; i < WORLD_EVENTS && chance_next_event(); i++) {
            world.now_s += chance_between(1, STEP_MAX_S);
            set_clock(&world);
            run_pods(&world);
            come(&world);
            control(&world);
            repair(&world);
            if (done / WORLD_EVENTS % 2 == 1 && chance_percent(2))
                meddle(&world);
            if (chance_percent(30))
                hear(&world);
        }
        world_end(&world);
    }
    printf("granted %u, %u of them to stay, refused %u, evicted %u, done %u, %u of them for fewer, "
           "given up %u\n",
           n_granted, n_beside, n_refused, n_evicted, n_done, n_shrunk, n_given_up);
    HOLDS(n_granted > 0 && n_beside > 0 && n_refused > 0 && n_evicted > 0 && n_shrunk > 0 &&
              n_done > n_shrunk && n_given_up > 0,
          "too little has happened");
    return 0;
}
