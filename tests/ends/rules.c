/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include "../faults/sim.h"
#include "../killed/replica.h"
#include "../prop/chance.h"
#include "ends.h"
#include "facts.h"
#include "pods.h"
#include "rates.h"

#include <string.h>

#define READ_US (20 * S) /* within which a pod is read before it ends */
#define READ_SLOWLY_US (240 * S)
#define STOP_US (5 * S)
#define ASKED_US (6 * MINUTE)
#define ON_ITS_WAY_US (5 * MS) /* after the last look */

const char *const capability_names[CAPABILITIES] = {"reclaim", "plans", "switch", "strict"};

/* What the program has read of a pod. */
struct reading {
    int64_t at_us;
    char *text;
};

static GHashTable *readings; /* capability and uid -> GArray of struct reading */
static GHashTable *tried;    /* capability and uid */

static void clear_reading(gpointer data)
{
    cJSON_free(((struct reading *)data)->text);
}

static void free_readings(gpointer data)
{
    g_array_unref(data);
}

void rules_reset(void)
{
    g_clear_pointer(&readings, g_hash_table_unref);
    g_clear_pointer(&tried, g_hash_table_unref);
    readings = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_readings);
    tried = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

/* --- requests ---------------------------------------------------------------------------------------- */

struct sender {
    int capability; /* -1: none */
    char by;
};

static struct sender sender_of(const struct server_request *request)
{
    struct sender sender = {-1, '?'};
    const char *token = request->authorization ? strrchr(request->authorization, ' ') : NULL;

    for (int i = 0; token && i < CAPABILITIES; i++) {
        if (g_str_has_prefix(token + 1, capability_names[i]))
            sender = (struct sender){i, token[strlen(token) - 1]};
    }
    return sender;
}

/* The pod's path; NULL: it is no eviction. Free with g_free. */
static char *evicted_path(const struct server_request *request)
{
    const char *end = strstr(request->url, "/eviction");

    return end && strstr(request->url, "/pods/") && g_str_equal(request->method, "POST")
               ? g_strndup(request->url, (gsize)(end - request->url))
               : NULL;
}

static bool is_dry(const struct server_request *request)
{
    return strstr(request->body, "dryRun") != NULL;
}

static char *key_of(int capability, const char *uid)
{
    return g_strdup_printf("%d %s", capability, uid);
}

static char *wanted_uid(const struct server_request *request)
{
    cJSON *body = cJSON_Parse(request->body);
    char *uid = g_strdup(
        api_text(cJSON_GetObjectItemCaseSensitive(body, "deleteOptions"), "preconditions", "uid"));

    cJSON_Delete(body);
    return uid;
}

/* --- the pod itself ---------------------------------------------------------------------------------- */

static bool says(cJSON *pod, const char *key, const char *value)
{
    const char *word = pod_word(pod, key);

    return word && (value ? g_str_equal(word, value) : !g_str_equal(word, "false"));
}

