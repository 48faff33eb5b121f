/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is a trace's file of nodes or of pods, or an error that says in which line; what is read
 * is within bounds, and becomes objects that the verbs can read. The first byte chooses the file.
 */
#include "target.h"

#include "simulate/scenario.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>
#include <string.h>

static void check_nodes(const struct trace *trace)
{
    for (guint i = 0; i < trace->nodes->len; i++) {
        const struct trace_node *node = &g_array_index(trace->nodes, struct trace_node, i);
        FUZZ_CHECK(*node->name && strlen(node->name) <= TRACE_TEXT_MAX);
        FUZZ_CHECK(strlen(node->model) <= TRACE_TEXT_MAX);
        FUZZ_CHECK(node->cards >= 0 && node->cards <= NODE_CARDS_MAX);
        FUZZ_CHECK(node->cpu_milli >= 0 && node->memory_mib >= 0);
    }
}

static void check_pods(const struct trace *trace)
{
    for (guint i = 0; i < trace->pods->len; i++) {
        const struct trace_pod *pod = &g_array_index(trace->pods, struct trace_pod, i);
        FUZZ_CHECK(*pod->name && strlen(pod->models) <= TRACE_TEXT_MAX);
        FUZZ_CHECK(pod->cards >= 0 && pod->cards <= REQUEST_ASKS_MAX);
        FUZZ_CHECK(pod->cards < 2 || pod->card_milli == CORE_WHOLE);
        FUZZ_CHECK(pod->cards != 1 || (pod->card_milli > 0 && pod->card_milli % 10 == 0));
    }
}

/* Each as the API server would have it. */
static void check_objects(const struct trace *trace)
{
    g_autoptr(scenario) scenario = scenario_new();
    g_autoptr(json_arena) arena = json_arena_new();

    scenario_add_trace(scenario, trace);
    for (guint i = 0; i < scenario->nodes->len; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        struct node_view view;
        manifest_write(scenario->nodes->pdata[i], FEED_NODES, NULL, NULL, text);
        const cJSON *object = json_parse(arena, text->str, text->len, NULL);
        FUZZ_CHECK(object && node_view_decode(arena, object, &view, NULL));
    }
    for (guint i = 0; i < scenario->arrivals->len; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        struct pod_view view;
        manifest_write(scenario->arrivals->pdata[i], FEED_PODS, NULL, "u", text);
        const cJSON *object = json_parse(arena, text->str, text->len, NULL);
        FUZZ_CHECK(object && pod_view_decode(arena, object, &view, NULL));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(trace) trace = trace_new();
    g_autoptr(GError) error = NULL;

    if (size == 0)
        return 0;
    const bool read = (*data % 2 ? trace_read_pods : trace_read_nodes)(
        trace, (const char *)data + 1, size - 1, &error);
    FUZZ_CHECK(read == !error);
    if (error)
        FUZZ_CHECK(g_str_has_prefix(error->message, "line ") ||
                   g_str_equal(error->message, "the file is empty"));
    check_nodes(trace);
    check_pods(trace);
    check_objects(trace);
    return 0;
}
