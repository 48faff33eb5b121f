/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that come, ask when they like, and leave, on cards of a random size: the oldest is never delayed
 * by a younger one, nobody is refused a node without an older one that needs it, what filter allows
 * bind does, and everybody gets a card in the end.
 */
#include "chance.h"

#include "verbs/extender.h"
#include "base/log.h"
#include "simulate/memory_cluster.h"

#include <gpuledger/error.h>
#include <stdlib.h>
#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"
#define NODES 3
#define CARDS 3
#define PODS_MAX 2000
#define HOUR_MS (3600 * 1000)

enum state { WAITS, RUNS, GONE };

struct pod {
    enum state state;
    unsigned size, node, card;
    /* What was promised when nobody older was in the way; NULL: nothing. */
    char *promised;
    bool *running; /* who ran when the pod became the oldest; NULL: it is not */
};

static struct world {
    struct extender extender;
    struct cluster *cluster;
    unsigned n_cards[NODES], size[NODES];
    unsigned n_places;
    unsigned n_pods;
    struct pod pods[PODS_MAX];
} world;

/* --- the oracle's own arithmetic -------------------------------------------------------------- */

static unsigned used(unsigned node, unsigned card)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < world.n_pods; i++) {
        const struct pod *pod = &world.pods[i];
        sum += pod->state == RUNS && pod->node == node && pod->card == card ? pod->size : 0;
    }
    return sum;
}

static bool fits(unsigned node, unsigned size)
{
    for (unsigned card = 0; card < world.n_cards[node]; card++) {
        if (used(node, card) + size <= world.size[node])
            return true;
    }
    return false;
}

static bool fits_anywhere(unsigned size)
{
    for (unsigned node = 0; node < NODES; node++) {
        if (fits(node, size))
            return true;
    }
    return false;
}

/* The oldest that waits, or PODS_MAX. */
static unsigned oldest(void)
{
    for (unsigned i = 0; i < world.n_pods; i++) {
        if (world.pods[i].state == WAITS)
            return i;
    }
    return PODS_MAX;
}

/* --- the program ------------------------------------------------------------------------------ */

static char *format_pod(unsigned i)
{
    return g_strdup_printf("{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"ml\",\"uid\":\"u%u\","
                           "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{"
                           "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"" MEM
                           "\":\"%u\"}}}]}}",
                           i, i, world.pods[i].size);
}

/* The place kept for a pod, as text; NULL: none. */
static char *promise(unsigned i)
{
    g_autofree char *uid = g_strdup_printf("u%u", i);
    struct store *store = world.extender.store;

    store_lock(store);
    const struct reservation *place = arrivals_place(store_arrivals(store), uid);
    GString *text = place ? g_string_new(place->node) : NULL;
    if (place)
        g_string_append_printf(text, " card %d", place->held->shares[0].card);
    for (guint j = 0; place && j < place->ending->len; j++)
        g_string_append_printf(text, " %s", (const char *)place->ending->pdata[j]);
    store_unlock(store);
    return text ? g_string_free(text, FALSE) : NULL;
}

/* Which nodes filter lets pass, or leaves out only because others are on their way there. */
static void filter(unsigned i, bool *ret_passes)
{
    g_autofree char *pod = format_pod(i);
    g_autofree char *body = g_strdup_printf(
        "{\"Pod\":%s,\"NodeNames\":[\"n0\",\"n1\",\"n2\"]}", pod);
    GString *reply = g_string_new(NULL);

    extender_filter(&world.extender, body, strlen(body), reply);
    const char *names = strstr(reply->str, "\"NodeNames\":[");
    g_autofree char *passed =
        names ? g_strndup(names, (gsize)(strchr(names, ']') - names)) : g_strdup("");
    bool any = false, left = false;
    for (unsigned node = 0; node < NODES; node++) {
        g_autofree char *name = g_strdup_printf("\"n%u\"", node);
        g_autofree char *coming = g_strdup_printf(
            "%s:\"%s\"", name, reason_info(REASON_OTHERS_COMING)->text);
        ret_passes[node] = strstr(passed, name) != NULL;
        any |= ret_passes[node];
        left |= strstr(reply->str, coming) != NULL;
        ret_passes[node] |= strstr(reply->str, coming) != NULL;
    }
    HOLDS(any || !left, "%s", reply->str);
    g_string_free(reply, TRUE);
}

