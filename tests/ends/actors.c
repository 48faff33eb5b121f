/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants, kubelets and people, and what they write, whether they mean well or not. */
#include "../faults/faults.h"
#include "../faults/sim.h"
#include "../killed/replica.h"
#include "../prop/chance.h"
#include "ends.h"
#include "facts.h"
#include "pods.h"

#include <string.h>

#define PODS_MOST 16
#define CONFIGMAPS "/api/v1/namespaces/" API_NS "/configmaps/"
#define STOP_PATH CONFIGMAPS "gpuledger-evictions"

static struct {
    unsigned n_pods, n_orders;
    int64_t stopped_us, ordered_us, broken_off_us;
} own;

void actors_reset(void)
{
    memset(&own, 0, sizeof own);
}

/* Whose demand is the largest changes now and then. */
static char *draw_ns(void)
{
    const int64_t turn = sim_now_us() / (4 * MINUTE);

    return g_strdup_printf("t%u", chance_percent(55) ? (unsigned)(turn % NAMESPACES)
                                                     : chance_below(NAMESPACES));
}

static char *draw_node(void)
{
    return g_strdup_printf("n%u", chance_below(NODES_N));
}

static int draw_units(void)
{
    static const int sizes[] = {2, 2, 4, 4, 8, 8};

    return sizes[chance_below(G_N_ELEMENTS(sizes))];
}

/* --- tenants ----------------------------------------------------------------------------------------- */

static bool is_full(void)
{
    g_autoptr(GPtrArray) paths = pods_paths();

    return paths->len >= PODS_MOST;
}

static void create(void *world)
{
    g_autofree char *ns = draw_ns(), *name = g_strdup_printf("p%u", ++own.n_pods);
    g_autofree char *owner = g_strdup_printf("rs-%u", own.n_pods);

    if (!is_full())
        pods_put(&(struct pod_wish){.ns = ns,
                                    .name = name,
                                    .units = draw_units(),
                                    .priority = settings.priorities && chance_percent(25) ? 10 : 0,
                                    .owner = owner});
}

static const char *draw_opt_out(void)
{
    static const char *const words[] = {
        ",\"descheduler.alpha.kubernetes.io/prefer-no-eviction\":\"true\"",
        ",\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"false\"",
        ",\"karpenter.sh/do-not-disrupt\":\"true\"",
        ",\"scheduling.koordinator.sh/refuse-to-migrate\":\"\"",
        ",\"scheduling.koordinator.sh/eviction-cost\":\"2147483647\"",
        ",\"finalizer\":\"y\"",
    };

    return words[chance_below(G_N_ELEMENTS(words))];
}

static void create_odd(void *world)
{
    g_autofree char *ns = draw_ns(), *name = g_strdup_printf("odd%u", ++own.n_pods);
    g_autofree char *owner =
        g_strdup_printf("%s-%u", chance_percent(40) ? "fake" : "rs", own.n_pods);
    struct pod_wish wish = {.ns = ns, .name = name, .units = draw_units()};

    if (is_full())
        return;
    if (chance_percent(70))
        wish.owner = owner;
    if (chance_percent(40))
        wish.words = draw_opt_out();
    if (chance_percent(30))
        wish.spec = chance_percent(50) ? "\"schedulingGates\":[{\"name\":\"g\"}],"
                                       : "\"schedulerName\":\"volcano\",";
    pods_put(&wish);
}

/* A DaemonSet's or a mirror, which is on its node by itself. */
static void create_placed(void *world)
{
    g_autofree char *ns = draw_ns(), *name = g_strdup_printf("on%u", ++own.n_pods);
    g_autofree char *node = draw_node(), *owner = g_strdup_printf("ds-%u", own.n_pods);
    const int card = (int)chance_below(CARDS_N);
    const bool mirror = chance_percent(50);

    if (!is_full() && pods_used(node, card) + 2 <= UNITS)
        pods_put(
            &(struct pod_wish){.ns = ns,
                               .name = name,
                               .units = 2,
                               .owner = owner,
                               .kind = mirror ? "Node" : "DaemonSet",
                               .words = mirror ? ",\"kubernetes.io/config.mirror\":\"x\"" : NULL,
                               .node = node,
                               .card = card});
}

