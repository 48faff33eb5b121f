/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up part and gate, to show how they are added and to test that nothing else knows of them: once --pods-left
 * pods have started on a node, it gets no more of other namespaces than theirs, until an operator resumes it.
 */
#include "pods_left_section.h"

#include "base/printable.h"
#include "core/ledger.h"
#include "core/section/rows.h"
#include "gate/gate.h"

#include <gpuledger/error.h>

PART_ROW(pods_left, 90);
GATE_ROW(pods_left, 55);

/* --- options -------------------------------------------------------------------------------------- */

#define SETTINGS struct pods_left_settings

/* clang-format off */
static const struct option rows[] = {
    {"pods-left", INT(most, "N", "0", 0, 100), FOR(COMMAND_SERVE),
     .help = "Close a node to other namespaces once N pods have started there. 0: never."},
};
/* clang-format on */

const struct section section_pods_left = {
    .name = "pods_left",
    .title = "A made-up part",
    ROWS(rows),
    .recorded = true,
};

/* --- the part ------------------------------------------------------------------------------------- */

struct pods_left {
    const struct part_base *base; /* NULL: of an image */
    int64_t most;
    GHashTable *nodes; /* name -> struct seen * */
};

struct seen {
    int64_t n;
    char *ns; /* of the last pod */
};

static void seen_free(gpointer data)
{
    g_free(((struct seen *)data)->ns);
    g_free(data);
}

static void *start(const struct part_base *base, const void *settings)
{
    const struct pods_left_settings *given = settings;
    struct pods_left *self = g_new0(struct pods_left, 1);

    self->base = base;
    self->most = given ? given->most : 0;
    self->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, seen_free);
    return self;
}

static void stop(void *of)
{
    g_hash_table_unref(((struct pods_left *)of)->nodes);
    g_free(of);
}

static void put(struct pods_left *self, const char *name, int64_t n, const char *ns)
{
    struct seen *seen = g_new0(struct seen, 1);

    *seen = (struct seen){n, g_strdup(ns)};
    g_hash_table_replace(self->nodes, g_strdup(name), seen);
    if (self->base)
        ledger_mark(self->base->ledger, name, self->base->bit, true);
}

static bool forget(struct pods_left *self, const char *name)
{
    ledger_mark(self->base->ledger, name, self->base->bit, false);
    return g_hash_table_remove(self->nodes, name);
}

static bool pod(void *of, const struct pod_change *change)
{
    struct pods_left *self = of;

    if (self->most == 0 || change->kind != POD_CHANGE_STARTED)
        return false;
    const char *name = change->allocation->node->name;
    const struct seen *seen = g_hash_table_lookup(self->nodes, name);
    put(self, name, seen ? seen->n + 1 : 1, change->allocation->ns);
    return false;
}

static bool node(void *of, const char *name, const struct node_view *view)
{
    return !view && forget(of, name);
}

static bool order(void *of, const char *verb, const char *name)
{
    return g_str_equal(verb, "resume") && forget(of, name);
}

/* All at once: there are few. */
static bool copy(void *of, const void *from, struct part_cursor *at)
{
    GHashTableIter iter;
    gpointer name, seen;

    g_hash_table_iter_init(&iter, ((const struct pods_left *)from)->nodes);
    while (g_hash_table_iter_next(&iter, &name, &seen))
        put(of, name, ((const struct seen *)seen)->n, ((const struct seen *)seen)->ns);
    return false;
}

/* --- records -------------------------------------------------------------------------------------- */

static void *begin(void *of)
{
    struct pods_left *image = start(NULL, NULL);

    copy(image, of, NULL);
    return image;
}

static void encode(struct json_writer *writer, void *image)
{
    g_autoptr(GList) names = g_hash_table_get_keys(((const struct pods_left *)image)->nodes);

    names = g_list_sort(names, (GCompareFunc)g_strcmp0);
    json_begin_object(writer);
    json_key_array(writer, "nodes");
    for (const GList *each = names; each; each = each->next) {
        const struct seen *seen =
            g_hash_table_lookup(((const struct pods_left *)image)->nodes, each->data);
        json_begin_object(writer);
        json_key_string(writer, "node", each->data);
        json_key_int(writer, "n", seen->n);
        json_key_string(writer, "namespace", seen->ns);
        json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
}

static bool learn(void *of, struct json_arena *arena, const cJSON *object, GError **error)
{
    const cJSON *item;

    g_hash_table_remove_all(((struct pods_left *)of)->nodes);
    cJSON_ArrayForEach (item, cJSON_GetObjectItem(object, "nodes")) {
        const cJSON *name = cJSON_GetObjectItem(item, "node"), *n = cJSON_GetObjectItem(item, "n"),
                    *ns = cJSON_GetObjectItem(item, "namespace");
        if (!cJSON_IsString(name) || !cJSON_IsNumber(n) || !cJSON_IsString(ns)) {
            g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                                "field 'nodes': not what is known of started pods");
            return false;
        }
        put(of, name->valuestring, (int64_t)n->valuedouble, ns->valuestring);
    }
    return true;
}

static const struct part_image image = {"pods-left", begin, NULL, encode, stop, learn};

const struct part part_pods_left = {
    .name = "pods_left",
    .source = PART_OF_CALLS,
    .section = &section_pods_left,
    .start = start,
    .stop = stop,
    .copy = copy,
    .pod = pod,
    .node = node,
    .order = order,
    .image = &image,
};

/* --- the gate ------------------------------------------------------------------------------------- */

static const struct gate_reason reasons[] = {
    {"pods_left", "The node has started as many pods as it may for other namespaces", false},
    {NULL},
};

static unsigned shut(const void *of, const struct gate_who *who, const struct node *node)
{
    const struct pods_left *self = of;
    const struct seen *seen = g_hash_table_lookup(self->nodes, node->name);

    return seen && seen->n >= self->most && !g_str_equal(seen->ns, who->ns) ? 1 : 0;
}

static void message(const void *of, const struct gate_who *who, const struct node *node,
                    GString *text)
{
    const struct seen *seen =
        g_hash_table_lookup(((const struct pods_left *)of)->nodes, node->name);

    printable_append(text, "has started %d pods, the last of namespace %s", (int)seen->n, seen->ns);
}

const struct gate gate_pods_left = {
    .name = "pods_left",
    .left_out = GATE_ASKERS(ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED, ASKED,
                            ASKED, ASKED),
    .part = &part_pods_left,
    .reasons = reasons,
    .turn = GATE_AFTER_CARDS,
    .shut = shut,
    .message = message,
};
