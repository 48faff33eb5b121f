/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod holds of its node, over random pods, beside an oracle that is told by numbers and follows what
 * Kubernetes publishes: kubernetes/kubernetes v1.36.3, staging/src/k8s.io/component-helpers/resource/helpers.go,
 * PodRequests with UseStatusResources and InPlacePodLevelResourcesVerticalScalingEnabled, as kube-scheduler of that
 * version calls it by default (pkg/scheduler/framework/types.go, pkg/features/kube_features.go). Containers count so
 * since 1.33. Of a pod's own resources the status counts since 1.36; before, by default, the spec alone, and before 1.34
 * not even that. A status that names neither what the pod has nor what is allocated says nothing here, while there an
 * empty one does: kubelet writes none. It reads no pod. tests/e2e/scenarios/resized.py asks kube-scheduler itself.
 */
#include "chance.h"

#include "wire/kubernetes.h"

#include <gpuledger/host.h>
#include <gpuledger/pod_facts.h>
#include <string.h>

#define CONTAINERS_MAX 4
#define RESOURCES 4
#define UNSET (-1)

/* Amounts are in thousandths of a core, in bytes, in bytes and in devices. */
static const char *const resources[RESOURCES] = {"cpu", "memory", "ephemeral-storage",
                                                 "example.com/device"};
static const bool has_level[RESOURCES] = {true, true, false, false};

struct amounts {
    int64_t of[RESOURCES]; /* UNSET: it is not named */
};

struct drawn_container {
    bool sidecar; /* of init containers */
    struct amounts requests, limits;
    bool has_status, has_resources;
    struct amounts actual, allocated;
};

enum condition {
    CONDITION_NONE,
    CONDITION_PROGRESS,
    CONDITION_DEFERRED,
    CONDITION_INFEASIBLE,
    CONDITIONS
};
static const char *const conditions[CONDITIONS] = {
    "",
    "{'type':'PodResizeInProgress','status':'True'}",
    "{'type':'PodResizeInProgress','status':'True','reason':'Infeasible'},"
    "{'type':'PodResizePending','status':'True','reason':'Deferred'}",
    "{'type':'Ready','status':'True'},"
    "{'type':'PodResizePending','status':'True','reason':'Infeasible'}",
};

struct drawn_pod {
    uint32_t n, n_init;
    struct drawn_container containers[CONTAINERS_MAX], init[CONTAINERS_MAX];
    struct amounts overhead, level, level_actual, level_allocated;
    bool level_reported;
    enum condition condition;
};

/* --- drawing ------------------------------------------------------------------------------------ */

static struct amounts draw_amounts(uint32_t percent)
{
    struct amounts amounts;

    for (int r = 0; r < RESOURCES; r++)
        amounts.of[r] = chance_percent(percent) ? chance_between(0, 9) * (r == 0 ? 250 : 1) : UNSET;
    return amounts;
}

static struct drawn_container draw_container(void)
{
    const bool has_status = chance_percent(70), has_resources = has_status && chance_percent(80);

    return (struct drawn_container){
        .sidecar = chance_percent(40),
        .requests = draw_amounts(70),
        .limits = draw_amounts(30),
        .has_status = has_status,
        .has_resources = has_resources,
        .actual = draw_amounts(has_resources ? 80 : 0),
        .allocated = draw_amounts(has_status ? 80 : 0),
    };
}

static void draw_pod(struct drawn_pod *pod)
{
    *pod = (struct drawn_pod){
        .n = 1 + chance_below(CONTAINERS_MAX),
        .n_init = chance_below(CONTAINERS_MAX + 1),
        .overhead = draw_amounts(chance_percent(30) ? 50 : 0),
        .level = draw_amounts(chance_percent(30) ? 70 : 0),
        .condition = (enum condition)chance_below(CONDITIONS),
    };
    pod->level_actual = draw_amounts(chance_percent(50) ? 80 : 0);
    pod->level_allocated = draw_amounts(chance_percent(50) ? 80 : 0);
    pod->level_reported = chance_percent(70);
    for (int r = 0; r < RESOURCES; r++) { /* the API server lets no others through */
        if (!has_level[r])
            pod->level.of[r] = pod->level_actual.of[r] = pod->level_allocated.of[r] = UNSET;
    }
    for (uint32_t i = 0; i < pod->n; i++)
        pod->containers[i] = draw_container();
    for (uint32_t i = 0; i < pod->n_init; i++)
        pod->init[i] = draw_container();
}

/* --- the oracle --------------------------------------------------------------------------------- */

static int64_t or_none(int64_t amount)
{
    return amount == UNSET ? 0 : amount;
}

static int64_t oracle_container(const struct drawn_pod *pod, const struct drawn_container *drawn,
                                bool looks, int r)
{
    /* The API server sets a request to the limit. */
    const int64_t spec =
        drawn->requests.of[r] != UNSET ? drawn->requests.of[r] : or_none(drawn->limits.of[r]);
    int64_t held = MAX(or_none(drawn->actual.of[r]), or_none(drawn->allocated.of[r]));

    if (!looks || !drawn->has_resources)
        return spec;
    if (pod->condition != CONDITION_INFEASIBLE && spec > held)
        held = spec;
    return held;
}