static void create_group(void *world)
{
    g_autofree char *ns = draw_ns(), *owner = g_strdup_printf("job-%u", ++own.n_pods);
    const int n = (int)chance_between(2, 3), units = draw_units();
    g_autofree char *words =
        g_strdup_printf(",\"" GANG "name\":\"g%u\",\"" GANG "min-available\":\"%d\",\"" GANG
                        "waiting-time\":\"%ds\"",
                        own.n_pods, n, GANG_WAITING_S);

    for (int i = 0; i < n && !is_full(); i++) {
        g_autofree char *name = g_strdup_printf("g%u-%d", own.n_pods, i);
        pods_put(&(struct pod_wish){
            .ns = ns, .name = name, .units = units, .owner = owner, .words = words});
    }
}

/* A group that was cut in half: one of its pods waits for more than there is room. */
static void create_half(void *world)
{
    g_autofree char *ns = draw_ns(), *node = draw_node();
    g_autofree char *owner = g_strdup_printf("job-%u", ++own.n_pods);
    const int card = (int)chance_below(CARDS_N);
    const bool ours = chance_percent(70);
    g_autofree char *title = g_strdup_printf(",\"gpuledger.io/gang\":\"%s/h%u\"", ns, own.n_pods);

    if (is_full() || pods_used(node, card) + 4 > UNITS)
        return;
    for (int i = 0; i < 2; i++) {
        g_autofree char *name = g_strdup_printf("h%u-%d", own.n_pods, i);
        g_autofree char *words =
            g_strdup_printf(",\"" GANG "name\":\"h%u\",\"" GANG "min-available\":\"2\",\"" GANG
                            "waiting-time\":\"%ds\"%s",
                            own.n_pods, GANG_WAITING_S, i == 0 && ours ? title : "");
        pods_put(&(struct pod_wish){.ns = ns,
                                    .name = name,
                                    .units = i == 0 ? 4 : 8,
                                    .owner = owner,
                                    .words = words,
                                    .node = i == 0 ? node : NULL,
                                    .card = card});
    }
}

static void delete_pod(void *world)
{
    g_autofree char *path = pods_draw(NULL);

    if (!path || pod_ends(api_get(path)))
        return;
    api_annotate(path, "last", "y");
    cJSON_AddStringToObject(cJSON_GetObjectItemCaseSensitive(api_get(path), "metadata"),
                            "deletionTimestamp", "2026-01-02T03:04:05Z");
    api_touch(path);
}

static void edit_pod(void *world)
{
    g_autofree char *path = pods_draw(NULL);
    static const char *const keys[] = {"karpenter.sh/do-not-disrupt",
                                       "descheduler.alpha.kubernetes.io/prefer-no-eviction"};

    if (!path)
        return;
    const char *key = keys[chance_below(G_N_ELEMENTS(keys))];
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(api_get(path), "metadata");
    switch (chance_below(4)) {
    case 0:
        cJSON_DeleteItemFromObjectCaseSensitive(meta, "ownerReferences");
        api_touch(path);
        break;
    case 1:
        if (pod_word(api_get(path), GANG "name"))
            api_annotate(path, GANG "min-available", chance_percent(50) ? "3" : "2");
        break;
    default:
        api_annotate(path, key, pod_word(api_get(path), key) ? NULL : "true");
    }
}

/* What counts in gpuledger's namespace alone. */
static void write_configmap(void *world)
{
    static const char *const names[] = {"gpuledger-evictions", "gpuledger-claims",
                                        "gpuledger-moves", "order"};
    const unsigned i = chance_below(G_N_ELEMENTS(names));
    g_autofree char *ns = draw_ns(), *victim = pods_draw(NULL);
    g_autofree char *path = g_strdup_printf("/api/v1/namespaces/%s/configmaps/%s", ns, names[i]);
    const char *uid = victim ? api_text(api_get(victim), "metadata", "uid") : "u-1";

    api_put(path,
            "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"labels\":{\"gpuledger.io/plan\":"
            "\"run\"}},\"data\":{\"stop\":\"true\",\"empty\":\"n0\",\"claims\":\"{\\\"nodes\\\":"
            "{\\\"n0\\\":[{\\\"for\\\":\\\"u-1\\\",\\\"ends\\\":[\\\"%s\\\"]}]}}\"}}",
            ns, names[i], uid);
}

