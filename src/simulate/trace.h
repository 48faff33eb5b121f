/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * GPU traces as published: one CSV file of nodes, one of pods. The first line names the columns, in
 * any order; columns that are not listed here are passed over.
 *
 * Source of the columns: alibaba/clusterdata 7a6c496, cluster-trace-gpu-v2023.
 *
 * Pure: the caller reads the files. An error says line and column and what is accepted there; the
 * caller adds the file's name.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define TRACE_SIZE_MAX ((size_t)64 << 20) /* bytes of a file */
#define TRACE_ROWS_MAX 1000000
#define TRACE_NODES_MAX 50000
#define TRACE_COLUMNS_MAX 64
#define TRACE_TEXT_MAX 253 /* bytes of a name or a list of models */

struct trace_node {
    const char *name;  /* sn, or name */
    const char *model; /* of its cards; "": not told */
    int64_t cpu_milli;
    int64_t memory_mib;
    int64_t cards; /* gpu */
};

struct trace_pod {
    const char *name;
    const char *priority_class; /* these three "": not told */
    const char *replica_of, *group;
    int64_t priority;
    int64_t group_min;  /* pods of the group that come together; 0: all of them */
    const char *models; /* gpu_spec: accepted ones, separated by '|'; "": any */
    int64_t cpu_milli;
    int64_t memory_mib;
    int64_t cards;      /* num_gpu */
    int64_t card_milli; /* gpu_milli: thousandths of each card; 1000 unless it is one card */
};

struct trace {
    GArray *nodes; /* struct trace_node; strings live as long as the trace */
    GArray *pods;  /* struct trace_pod */
    GStringChunk *strings;
};

struct trace *trace_new(void);
void trace_free(struct trace *trace); /* NULL is ignored */
typedef struct trace trace;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(trace, trace_free)

/* Append what the text says. After an error the trace may hold some of it. */
bool trace_read_nodes(struct trace *trace, const char *text, size_t length, GError **error);
bool trace_read_pods(struct trace *trace, const char *text, size_t length, GError **error);
