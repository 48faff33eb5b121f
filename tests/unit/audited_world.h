/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An extender's world in which things go wrong, and the sentences of its audit. */
#include "audit/audit.h"
#include "world.h"

#include <check.h>
#include <string.h>

#define IDX "ALIYUN_COM_GPU_MEM_IDX"
#define POD "ALIYUN_COM_GPU_MEM_POD"
#define ASSIGNED "ALIYUN_COM_GPU_MEM_ASSIGNED"
#define ASSUME_TIME "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
#define LONG_AGO "1700000000000000000"

static struct world world;
static struct fake_cluster *cluster;

/* "duo" has two cards of 10 units, "mono" one of 10. */
static inline void setup(void)
{
    world_init(&world);
    cluster = world.cluster;
    fake_cluster_put_node(cluster, "duo", 20, 2);
    fake_cluster_put_node(cluster, "mono", 10, 1);
    world_sync(&world);
}

static inline void teardown(void)
{
    world_verify(&world);
    world_release(&world);
}

static inline void add(const char *name, const char *node, int64_t mem, const char *card)
{
    fake_cluster_add_pod(cluster, &(struct fake_pod){
                                      .name = name, .node = node, .mem = mem, .card = card});
}

static inline void add_known(const char *name, const char *node, int64_t mem, const char *card)
{
    add(name, node, mem, card);
    world_catch_up(&world);
}

static inline void annotate(const char *name, const char *key, const char *value)
{
    fake_cluster_annotate(cluster, name, key, value);
    world_catch_up(&world);
}

/* --- reports -------------------------------------------------------------------------------- */

/* What happens while the audit gives the watch its time; NULL: nothing. */
static void (*meanwhile)(void);

static inline bool rest(void *data, int64_t duration_ms)
{
    if (meanwhile)
        meanwhile();
    return true;
}

static const struct audit_options options = {.stuck_ms = 60000, .rest = rest};

static inline char *row_text(const struct audit_row *row)
{
    return g_strdup_printf("%s %s %s | %s | %s\n", audit_cause_info(row->cause)->code,
                           row->name ? row->name : "-", row->node,
                           row->cluster ? row->cluster : "-", row->ledger ? row->ledger : "-");
}

static inline char *rows_text(const struct audit_report *report)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < report->rows->len; i++) {
        g_autofree char *row = row_text(g_ptr_array_index(report->rows, i));
        g_string_append(text, row);
    }
    return g_string_free(text, FALSE);
}

static inline struct audit_report *compare(void)
{
    g_autoptr(GError) error = NULL;
    struct audit_report *report =
        audit_compare(world.store, world.extender.cluster, &options, &error);
    ck_assert_msg(report, "%s", error ? error->message : "");
    ck_assert(report->compared);
    return report;
}

/* One line per row: "cause pod node | cluster | ledger". */
static inline void expect(const char *wanted)
{
    g_autoptr(audit_report) report = compare();
    g_autofree char *rows = rows_text(report);
    ck_assert_msg(g_str_equal(rows, wanted), "got\n%swanted\n%s", rows, wanted);
}