static void put_budget(void *world)
{
    g_autofree char *path = pods_draw(NULL);
    const char *app = path ? cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
                                 api_at(api_get(path), "metadata", "labels"), "app"))
                           : NULL;

    if (!app || chance_percent(70))
        return;
    api_annotate(path, "guarded", pod_word(api_get(path), "guarded") ? NULL : "y");
    capabilities_put_budget(api_text(api_get(path), "metadata", "namespace"), app,
                            pod_word(api_get(path), "guarded") ? 0 : 1);
}

/* --- kubelets ---------------------------------------------------------------------------------------- */

static void put_time(const char *path, const char *key, const char *before, int64_t in_s)
{
    g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(g_get_real_time() / 1000000 + in_s);
    g_autofree char *time = g_date_time_format(at, "%Y-%m-%dT%H:%M:%SZ");
    g_autofree char *text = g_strconcat(before, time, NULL);

    api_annotate(path, key, text);
}

static void forge_node(void *world)
{
    g_autofree char *node = draw_node(), *path = g_strconcat("/api/v1/nodes/", node, NULL);
    g_autofree char *pod = pods_draw(NULL), *waits = pods_draw(NULL);
    const char *uid = pod ? api_text(api_get(pod), "metadata", "uid") : "u-1";
    const char *by = waits ? api_text(api_get(waits), "metadata", "uid") : "u-2";
    g_autofree char *claim =
        g_strdup_printf("[{\"for\":\"%s\",\"since\":%" G_GINT64_FORMAT ",\"ends\":[\"%s\"]}]", by,
                        g_get_real_time() / 1000000, uid);

    if (chance_percent(60))
        api_annotate(path, "gpuledger.io/reclaim", chance_percent(70) ? claim : NULL);
    else
        put_time(path, "gpuledger.io/switch", "gpuledger.io/slots=1@", 0);
}

static void forge_status(void *world)
{
    g_autofree char *path = pods_draw(NULL);
    cJSON *status = path ? cJSON_GetObjectItemCaseSensitive(api_get(path), "status") : NULL;

    if (!path || !pod_node(api_get(path)) || !cJSON_GetObjectItemCaseSensitive(status, "startTime"))
        return;
    cJSON_ReplaceItemInObjectCaseSensitive(
        status, "startTime",
        cJSON_CreateString(chance_percent(50) ? "2030-01-01T00:00:00Z" : "yesterday"));
    api_touch(path);
}

/* --- people ------------------------------------------------------------------------------------------ */

static char *draw_goal(void)
{
    g_autofree char *pod = pods_draw(NULL), *node = draw_node();
    const unsigned kind = chance_below(4);

    if (kind == 0 && pod)
        return g_strdup_printf("\"pod\":\"%s/%s\"", api_text(api_get(pod), "metadata", "namespace"),
                               api_text(api_get(pod), "metadata", "name"));
    if (kind == 1)
        return g_strdup_printf("\"empty\":\"%s/%u\"", node, chance_below(CARDS_N));
    return g_strdup("\"waiting\":\"30s\"");
}

/* It is about to go, or to be another one. */
static void break_off(const char *path)
{
    cJSON *order = api_get(path);
    const char *status = order ? pod_word(order, "gpuledger.io/plan-status") : NULL;

    if (status && strstr(status, "\"phase\":\"running\""))
        own.broken_off_us = sim_now_us();
}

static void order(void *world)
{
    g_autofree char *path = g_strdup_printf(CONFIGMAPS "order-%u", ++own.n_orders % 3);
    g_autofree char *goal = draw_goal();

    own.ordered_us = sim_now_us();
    break_off(path);
    api_put(path,
            "{\"metadata\":{\"namespace\":\"" API_NS "\",\"name\":\"order-%u\",\"labels\":"
            "{\"gpuledger.io/"
            "plan\":\"run\"}},\"data\":{%s,\"max-per-hour\":\"%u\",\"max-moves\":\"2\"}}",
            own.n_orders % 3, goal, settings.plans_hour);
}

static GPtrArray *orders(void)
{
    return api_paths(CONFIGMAPS "order-");
}

bool actors_broke_off(int64_t within_us)
{
    return own.broken_off_us > 0 && sim_now_us() - own.broken_off_us <= within_us;
}

bool actors_ordered(int64_t within_us)
{
    g_autoptr(GPtrArray) paths = orders();

    return paths->len > 0 || sim_now_us() - own.ordered_us <= within_us;
}

