/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/audit_rows.h"
#include "core/ledger.h"
#include "store/node_walk.h"

#include <string.h>

#define NAMES_SIZE 16384 /* of nodes that are read at a time, mostly */
#define DELETE_POD "delete the pod, so that its controller makes another one"

static const struct audit_cause_info causes[AUDIT_N] = {
    [AUDIT_NONE] = {"none", "", "", false, -1},
    [AUDIT_FOREIGN] = {"foreign",
                       "bound by a scheduler that does not ask gpuledger: no card is written",
                       "configure that scheduler with the extender, then " DELETE_POD, true,
                       POD_EVENT_NO_CARD},
    [AUDIT_LOST] = {"annotation_lost", "the annotation that names its card is gone",
                    "write back what the ledger's side says if it names a card; else " DELETE_POD,
                    true, POD_EVENT_NO_CARD},
    [AUDIT_MALFORMED] = {"annotation_malformed",
                         "the annotation that names its card cannot be read", DELETE_POD, true,
                         POD_EVENT_NO_CARD},
    [AUDIT_EDITED] =
        {"annotation_edited",
         "its annotations are not those that it was bound with: it keeps the card that it "
         "was bound to, which counts",
         "write back what the ledger's side says, or " DELETE_POD, true, POD_EVENT_CARD_CHANGED},
    [AUDIT_UNREAD] =
        {"unreadable",
         "what it asks for cannot be read, or not served: it counts as the most that it "
         "may be",
         "see what the warning says of it, then " DELETE_POD, true, POD_EVENT_UNREAD},
    [AUDIT_UNSEALED] =
        {"unsealed",
         "it was bound while nobody watched, and its seal is missing, not valid or older "
         "than its card: it counts on every card",
         "find out who bound it or took its seal away, then " DELETE_POD, true, POD_EVENT_NO_CARD},
    [AUDIT_MISTAKEN] = {"mistaken",
                        "it runs on what another pod was promised, on a card that is not known: it "
                        "counts on every "
                        "card",
                        DELETE_POD, true, POD_EVENT_NO_CARD},
    [AUDIT_PROMISE] =
        {"promise_stands",
         "its device plugin may give another pod what it was promised, so such pods are refused",
         "let gpuledger patch pods, so that it revokes the promise, or delete the pod", true, -1},
    [AUDIT_CARD_GONE] = {"card_gone", "its card does not exist on the node any more",
                         "see what has happened to the node's cards, then " DELETE_POD, true,
                         POD_EVENT_CARD_GONE},
    [AUDIT_OVERBOOKED] = {"card_overbooked", "it goes beyond what its card has",
                          "find out who placed it, then " DELETE_POD, true, POD_EVENT_OVERBOOKED},
    [AUDIT_UNLIMITED] =
        {"unlimited",
         "a container of it switches its limits off, so that nothing holds it to its part of a "
         "card that others hold, too",
         "leave its limits on, or give it a card of its own: " DELETE_POD, true, -1},
    [AUDIT_CARD_NUMBERS] = {"card_numbers",
                            "its pods name its cards by numbers of two kinds, NVML's and the minor "
                            "number, and nothing says "
                            "how they map: two of them may be on one card",
                            "give the Node the annotation gpuledger.io/card-order", true, -1},
    [AUDIT_COMPANY] =
        {"class_neighbour", "it is on a card with a pod that its class shares none with",
         "see who bound it, or whether the classes have changed since; then delete one of "
         "the two pods",
         true, -1},
    [AUDIT_UNASSIGNED] = {"unassigned", "its node side has not taken it for long",
                          "look at kubelet and the device plugin of the node", true,
                          POD_EVENT_UNASSIGNED},
    [AUDIT_LEFT_OUT] =
        {"left_out", "its kubelet rejects pods that are bound to it, so it is left out",
         "look at kubelet and the device plugin of the node, then run 'gpuledger resume NODE'",
         true, POD_EVENT_LEFT_OUT},
    [AUDIT_GROUP_HALF] =
        {"group_half", "too few pods of its group are bound, for longer than the group's deadline",
         "make room for those that wait, or delete the group's pods, so that its "
         "controller makes it anew",
         true, POD_EVENT_GROUP_HALF},
    [AUDIT_QUOTA_LABEL] =
        {"quota_label", "its label names a quota in which it does not count",
         "name one that is for its namespace, or list the namespace in that quota's annotation "
         "'namespaces'",
         false, POD_EVENT_QUOTA_LABEL},
    [AUDIT_QUOTA_UNKEPT] =
        {"quota_unkept", "a quota cannot be kept, so pods of its namespace are refused",
         "see what the warning says of it; let it limit fewer resources, or delete it", false,
         POD_EVENT_QUOTA_UNKEPT},
    [AUDIT_MISSING] = {"missing", "the ledger lacks it", "restart gpuledger and report this", true,
                       -1},
    [AUDIT_LEFT_OVER] = {"left_over", "the ledger has it, the cluster does not",
                         "restart gpuledger and report this", true, -1},
    [AUDIT_PLACE] = {"place", "the ledger has it on another card or node",
                     "restart gpuledger and report this", true, -1},
    [AUDIT_AMOUNT] = {"amount", "the ledger has it with another amount",
                      "restart gpuledger and report this", true, -1},
    [AUDIT_STALE] = {"stale", "the ledger has an older state of it",
                     "see whether the watch is alive, then report this", true, -1},
    [AUDIT_TOPOLOGY] = {"topology", "the ledger has the node with other cards",
                        "see whether the watch is alive, then report this", true, -1},
    [AUDIT_UNCONFIRMED] = {"unconfirmed", "its bind is under way", "none is needed", false, -1},
};