static bool opts_out(cJSON *pod)
{
    return says(pod, "descheduler.alpha.kubernetes.io/prefer-no-eviction", NULL) ||
           says(pod, "descheduler.alpha.kubernetes.io/eviction-in-progress", NULL) ||
           says(pod, "scheduling.koordinator.sh/refuse-to-migrate", NULL) ||
           says(pod, "scheduling.koordinator.sh/eviction-cost", "2147483647") ||
           says(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict", "false") ||
           says(pod, "karpenter.sh/do-not-disrupt", "true");
}

/* Why it may not end, as it was read; NULL: it may. */
static const char *why_not(cJSON *pod, int capability)
{
    const bool spared = capability == RECLAIM || capability == PLANS;
    const int64_t ran_us = g_get_real_time() - pod_started_us(pod);

    if (pod_is_mirror(pod))
        return "it is a mirror";
    if (g_strcmp0(pod_owner_kind(pod), "DaemonSet") == 0)
        return "it is of a DaemonSet";
    if (pod_ends(pod))
        return "somebody has ended it already";
    if (spared && !pod_owner_kind(pod))
        return "nobody makes it again";
    if (spared && opts_out(pod))
        return "it has opted out";
    if (spared && pod_word(pod, GANG "name"))
        return "it is of a group";
    if (spared && settings.min_runtime_ms > 0 &&
        (pod_started_us(pod) == 0 || ran_us + S < settings.min_runtime_ms * MS))
        return "it has not run for long enough";
    return NULL;
}

static void check_pod(int capability, const char *uid, const char *name)
{
    g_autofree char *key = key_of(capability, uid);
    const GArray *list = g_hash_table_lookup(readings, key);
    const int64_t most_us =
        capability == STRICT || ends_lag_us() > MINUTE ? READ_SLOWLY_US : READ_US;
    const char *why = "it was not read";

    for (guint i = 0; list && i < list->len && why; i++) {
        const struct reading *reading = &g_array_index(list, struct reading, i);
        if (sim_now_us() - reading->at_us > most_us)
            continue;
        cJSON *pod = cJSON_Parse(reading->text);
        why = why_not(pod, capability);
        cJSON_Delete(pod);
    }
    HOLDS(!why, "%s ends %s: %s", capability_names[capability], name, why);
}

/* --- for whom, and on whose word --------------------------------------------------------------------- */

/* The claim that names the pod; the sheet is the caller's. */
static const cJSON *find_claim(const cJSON *sheet, const char *uid, const char **ret_node)
{
    const cJSON *node, *claim, *end;

    cJSON_ArrayForEach (node, cJSON_GetObjectItemCaseSensitive(sheet, "nodes")) {
        cJSON_ArrayForEach (claim, node) {
            cJSON_ArrayForEach (end, cJSON_GetObjectItemCaseSensitive(claim, "ends")) {
                if (g_strcmp0(cJSON_GetStringValue(end), uid) != 0 ||
                    g_str_has_prefix(
                        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(claim, "for")),
                        "over "))
                    continue;
                *ret_node = node->string;
                return claim;
            }
        }
    }
    return NULL;
}

static void check_claimant(const struct fact *victim, const struct fact *claimant)
{
    const char *ns = claimant->ns;
    const int claims = claimant->units;

    HOLDS(!g_str_equal(ns, victim->ns), "%s gives back to itself", ns);
    HOLDS(facts_waits(claimant), "%s/%s does not wait any more", ns, claimant->name);
    HOLDS(claimant->asks, "%s/%s can never come", ns, claimant->name);
    HOLDS(scheduler_asked_us(claimant->uid) > 0, "nobody asks about %s/%s", ns, claimant->name);
    HOLDS(sim_now_us() - facts_waits_since(claimant) >= settings.delay_ms * MS - S,
          "%s/%s has just come", ns, claimant->name);
    HOLDS(facts_least_held(ns) + claims <= facts_most_min(ns), "%s has more than its min", ns);
    const int held = facts_most_held(victim->ns) + facts_under_way(victim->ns);
    HOLDS(held - victim->units >= facts_least_min(victim->ns),
          "%s gives back more than it has borrowed: it holds %d of %d", victim->ns, held,
          facts_least_min(victim->ns));
}

static void check_reclaim(const struct fact *victim)
{
    const char *text = api_text(api_get(SHEET), "data", "claims"), *node = NULL;
    cJSON *sheet = cJSON_Parse(text ? text : "{}");
    const cJSON *claim = find_claim(sheet, victim->uid, &node);

    HOLDS(claim, "no claim names %s/%s", victim->ns, victim->name);
    HOLDS(g_strcmp0(node, victim->node) == 0, "%s/%s is on %s, and the claim on %s", victim->ns,
          victim->name, victim->node, node);
    const struct fact *claimant =
        facts_find(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(claim, "for")));
    HOLDS(claimant, "there is no claimant");
    check_claimant(victim, claimant);
    cJSON_Delete(sheet);
}

/* A pod of the group that is not of its own namespace cannot be: a group's name is of a namespace. */
static void check_strict(const struct fact *victim)
{
    HOLDS(victim->group, "%s/%s is of no group", victim->ns, victim->name);
    HOLDS(victim->ours, "%s was not bound with its group", victim->name);
    HOLDS(facts_half(victim->group, (GANG_WAITING_S - 1) * S), "%s is not half", victim->group);
}