static void bind(unsigned i, unsigned node)
{
    g_autofree char *uid = g_strdup_printf("u%u", i);
    g_autofree char *body =
        g_strdup_printf("{\"PodName\":\"p%u\",\"PodNamespace\":\"ml\",\"PodUID\":\"u%u\","
                        "\"Node\":\"n%u\"}", i, i, node);
    GString *reply = g_string_new(NULL);

    extender_bind(&world.extender, body, strlen(body), reply);
    struct ledger *ledger = store_lock(world.extender.store);
    const struct allocation *allocation = ledger_get(ledger, uid);
    HOLDS(allocation, "filter let u%u pass on n%u, bind said %s", i, node, reply->str);
    world.pods[i].card = (unsigned)allocation->shares[0].card;
    store_unlock(world.extender.store);
    world.pods[i].node = node;
    world.pods[i].state = RUNS;
    HOLDS(used(node, world.pods[i].card) <= world.size[node], "u%u", i);
    g_string_free(reply, TRUE);
}

/* --- what must hold ---------------------------------------------------------------------------- */

/* A node that fits may be refused only for an older pod that would go there now or will. */
static void check_refusal(unsigned i, unsigned node)
{
    g_autofree char *name = g_strdup_printf("n%u ", node);

    for (unsigned j = 0; j < i; j++) {
        g_autofree char *place = world.pods[j].state == WAITS ? promise(j) : NULL;
        if (world.pods[j].state == WAITS &&
            (fits(node, world.pods[j].size) || (place && g_str_has_prefix(place, name))))
            return;
    }
    HOLDS(false, "u%u (%u) may not go to n%u, and nobody older needs it", i, world.pods[i].size,
          node);
}

/* Nobody older has come since: what was promised stays promised. */
static void check_promises(void)
{
    for (unsigned i = 0; i < world.n_pods; i++) {
        struct pod *pod = &world.pods[i];
        if (pod->state != WAITS)
            continue;
        g_autofree char *now = promise(i);
        HOLDS(!pod->promised || fits_anywhere(pod->size) || g_strcmp0(now, pod->promised) == 0,
              "u%u was promised %s, now %s", i, pod->promised, now ? now : "nothing");
        if (now && !pod->promised)
            pod->promised = g_steal_pointer(&now);
    }
}

/* Once all have ended that ran when it became the oldest, a pod has its card at last. */
static void check_turn(unsigned i)
{
    struct pod *pod = &world.pods[i];

    if (i != oldest())
        return;
    if (!pod->running) {
        pod->running = g_new0(bool, PODS_MAX);
        for (unsigned j = 0; j < world.n_pods; j++)
            pod->running[j] = world.pods[j].state == RUNS;
        return;
    }
    for (unsigned j = 0; j < world.n_pods; j++) {
        if (pod->running[j] && world.pods[j].state == RUNS)
            return;
    }
    HOLDS(fits_anywhere(pod->size), "u%u (%u) waits for younger pods", i, pod->size);
}

static bool ask(unsigned i)
{
    const unsigned first = oldest();
    const bool first_fits = first != i && fits_anywhere(world.pods[first].size);
    bool passes[NODES];
    unsigned n = 0, choice = 0;

    check_turn(i);
    filter(i, passes);
    for (unsigned node = 0; node < NODES; node++) {
        HOLDS(!passes[node] || fits(node, world.pods[i].size), "u%u does not fit on n%u", i, node);
        if (!passes[node] && fits(node, world.pods[i].size))
            check_refusal(i, node);
        n += passes[node];
    }
    check_promises();
    HOLDS(i != first || n > 0 || !fits_anywhere(world.pods[i].size), "the oldest, u%u, must wait",
          i);
    if (n == 0)
        return false;
    for (unsigned skip = chance_below(n); !passes[choice] || skip-- > 0;)
        choice++;
    bind(i, choice);
    HOLDS(!first_fits || fits_anywhere(world.pods[first].size), "u%u took the room of u%u", i,
          first);
    for (unsigned j = i + 1; j < world.n_pods; j++)
        g_clear_pointer(&world.pods[j].promised, g_free);
    return true;
}

/* --- what happens ------------------------------------------------------------------------------ */