const struct audit_cause_info *audit_cause_info(enum audit_cause cause)
{
    return &causes[(unsigned)cause < AUDIT_N ? cause : AUDIT_NONE];
}

/* --- texts ---------------------------------------------------------------------------------- */

char *audit_bytes(int64_t bytes, int64_t memory_unit)
{
    static const struct {
        int64_t unit;
        const char *suffix;
    } units[] = {{INT64_C(1) << 20, "MiB"}, {INT64_C(1) << 30, "GiB"}};
    size_t i = 0;

    while (i + 1 < G_N_ELEMENTS(units) && memory_unit > units[i].unit)
        i++;
    return g_strdup_printf("%" G_GINT64_FORMAT "%s", bytes / units[i].unit, units[i].suffix);
}

char *audit_holding(const struct allocation *allocation, int64_t memory_unit)
{
    GString *text = g_string_new(NULL);
    uint32_t n = allocation->n_shares;
    /* Of whom nothing counts, what it asks for. */
    const struct share *shares = n > 0 ? allocation->shares : allocation_known(allocation, &n);

    for (uint32_t i = 0; i < n; i++) {
        const struct share *share = &shares[i];

        g_string_append(text, i ? "; " : "");
        if (share->device) {
            g_string_append_printf(text, "%d of %s", share->devices, share->device);
            continue;
        }
        if (share->card == CARD_UNKNOWN)
            g_string_append(text, "no card, ");
        else
            g_string_append_printf(text, "card %d, ", share->card);
        if (share->memory.kind == AMOUNT_NODE_UNITS && memory_unit <= 1) {
            g_string_append_printf(text, "%" G_GINT64_FORMAT " units", share->memory.value);
        } else {
            g_autofree char *size =
                audit_bytes(amount_bytes(share->memory, memory_unit), memory_unit);
            g_string_append(text, size);
        }
        if (share->core > 0)
            g_string_append_printf(text, ", %d.%d %% core", share->core / 10, share->core % 10);
    }
    return g_string_free(text, FALSE);
}

static void add_name(const struct node *node, void *data)
{
    if (node->present || node->allocations->len > 0)
        g_string_append_len(data, node->name, (gssize)strlen(node->name) + 1);
}

/* What is kept of a step is taken from the heap when the lock is free again. */
GPtrArray *audit_node_names(struct store *store)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) step = g_string_sized_new(NAMES_SIZE);
    struct node_walk walk;

    node_walk_init(&walk, store);
    while (node_walk_step(&walk, add_name, step)) {
        for (gsize at = 0; at < step->len; at += strlen(step->str + at) + 1)
            g_ptr_array_add(names, g_strdup(step->str + at));
        g_string_truncate(step, 0);
    }
    return names;
}

/* --- reports -------------------------------------------------------------------------------- */

static void row_free(gpointer data)
{
    struct audit_row *row = data;
    g_free(row->ns);
    g_free(row->name);
    g_free(row->uid);
    g_free(row->node);
    g_free(row->cluster);
    g_free(row->ledger);
    g_free(row);
}

