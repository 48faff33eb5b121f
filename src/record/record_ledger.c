/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger holds, pod by pod, as records have it. */
#include "record/record.h"
#include "store/images/ledger_reader.h"
#include "wire/share.h"

#include <string.h>

/* A pod's text is a piece of what was written, behind its UID. */
struct line {
    size_t uid_at, at, end;
};

struct record_pods {
    GString *text;
    GArray *lines; /* struct line */
};

struct record_pods *record_pods_new(void)
{
    struct record_pods *pods = g_new0(struct record_pods, 1);

    pods->text = g_string_new(NULL);
    pods->lines = g_array_new(FALSE, FALSE, sizeof(struct line));
    return pods;
}

void record_pods_free(struct record_pods *pods)
{
    g_string_free(pods->text, TRUE);
    g_array_unref(pods->lines);
    g_free(pods);
}

static void encode(struct json_writer *writer, const char *node, const struct held_pod *pod)
{
    const struct allocation *allocation = pod->allocation;

    json_begin_object(writer);
    json_key_string(writer, "uid", allocation->uid);
    json_key_string(writer, "node", node);
    if (allocation->dialect)
        json_key_string(writer, "dialect", allocation->dialect->name);
    json_key_int(writer, "state", allocation->state);
    json_key_int(writer, "amount", allocation->match_amount);
    if (allocation->work_class)
        json_key_string(writer, "class", allocation->work_class->name);
    if (pod->quota)
        json_key_string(writer, "quota", pod->quota);
    if (allocation->waiting)
        json_key_bool(writer, "waiting", true);
    json_key_array(writer, "shares");
    for (uint32_t i = 0; i < allocation->n_shares; i++)
        share_encode(writer, &allocation->shares[i]);
    json_end_array(writer);
    json_end_object(writer);
}

void record_pods_add(struct record_pods *pods, const char *node, const struct held_pod *pod)
{
    const char *uid = pod->allocation->uid;
    struct line line = {.uid_at = pods->text->len};
    struct json_writer writer;

    g_string_append_len(pods->text, uid, (gssize)strlen(uid) + 1);
    line.at = pods->text->len;
    json_writer_init(&writer, pods->text);
    encode(&writer, node, pod);
    line.end = pods->text->len;
    g_array_append_val(pods->lines, line);
}

static gint compare_uids(gconstpointer a, gconstpointer b, gpointer text)
{
    const struct line *left = a, *right = b;

    return strcmp((const char *)text + left->uid_at, (const char *)text + right->uid_at);
}

void record_pods_encode(struct json_writer *writer, struct record_pods *pods, const char *node)
{
    const char *text = pods->text->str;

    g_array_sort_with_data(pods->lines, compare_uids, pods->text->str);
    json_begin_object(writer);
    if (node)
        json_key_string(writer, "node", node);
    json_key_array(writer, "pods");
    for (guint i = 0; i < pods->lines->len; i++) {
        const struct line *line = &g_array_index(pods->lines, struct line, i);
        json_raw(writer, text + line->at, line->end - line->at);
    }
    json_end_array(writer);
    json_end_object(writer);
}

struct telling {
    struct record_pods *pods;
    const struct elastic_quotas *quotas;
};

static void add_pod(struct allocation *allocation, void *data)
{
    const struct telling *telling = data;

    record_pods_add(telling->pods, allocation->node->name,
                    &(struct held_pod){allocation, held_quota(telling->quotas, allocation->uid)});
}

void record_ledger_encode(struct json_writer *writer, const struct ledger *ledger, const char *node,
                          const struct elastic_quotas *quotas)
{
    const struct node *one = node ? ledger_node(ledger, node) : NULL;
    g_autoptr(record_pods) pods = record_pods_new();
    struct telling telling = {pods, quotas};

    for (guint i = 0; one && i < one->allocations->len; i++)
        add_pod(g_ptr_array_index(one->allocations, i), &telling);
    if (!node)
        ledger_each(ledger, add_pod, &telling);
    record_pods_encode(writer, pods, node);
}