static void check_switch(const struct fact *victim)
{
    HOLDS(facts_switched(victim->node), "%s is not switched", victim->node);
    HOLDS(victim->units > 0, "%s has no GPU", victim->name);
}

/* An order for a pod: that one waits, and kube-scheduler asks about it. */
static void check_order(const char *path, const struct fact *victim, bool *ret_found)
{
    cJSON *order = api_get(path);
    const char *target = api_text(order, "data", "pod");
    const char *status = pod_word(order, "gpuledger.io/plan-status");
    cJSON *tree = cJSON_Parse(status ? status : "{}");
    const char *phase = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "phase"));

    if (g_strcmp0(phase, "running") == 0) {
        const char *helped = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "for"));
        g_autofree char *at = target || helped ? g_strdup(target ? target : helped) : NULL;
        char *slash = at ? strchr(at, '/') : NULL;
        g_autofree char *own = g_strdup_printf("%s/%s", victim->ns, victim->name);
        HOLDS(!at || !g_str_equal(at, own), "%s ends for itself", own);
        *ret_found = true;
        if (slash)
            *slash = '\0';
        g_autofree char *pod_path = slash ? api_pod_path(at, slash + 1) : NULL;
        cJSON *pod = pod_path ? api_get(pod_path) : NULL;
        const char *uid = pod ? api_text(pod, "metadata", "uid") : NULL;
        HOLDS(!pod || facts_waits(facts_find(uid)), "%s is there already", own);
        HOLDS(!pod || target || sim_now_us() - scheduler_asked_us(uid) <= ASKED_US + ends_lag_us(),
              "nobody asks about %s any more", pod_path);
    }
    cJSON_Delete(tree);
}

static void check_plans(const struct fact *victim)
{
    g_autoptr(GPtrArray) paths = api_paths("/api/v1/namespaces/" API_NS "/configmaps/");
    bool found = false;

    HOLDS(actors_ordered(30 * S + ends_lag_us()), "nobody has ordered it");
    for (guint i = 0; i < paths->len; i++)
        check_order(paths->pdata[i], victim, &found);
    /* The program notices within seconds (docs/plan.md). */
    HOLDS(found || actors_broke_off(ends_lag_us()), "no order is carried out");
}

/* --- evictions --------------------------------------------------------------------------------------- */

static void check_sender(const struct sender *sender, const char *name)
{
    const struct replica *replica = replica_find(sender->by);
    const int64_t stopped_us = actors_stopped_us();

    HOLDS(sender->capability >= 0, "an eviction of %s by nobody", name);
    HOLDS(settings.modes[sender->capability] == MODE_ON, "%s does more than observe",
          capability_names[sender->capability]);
    HOLDS(replica &&
              (replica->deposed_us == 0 || sim_now_us() <= replica->deposed_us + ON_ITS_WAY_US),
          "%s: a replica that serves no more", capability_names[sender->capability]);
    HOLDS(stopped_us == 0 || sim_now_us() - stopped_us < STOP_US, "%s: evictions are stopped",
          capability_names[sender->capability]);
}

static void check_eviction(const struct sender *sender, cJSON *pod, const char *uid)
{
    static void (*const checks[CAPABILITIES])(const struct fact *victim) = {
        [RECLAIM] = check_reclaim,
        [PLANS] = check_plans,
        [SWITCH] = check_switch,
        [STRICT] = check_strict,
    };
    g_autofree char *key = key_of(sender->capability, uid);
    const struct fact *victim = facts_find(uid);
    const char *name = api_text(pod, "metadata", "name");

    HOLDS(victim, "%s: nobody has that UID", name);
    HOLDS(sender->capability == SWITCH || g_hash_table_contains(tried, key), "%s: %s was not tried",
          capability_names[sender->capability], name);
    check_pod(sender->capability, uid, name);
    if (victim->exists && !victim->ends)
        checks[sender->capability](victim);
}

