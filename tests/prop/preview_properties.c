/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The preview of preemption names those that kube-scheduler ends, with a GPU or without, by an oracle of
 * kubernetes/kubernetes v1.36.3, pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
 * (SelectVictimsOnNode, filterPodsWithPDBViolation), which adds all up anew at each step. The node has one card, so that
 * what suffices in sum suffices; and the verb leaves what kube-scheduler names where the pod has an affinity.
 */
#include "chance.h"

#include "../unit/explained_cluster.h"
#include "../unit/suite.h"

#include "wire/constraints.h"

#include <gpuledger/dialect.h>

#define PODS_MAX 7
#define UNITS 10
#define FPGAS 10
#define BUDGETS 2
#define STARTS 3
#define NOT_YET STARTS
#define AFFINITY "'affinity':{'podAntiAffinity':{}},"

struct amounts {
    int64_t cpu, memory, units, fpgas; /* cpu in thousandths, memory in GiB */
};

struct drawn_pod {
    char name[4];
    struct amounts amounts;
    int64_t priority;
    int64_t started_s; /* NOT_YET: kubelet has not admitted it */
    uint32_t budget;   /* BUDGETS: none */
    bool violates, ends;
};

struct scene {
    struct amounts node;
    int64_t places, allowed[BUDGETS];
    uint32_t n;
    struct drawn_pod pods[PODS_MAX], asking;
    bool has_affinity;
};

/* --- drawing -------------------------------------------------------------------------------- */

static struct amounts draw_amounts(bool gpu, int64_t units_left)
{
    return (struct amounts){
        .cpu = chance_percent(80) ? chance_between(1, 8) * 250 : 0,
        .memory = chance_percent(30) ? chance_between(1, 4) : 0,
        .units = gpu ? chance_between(1, MIN(units_left, 4)) : 0,
        .fpgas = chance_percent(20) ? chance_between(1, 4) : 0,
    };
}

static void draw(struct scene *scene)
{
    int64_t units_left = UNITS;

    *scene = (struct scene){
        .node = {chance_between(4, 16) * 250, chance_between(4, 10), UNITS, FPGAS},
        .n = chance_below(PODS_MAX + 1),
        .has_affinity = chance_percent(70),
    };
    scene->places = chance_percent(30) ? MAX(scene->n, 1) : 110;
    for (int i = 0; i < BUDGETS; i++)
        scene->allowed[i] = chance_between(0, 2);
    for (uint32_t i = 0; i < scene->n; i++) {
        struct drawn_pod *pod = &scene->pods[i];
        g_snprintf(pod->name, sizeof pod->name, "p%u", i);
        pod->amounts = draw_amounts(chance_percent(40) && units_left > 0, units_left);
        units_left -= pod->amounts.units;
        pod->priority = chance_between(0, 4);
        pod->started_s = chance_between(0, NOT_YET);
        pod->budget = chance_percent(40) ? chance_below(BUDGETS) : BUDGETS;
    }
    scene->asking = (struct drawn_pod){.name = "ask", .priority = chance_between(1, 4)};
    scene->asking.amounts = draw_amounts(true, UNITS);
}

static char *container_of(const struct amounts *amounts)
{
    GString *text = g_string_new("{'name':'main','resources':{'requests':{'x':'0'");

    if (amounts->cpu > 0)
        g_string_append_printf(text, ",'cpu':'%" G_GINT64_FORMAT "m'", amounts->cpu);
    if (amounts->memory > 0)
        g_string_append_printf(text, ",'memory':'%" G_GINT64_FORMAT "Gi'", amounts->memory);
    g_string_append(text, "},'limits':{'x':'0'");
    if (amounts->units > 0)
        g_string_append_printf(text, ",'" MEM "':'%" G_GINT64_FORMAT "'", amounts->units);
    if (amounts->fpgas > 0)
        g_string_append_printf(text, ",'example.com/fpga':'%" G_GINT64_FORMAT "'", amounts->fpgas);
    g_string_append(text, "}}}");
    return g_string_free(text, FALSE);
}

static void write_scene(const struct scene *scene)
{
    g_autofree char *node =
        g_strdup_printf(MONO ",'cpu':'%" G_GINT64_FORMAT "m','memory':'%" G_GINT64_FORMAT
                             "Gi','pods':'%" G_GINT64_FORMAT "','example.com/fpga':'%d'",
                        scene->node.cpu, scene->node.memory, scene->places, FPGAS);

    begin();
    add_node((struct said_node){"n", .amounts = node});
    for (uint32_t i = 0; i < BUDGETS; i++)
        feed(FEED_BUDGETS, false,
             "{'metadata':{'name':'b%u','namespace':'ml','uid':'b%u'},'spec':{'selector':{'"
             "matchLabels':"
             "{'budget':'%u'}}},'status':{'disruptionsAllowed':%" G_GINT64_FORMAT "}}",
             i, i, i, scene->allowed[i]);
    for (uint32_t i = 0; i < scene->n; i++) {
        const struct drawn_pod *pod = &scene->pods[i];
        g_autofree char *container = container_of(&pod->amounts);
        g_autofree char *start =
            pod->started_s == NOT_YET
                ? NULL
                : g_strdup_printf("'startTime':'2026-01-01T00:00:0%" G_GINT64_FORMAT "Z',",
                                  pod->started_s);
        g_autofree char *label = g_strdup_printf("'budget':'%u'", pod->budget);
        add_pod((struct said_pod){pod->name, .node = "n", .containers = container, .labels = label,
                                  .priority = pod->priority, .status = start,
                                  .annotations = pod->amounts.units > 0
                                                     ? "'ALIYUN_COM_GPU_MEM_IDX':'0',"
                                                       "'ALIYUN_COM_GPU_MEM_ASSIGNED':'true'"
                                                     : NULL});
    }
    g_autofree char *container = container_of(&scene->asking.amounts);
    add_pod((struct said_pod){scene->asking.name, .containers = container,
                              .priority = scene->asking.priority,
                              .spec = scene->has_affinity ? AFFINITY : NULL});
}