static int64_t oracle(const struct drawn_pod *pod, int r)
{
    int64_t all = 0, restartable = 0, most = 0;

    for (uint32_t i = 0; i < pod->n; i++)
        all += oracle_container(pod, &pod->containers[i], true, r);
    for (uint32_t i = 0; i < pod->n_init; i++) {
        const struct drawn_container *init = &pod->init[i];
        const int64_t own = oracle_container(pod, init, init->sidecar, r);
        int64_t at_once = restartable + own;
        if (init->sidecar) {
            all += own;
            restartable += own;
            at_once = restartable;
        }
        most = MAX(most, at_once);
    }
    all = MAX(all, most);
    if (has_level[r] && pod->level.of[r] != UNSET) {
        const bool infeasible = pod->level_reported && pod->condition == CONDITION_INFEASIBLE;
        int64_t level = infeasible ? UNSET : pod->level.of[r];
        if (pod->level_reported)
            level = MAX(level, MAX(pod->level_actual.of[r], pod->level_allocated.of[r]));
        all = level == UNSET ? all : level;
    }
    return all + or_none(pod->overhead.of[r]);
}

/* --- the pod as the API server has it ----------------------------------------------------------- */

static void write_amounts(GString *text, const char *key, const struct amounts *amounts)
{
    bool first = true;

    g_string_append_printf(text, "'%s':{", key);
    for (int r = 0; r < RESOURCES; r++) {
        if (amounts->of[r] == UNSET)
            continue;
        g_string_append_printf(text, "%s'%s':'%" G_GINT64_FORMAT "%s'", first ? "" : ",",
                               resources[r], amounts->of[r], r == 0 ? "m" : "");
        first = false;
    }
    g_string_append_c(text, '}');
}

static void write_specs(GString *text, const struct drawn_container *all, uint32_t n, bool init)
{
    for (uint32_t i = 0; i < n; i++) {
        g_string_append_printf(text, "%s{'name':'%c%u',", i ? "," : "", init ? 'i' : 'c', i);
        if (init && all[i].sidecar)
            g_string_append(text, "'restartPolicy':'Always',");
        g_string_append(text, "'resources':{");
        write_amounts(text, "requests", &all[i].requests);
        g_string_append_c(text, ',');
        write_amounts(text, "limits", &all[i].limits);
        g_string_append(text, "}}");
    }
}

/* In any order, as kubelet sorts them by name. */
static void write_statuses(GString *text, const struct drawn_container *all, uint32_t n, bool init)
{
    uint32_t order[CONTAINERS_MAX];
    bool first = true;

    chance_order(order, n);
    for (uint32_t k = 0; k < n; k++) {
        const struct drawn_container *one = &all[order[k]];
        if (!one->has_status)
            continue;
        g_string_append_printf(text, "%s{'name':'%c%u',", first ? "" : ",", init ? 'i' : 'c',
                               order[k]);
        first = false;
        write_amounts(text, "allocatedResources", &one->allocated);
        if (one->has_resources) {
            g_string_append(text, ",'resources':{");
            write_amounts(text, "requests", &one->actual);
            g_string_append_c(text, '}');
        }
        g_string_append_c(text, '}');
    }
}

static char *write_pod(const struct drawn_pod *pod)
{
    GString *text = g_string_new("{'metadata':{'name':'p','namespace':'ml','uid':'u'},'spec':{");

    write_amounts(text, "overhead", &pod->overhead);
    g_string_append(text, ",'resources':{");
    write_amounts(text, "requests", &pod->level);
    g_string_append(text, "},'containers':[");
    write_specs(text, pod->containers, pod->n, false);
    g_string_append(text, "],'initContainers':[");
    write_specs(text, pod->init, pod->n_init, true);
    g_string_append_printf(text, "]},'status':{'conditions':[%s],", conditions[pod->condition]);
    if (pod->level_reported) {
        g_string_append(text, "'resources':{");
        write_amounts(text, "requests", &pod->level_actual);
        g_string_append(text, "},");
        write_amounts(text, "allocatedResources", &pod->level_allocated);
        g_string_append_c(text, ',');
    }
    g_string_append(text, "'containerStatuses':[");
    write_statuses(text, pod->containers, pod->n, false);
    g_string_append(text, "],'initContainerStatuses':[");
    write_statuses(text, pod->init, pod->n_init, true);
    g_string_append(text, "]}}");
    g_strdelimit(text->str, "'", '"');
    return g_string_free(text, FALSE);
}

/* --- both --------------------------------------------------------------------------------------- */

static void compare(const struct drawn_pod *drawn, const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    const cJSON *object = json_parse(arena, text, strlen(text), &error);
    struct pod_view pod;

    HOLDS(object && pod_view_decode(arena, object, &pod, &error), "%s: %s", error->message, text);
    g_autoptr(pod_facts) facts = pod_facts_new(&pod);
    const struct host host = host_of_pod(&pod);
    const int64_t found[RESOURCES] = {host.cpu, host.memory,
                                      pod_facts_amount(facts, resources[2]) / 1000,
                                      pod_facts_amount(facts, resources[3]) / 1000};

    HOLDS(host.pods == 1 && !facts->particular, "%s", text);
    for (int r = 0; r < RESOURCES; r++)
        HOLDS(found[r] == oracle(drawn, r),
              "%s: %" G_GINT64_FORMAT " is found, %" G_GINT64_FORMAT " is right, of %s",
              resources[r], found[r], oracle(drawn, r), text);
}

/* What a record says of the pod is read as the pod itself. */
static char *record_of(const char *text)
{
    g_autoptr(json_arena) arena = json_arena_new();
    GString *written = g_string_new(NULL);
    struct json_writer writer;
    struct pod_view pod;

    HOLDS(pod_view_decode(arena, json_parse(arena, text, strlen(text), NULL), &pod, NULL), "%s",
          text);
    json_writer_init(&writer, written);
    pod_view_encode(&writer, &pod);
    return g_string_free(written, FALSE);
}

int main(void)
{
    chance_init("pods hold what Kubernetes says", 20000);
    while (chance_next_event()) {
        struct drawn_pod pod;
        draw_pod(&pod);
        g_autofree char *text = write_pod(&pod), *recorded = record_of(text);
        compare(&pod, text);
        compare(&pod, recorded);
    }
    return 0;
}