struct audit_report *audit_report_new(void)
{
    struct audit_report *report = g_new0(struct audit_report, 1);
    report->rows = g_ptr_array_new_with_free_func(row_free);
    return report;
}

void audit_report_free(struct audit_report *report)
{
    if (!report)
        return;
    g_ptr_array_unref(report->rows);
    g_free(report);
}

void audit_report_count(struct audit_report *report, enum audit_cause cause)
{
    report->counts[cause]++;
}

void audit_report_add(struct audit_report *report, const struct audit_finding *finding)
{
    const struct allocation *pod = finding->pod;

    report->counts[finding->cause]++;
    if (report->rows->len == AUDIT_ROWS_MAX) {
        g_free(finding->take_cluster);
        g_free(finding->take_ledger);
        return;
    }
    struct audit_row *row = g_new0(struct audit_row, 1);
    row->cause = finding->cause;
    row->ns = pod ? g_strdup(pod->ns) : NULL;
    row->name = pod ? g_strdup(pod->name) : NULL;
    row->uid = pod ? g_strdup(pod->uid) : NULL;
    row->node = g_strdup(finding->node);
    row->cluster = finding->take_cluster;
    row->ledger = finding->take_ledger;
    g_ptr_array_add(report->rows, row);
}

static gint compare_rows(gconstpointer a, gconstpointer b)
{
    const struct audit_row *left = *(const struct audit_row *const *)a;
    const struct audit_row *right = *(const struct audit_row *const *)b;
    int order = (int)left->cause - (int)right->cause;

    if (!order)
        order = g_strcmp0(left->ns, right->ns);
    if (!order)
        order = g_strcmp0(left->name, right->name);
    return order ? order : g_strcmp0(left->node, right->node);
}

void audit_report_finish(struct audit_report *report, int64_t began_ms)
{
    g_ptr_array_sort(report->rows, compare_rows);
    report->finished_us = g_get_real_time();
    report->took_ms = g_get_monotonic_time() / 1000 - began_ms;
}

size_t audit_report_differences(const struct audit_report *report)
{
    size_t n = 0;

    for (int cause = 0; cause < AUDIT_N; cause++)
        n += causes[cause].difference ? report->counts[cause] : 0;
    return n;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static void encode_causes(struct json_writer *writer, const struct audit_report *report)
{
    json_begin_array(writer);
    for (int cause = AUDIT_NONE + 1; cause < AUDIT_N; cause++) {
        json_begin_object(writer);
        json_key_string(writer, "cause", causes[cause].code);
        json_key_int(writer, "count", (int64_t)report->counts[cause]);
        json_key_bool(writer, "difference", causes[cause].difference);
        json_key_string(writer, "text", causes[cause].text);
        json_key_string(writer, "advice", causes[cause].advice);
        json_end_object(writer);
    }
    json_end_array(writer);
}

static void encode_row(struct json_writer *writer, const struct audit_row *row)
{
    json_begin_object(writer);
    json_key_string(writer, "cause", causes[row->cause].code);
    json_key_string(writer, "namespace", row->ns);
    json_key_string(writer, "name", row->name);
    json_key_string(writer, "uid", row->uid);
    json_key_string(writer, "node", row->node);
    json_key_string(writer, "cluster", row->cluster);
    json_key_string(writer, "ledger", row->ledger);
    json_end_object(writer);
}

void audit_report_encode(struct json_writer *writer, const struct audit_report *report)
{
    g_autofree char *finished = micro_time_format(report->finished_us);
    size_t found = 0;

    for (int cause = 0; cause < AUDIT_N; cause++)
        found += report->counts[cause];
    json_begin_object(writer);
    json_key_string(writer, "finished", finished);
    json_key_int(writer, "durationMs", report->took_ms);
    json_key_bool(writer, "compared", report->compared);
    json_key_int(writer, "nodes", (int64_t)report->nodes);
    json_key_int(writer, "pods", (int64_t)report->pods);
    json_key_int(writer, "differences", (int64_t)audit_report_differences(report));
    json_key_int(writer, "unchecked", (int64_t)report->unchecked);
    json_key(writer, "causes");
    encode_causes(writer, report);
    json_key_array(writer, "rows");
    for (guint i = 0; i < report->rows->len; i++)
        encode_row(writer, g_ptr_array_index(report->rows, i));
    json_end_array(writer);
    json_key_int(writer, "omitted", (int64_t)(found - report->rows->len));
    json_end_object(writer);
}