/* --- the oracle ----------------------------------------------------------------------------- */

static bool fits(const struct scene *scene)
{
    const struct amounts *asked = &scene->asking.amounts, *all = &scene->node;
    struct amounts sum = *asked;
    int64_t n = 1;

    for (uint32_t i = 0; i < scene->n; i++) {
        const struct amounts *one = &scene->pods[i].amounts;
        if (scene->pods[i].ends)
            continue;
        sum.cpu += one->cpu;
        sum.memory += one->memory;
        sum.units += one->units;
        sum.fpgas += one->fpgas;
        n++;
    }
    return n <= scene->places && (asked->cpu == 0 || sum.cpu <= all->cpu) &&
           (asked->memory == 0 || sum.memory <= all->memory) && sum.units <= all->units &&
           (asked->fpgas == 0 || sum.fpgas <= all->fpgas);
}

/* Those that end, by `ends`. Of equal priorities the first to start is the most important one; all have been created at
 * once, so of equal starts the order is that of names. */
static void select_victims(struct scene *scene)
{
    uint32_t order[PODS_MAX], n = 0;
    int64_t left[BUDGETS];

    for (int64_t priority = scene->asking.priority - 1; priority >= 0; priority--) {
        for (int64_t start = 0; start <= NOT_YET; start++) {
            for (uint32_t i = 0; i < scene->n; i++) {
                if (scene->pods[i].priority == priority && scene->pods[i].started_s == start)
                    order[n++] = i;
            }
        }
    }
    memcpy(left, scene->allowed, sizeof left);
    for (uint32_t i = 0; i < n; i++) {
        struct drawn_pod *pod = &scene->pods[order[i]];
        pod->ends = true;
        pod->violates = pod->budget < BUDGETS && --left[pod->budget] < 0;
    }
    const bool possible = fits(scene);
    for (uint32_t i = 0; i < 2 * n; i++) {
        struct drawn_pod *pod = &scene->pods[order[i % n]];
        if (possible && pod->violates != (i < n))
            continue;
        pod->ends = false;
        pod->ends = possible && !fits(scene);
    }
}

/* --- the comparison ------------------------------------------------------------------------- */

static struct preview *preview_of(void)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(store) copy = store_copy(told);
    struct budgets *budgets = budgets_copy((store_lock(told), store_budgets(told)));
    struct pod_view view;
    struct moment moment;

    store_unlock(told);
    read_pod(arena, g_hash_table_lookup(pods, "ml/ask"), &view);
    HOLDS(constraints_decode(arena, &view, NULL), "the pod can be read");
    g_autoptr(request) request = dialect_read_request(&view, &store_options(copy)->dialects, NULL);
    HOLDS(request, "it asks for a GPU");
    store_decide(copy, &moment);
    struct preview *preview = preview_find(&(struct preview_query){.copy = copy,
                                                                   .cluster = &cluster,
                                                                   .budgets = budgets,
                                                                   .pod = &view,
                                                                   .request = request,
                                                                   .moment = &moment});
    store_unlock(copy);
    budgets_free(budgets);
    return preview;
}

static bool names(const struct preview *preview, const char *name)
{
    for (guint i = 0; i < preview->pods->len; i++) {
        if (g_str_equal(g_array_index(preview->pods, struct evicted_pod, i).name, name))
            return true;
    }
    return false;
}

static void compare(struct scene *scene)
{
    struct preview *preview = preview_of();
    uint32_t n = 0, violations = 0;

    select_victims(scene);
    for (uint32_t i = 0; i < scene->n; i++) {
        struct drawn_pod *pod = &scene->pods[i];
        const bool named = names(preview, pod->name);
        n += pod->ends;
        violations += pod->ends && pod->violates;
        if (scene->has_affinity || pod->amounts.units == 0)
            HOLDS(named == pod->ends, "%s is %s, preview: %s", pod->name,
                  pod->ends ? "named" : "spared", preview->why ? preview->why : "");
        pod->ends = named;
    }
    HOLDS((n > 0) == (preview->node != NULL), "%u pods are named, preview: %s", n,
          preview->why ? preview->why : "");
    HOLDS(n == 0 || fits(scene), "without the pods that are named it fits");
    HOLDS(!scene->has_affinity || preview->violations == violations,
          "%" G_GINT64_FORMAT " violations, %u expected", preview->violations, violations);
    preview_free(preview);
}

/* What the cluster of unit tests asserts, a suite of them reports. */
START_TEST(all)
{
    while (chance_next_event()) {
        struct scene scene;
        draw(&scene);
        write_scene(&scene);
        compare(&scene);
    }
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("preview");
    TCase *tests = tcase_create("preview");

    chance_init("the preview names those that kube-scheduler ends", 2000);
    tcase_set_timeout(tests, 0);
    tcase_add_test(tests, all);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