static void note_binding(const struct server_request *request)
{
    const char *end = strstr(request->url, "/binding");
    g_autofree char *path = end ? g_strndup(request->url, (gsize)(end - request->url)) : NULL;
    cJSON *pod = path ? api_get(path) : NULL;

    if (pod)
        facts_binding_sent(api_text(pod, "metadata", "uid"));
}

void rules_sent(const struct server_request *request)
{
    g_autofree char *path = evicted_path(request);

    if (!g_str_equal(request->method, "GET"))
        ends_count_event();
    HOLDS(!g_str_equal(request->method, "DELETE") || !strstr(request->url, "/pods/"),
          "a pod is deleted: %s", request->url);
    if (!path) {
        note_binding(request);
        return;
    }
    const struct sender sender = sender_of(request);
    cJSON *pod = api_get(path);
    g_autofree char *uid = wanted_uid(request);
    HOLDS(uid, "%s is evicted, whichever it is", path);
    if (is_dry(request))
        return;
    check_sender(&sender, path);
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    sim_trace("evicts %s", path);
    if (rates_sent((enum capability)sender.capability, sender.by, parts[4], uid) && pod &&
        g_str_equal(api_text(pod, "metadata", "uid"), uid))
        check_eviction(&sender, pod, uid);
}

static void note_reading(int capability, const cJSON *pod)
{
    const char *uid = api_text((cJSON *)pod, "metadata", "uid");
    g_autofree char *key = key_of(capability, uid ? uid : "?");
    GArray *list = g_hash_table_lookup(readings, key);
    const struct reading reading = {sim_now_us(), cJSON_PrintUnformatted(pod)};

    if (!list) {
        list = g_array_new(FALSE, FALSE, sizeof(struct reading));
        g_array_set_clear_func(list, clear_reading);
        g_hash_table_insert(readings, g_steal_pointer(&key), list);
    }
    if (list->len > 3)
        g_array_remove_index(list, 0);
    g_array_append_val(list, reading);
}

/* One pod, or a list of them. */
static void note_reply(int capability, const char *body)
{
    cJSON *tree = cJSON_Parse(body);
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(tree, "items"), *item;

    cJSON_ArrayForEach (item, items)
        note_reading(capability, item);
    if (tree && !items)
        note_reading(capability, tree);
    cJSON_Delete(tree);
}

void rules_heard(const struct server_request *request, long status, const char *body)
{
    const struct sender sender = sender_of(request);
    g_autofree char *path = evicted_path(request);

    if (sender.capability < 0)
        return;
    if (!path && status == 200 && g_str_equal(request->method, "GET") &&
        strstr(request->url, "/pods"))
        note_reply(sender.capability, body);
    if (!path)
        return;
    g_autofree char *uid = wanted_uid(request);
    if (!is_dry(request))
        rates_heard((enum capability)sender.capability, uid, status);
    else if ((status >= 200 && status < 300) || (status == 429 && sender.capability != STRICT))
        g_hash_table_add(tried, key_of(sender.capability, uid));
}

void rules_changed(const struct server_request *request, const char *path)
{
    const struct sender sender = sender_of(request);
    g_autofree char *evicted = evicted_path(request);

    if (!evicted || is_dry(request) || sender.capability < 0)
        return;
    g_autofree char *uid = wanted_uid(request);
    rates_accepted((enum capability)sender.capability, uid);
    facts_evicted(uid);
}

/* --- preemption -------------------------------------------------------------------------------------- */

void rules_preempts(cJSON *pod, const char *node, const cJSON *victims)
{
    const cJSON *victim;

    cJSON_ArrayForEach (victim, victims) {
        const char *uid = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(victim, "UID"));
        g_autofree char *path = pods_path_of(uid);
        const struct fact *fact = facts_find(uid);
        HOLDS(fact, "preempt names '%s', which never was", uid);
        HOLDS(g_strcmp0(fact->node, node) == 0, "preempt names %s on %s, which is on %s",
              fact->name, node, fact->node);
        if (!path)
            continue;
        HOLDS(!pod_is_mirror(api_get(path)), "preempt names a mirror");
        HOLDS(pod_priority(api_get(path)) < pod_priority(pod),
              "preempt names %s, which is as important", fact->name);
    }
}