static void come(void *data)
{
    struct pod *pod = &world.pods[world.n_pods];
    bool passes[NODES];
    unsigned waiting = 0, largest = MAX(world.size[0], MAX(world.size[1], world.size[2]));

    for (unsigned i = 0; i < world.n_pods; i++)
        waiting += world.pods[i].state == WAITS;
    if (world.n_pods == PODS_MAX || waiting > 12)
        return;
    *pod = (struct pod){.size = (unsigned)chance_between(1, chance_percent(70) ? 3 : largest)};
    HOLDS(memory_cluster_add(world.cluster, format_pod(world.n_pods++), NULL), "a pod");
    filter(world.n_pods - 1, passes); /* kube-scheduler asks about it at once */
}

static void try(void *data)
{
    const unsigned i = world.n_pods ? chance_below(world.n_pods) : 0;

    if (world.n_pods && world.pods[i].state == WAITS)
        ask(i);
}

static void try_oldest(void *data)
{
    if (oldest() < PODS_MAX)
        ask(oldest());
}

static void leave(unsigned i)
{
    g_autofree char *name = g_strdup_printf("p%u", i);

    memory_cluster_remove(world.cluster, "ml", name);
    world.pods[i].state = GONE;
}

static void end(void *data)
{
    unsigned n = 0;

    for (unsigned i = 0; i < world.n_pods; i++)
        n += world.pods[i].state == RUNS;
    if (n == 0)
        return;
    unsigned skip = chance_below(n), i = 0;
    while (world.pods[i].state != RUNS || skip-- > 0)
        i++;
    leave(i);
}

static void give_up(void *data)
{
    const unsigned i = world.n_pods ? chance_below(world.n_pods) : 0;

    if (world.n_pods && world.pods[i].state == WAITS)
        leave(i);
}

static const struct chance_action actions[] = {
    {"come", 30, come}, {"try", 60, try}, {"try the oldest", 5, try_oldest}, {"end", 14, end},
    {"give up", 1, give_up}, {0},
};

/* Nobody comes any more: those who wait ask in any order, and when none of them finds room one ends. */
static void drain(void)
{
    while (oldest() < PODS_MAX) {
        uint32_t order[PODS_MAX];
        bool granted = false;
        chance_order(order, world.n_pods);
        for (unsigned i = 0; i < world.n_pods; i++)
            granted |= world.pods[order[i]].state == WAITS && ask(order[i]);
        bool running = false;
        for (unsigned i = 0; i < world.n_pods; i++)
            running |= world.pods[i].state == RUNS;
        HOLDS(granted || running, "u%u waits in an empty cluster", oldest());
        if (!granted)
            end(NULL);
    }
}

static void begin(void)
{
    uint32_t n_policies = 0;

    while (policies[n_policies].name)
        n_policies++;
    world = (struct world){.n_places = (unsigned)chance_between(1, 6)};
    world.extender.store = store_new(&(struct store_options){
        .policy = &policies[chance_below(n_policies)],
        .patience_ms = HOUR_MS,
        .hold_ms = HOUR_MS,
        .n_places = world.n_places,
    });
    world.extender.bind_timeout_ms = HOUR_MS;
    world.extender.cluster = world.cluster = memory_cluster_new(world.extender.store);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(world.extender.store, feed);
    for (unsigned node = 0; node < NODES; node++) {
        world.n_cards[node] = (unsigned)chance_between(1, CARDS);
        world.size[node] = (unsigned)chance_between(4, 12);
        g_autofree char *name = g_strdup_printf("n%u", node);
        g_autofree char *memory =
            g_strdup_printf("%u", world.n_cards[node] * world.size[node]);
        g_autofree char *count = g_strdup_printf("%u", world.n_cards[node]);
        const struct string_pair capacity[] = {{MEM, memory}, {COUNT, count}};
        store_apply_node(world.extender.store,
                         &(struct node_view){.name = name, .capacity = {capacity, 2}});
    }
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(world.extender.store, feed);
}

static void finish(void)
{
    if (!world.cluster)
        return;
    drain();
    for (unsigned i = 0; i < world.n_pods; i++) {
        g_free(world.pods[i].promised);
        g_free(world.pods[i].running);
    }
    memory_cluster_free(world.cluster);
    store_free(world.extender.store);
}

int main(void)
{
    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT);
    chance_init("nobody is delayed by those who came later", 12000);
    for (unsigned i = 0; chance_next_event(); i++) {
        if (i % 1000 == 0) {
            finish();
            begin();
        }
        chance_act(actions, NULL);
    }
    finish();
    return EXIT_SUCCESS;
}
