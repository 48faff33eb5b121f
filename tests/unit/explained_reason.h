/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A node, what is on it, a pod, and what explain says of the node: a row of a table for each reason. */
#include "dialect/classes/classes.h"
#include "explained_cluster.h"
#include "gate/gate.h"

#define T4 "GPU-a,4,10240,100,Tesla T4,0,true:GPU-b,4,10240,100,Tesla T4,0,true:"
#define ON_HAMI(devices)                                                                           \
    "'hami.io/vgpu-node':'n','hami.io/bind-phase':'success',"                                      \
    "'hami.io/vgpu-devices-allocated':'" devices "'"
#define HAMI(cards, more)                                                                          \
    {"n", .annotations = "'" REGISTER "':'" cards "'" more, .amounts = "'nvidia.com/gpu':'8'"}
#define VGPU(memory, cores)                                                                        \
    "'nvidia.com/gpu':'1','nvidia.com/gpumem':'" memory "','nvidia.com/gpucores':'" cores "'"
#define WHOLE(n) "'nvidia.com/gpu':'" n "'"

struct said_object {
    enum feed feed;
    const char *json;
};

struct explained_reason {
    struct said_node node;
    struct said_pod holders[3];
    struct said_object objects[2];
    struct said_pod pod;
    struct store_options options;
    const char *classes; /* as --classes has them */
    enum reason reason;
    const char *rule; /* the reason by its code, where it is a gate's */
    const char *why;  /* of the node */
};

static struct classes *classes;

static inline void end_classes(void)
{
    end();
    g_clear_pointer(&classes, classes_free);
}

static inline void begin_classes(const char *text, struct store_options options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree char *json = json_of(text);

    classes = classes_read(json_parse(arena, json, strlen(json), NULL), &error);
    ck_assert_msg(classes, "%s", error ? error->message : "");
    options.dialects.classes = classes;
    begin_with(options);
}

static inline void expect_reason(const struct explained_reason *row)
{
    if (row->classes)
        begin_classes(row->classes, row->options);
    else
        begin_with(row->options);
    add_node(row->node);
    for (size_t i = 0; i < G_N_ELEMENTS(row->objects) && row->objects[i].json; i++)
        feed(row->objects[i].feed, false, "%s", row->objects[i].json);
    for (size_t i = 0; i < G_N_ELEMENTS(row->holders) && row->holders[i].name; i++)
        add_pod(row->holders[i]);
    add_pod(row->pod);
    g_autofree char *key =
        g_strdup_printf("%s/%s", row->pod.ns ? row->pod.ns : "ml", row->pod.name);
    g_autoptr(explanation) explanation = explain(key);
    ck_assert_msg(!explanation->failure, "%s", explanation->failure);
    const struct explained_node *node = explained(explanation, row->node.name);
    const enum reason reason = row->rule ? gate_reason_find(row->rule) : row->reason;
    ck_assert_msg(node->reason == reason, "%s: %s", reason_info(node->reason)->code, node->why);
    expect_text(node->why, row->why);
}