static void take_order_back(void *world)
{
    g_autoptr(GPtrArray) paths = orders();

    if (paths->len == 0)
        return;
    const char *path = paths->pdata[chance_below(paths->len)];
    break_off(path);
    api_remove(path);
    own.ordered_us = sim_now_us();
}

static void stop(void *world)
{
    static const char *const words[] = {"true", "true", "yes", "false", ""};
    const char *word = words[chance_below(G_N_ELEMENTS(words))];
    const bool stops = !g_str_equal(word, "false");

    api_put(STOP_PATH,
            "{\"metadata\":{\"namespace\":\"" API_NS
            "\",\"name\":\"gpuledger-evictions\"},\"data\":{\"stop\":\"%s\"}}",
            word);
    if (!stops || own.stopped_us == 0)
        own.stopped_us = stops ? sim_now_us() : 0;
}

static void let_go_on(void *world)
{
    api_remove(STOP_PATH);
    own.stopped_us = 0;
}

int64_t actors_stopped_us(void)
{
    return own.stopped_us;
}

static void change_min(void *world)
{
    const int ns = (int)chance_below(NAMESPACES), cards = (int)chance_between(0, 3);
    g_autofree char *name = g_strdup_printf("t%d", ns);

    capabilities_put_min(ns, cards);
    facts_min(name, cards);
}

static void announce(void *world)
{
    g_autofree char *node = draw_node(), *path = g_strconcat("/api/v1/nodes/", node, NULL);
    g_autofree char *before = g_strdup_printf("gpuledger.io/slots=%u@", 1 + chance_below(3));

    put_time(path, "gpuledger.io/switch", before, chance_between(0, 120));
}

static void widen(void *world)
{
    g_autofree char *node = draw_node(), *path = g_strconcat("/api/v1/nodes/", node, NULL);

    api_annotate(path, "gpuledger.io/slots", NULL);
}

static void uncordon(const char *path)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(api_get(path), "spec");

    api_annotate(path, "gpuledger.io/cordoned-cards", NULL);
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(spec, "unschedulable")))
        return;
    cJSON_DeleteItemFromObjectCaseSensitive(spec, "unschedulable");
    api_touch(path);
}

static void uncordon_one(void *world)
{
    g_autofree char *node = draw_node(), *path = g_strconcat("/api/v1/nodes/", node, NULL);

    uncordon(path);
}

/* --- all of them ------------------------------------------------------------------------------------- */

static const struct chance_action actions[] = {
    {"create", 24, create},
    {"create odd", 8, create_odd},
    {"create placed", 2, create_placed},
    {"create group", 4, create_group},
    {"create half", 5, create_half},
    {"delete", 10, delete_pod},
    {"edit", 6, edit_pod},
    {"configmap", 2, write_configmap},
    {"budget", 4, put_budget},
    {"forge node", 3, forge_node},
    {"forge status", 2, forge_status},
    {"order", 7, order},
    {"take back", 3, take_order_back},
    {"stop", 4, stop},
    {"go on", 8, let_go_on},
    {"min", 8, change_min},
    {"announce", 4, announce},
    {"widen", 3, widen},
    {"uncordon", 3, uncordon_one},
    {NULL, 0, NULL},
};

void actors_act(void)
{
    ends_count_event();
    chance_act(actions, NULL);
}

void actors_rest(void)
{
    g_autoptr(GPtrArray) paths = orders(), nodes = api_paths("/api/v1/nodes/");

    let_go_on(NULL);
    for (guint i = 0; i < paths->len; i++) {
        break_off(paths->pdata[i]);
        api_remove(paths->pdata[i]);
    }
    for (guint i = 0; i < nodes->len; i++) {
        api_annotate(nodes->pdata[i], "gpuledger.io/switch", NULL);
        api_annotate(nodes->pdata[i], "gpuledger.io/slots", NULL);
        uncordon(nodes->pdata[i]);
    }
    own.ordered_us = sim_now_us();
    if (chance_percent(30))
        api_put(CONFIGMAPS "order-0",
                "{\"metadata\":{\"namespace\":\"" API_NS "\",\"name\":\"order-0\",\"labels\":"
                "{\"gpuledger.io/plan\":\"run\"}},\"data\":{\"waiting\":\"30s\",\"max-per-hour\":"
                "\"%u\",\"max-moves\":\"2\"}}",
                settings.plans_hour);
}
