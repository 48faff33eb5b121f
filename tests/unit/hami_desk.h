/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A node with a Tesla T4 of 10,000 MiB and an A30 of 20,000, and pods that come to it. Whatever a
 * test did, teardown finds usage to be the sum of its parts.
 */
#include "hami_words.h"
#include "ledger_end.h"

#include <check.h>
#include <gpuledger/error.h>
#include <string.h>

static const struct dialect_options options;

static inline const struct dialect *row(const char *name)
{
    const struct dialect *found = dialect_find(name);
    ck_assert_ptr_nonnull(found);
    return found;
}

static inline bool read_topology(const char *dialect, const char *key, const char *text,
                                 const char *allocatable, const char *cordoned,
                                 struct topology *topology, GError **error)
{
    g_autofree char *warning = NULL;
    const bool volcano = g_str_equal(dialect, "volcano-vgpu");
    struct node_view view = {
        .name = "n1",
        .annotations = PAIRS({key, text}, {"hami.io/device-cordon", cordoned}),
        .allocatable = PAIRS({volcano ? VGPU : GPU, allocatable}),
    };
    return row(dialect)->read_topology(&view, &options, topology, &warning, error);
}

static struct ledger *book;
static struct node *node;

static inline void setup(void)
{
    g_autoptr(topology) topology = topology_new();

    book = ledger_new();
    ck_assert(read_topology("hami", REGISTERED,
                            "GPU-a,10,10000,100,NVIDIA-Tesla T4,0,true,0,hami-core:"
                            "GPU-b,10,20000,100,NVIDIA-NVIDIA A30,1,true,1,hami-core:",
                            "20", "", topology, NULL));
    node = ledger_set_topology(book, "n1", topology);
}

static inline void teardown(void)
{
    ledger_end(book);
}

static inline enum reason place(const struct pod_view *view, struct placement *placement)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(view, &options, &error);
    struct placement scratch;
    enum reason reason;

    ck_assert_msg(request != NULL, "%s", error ? error->message : "no request");
    const struct admission_query query = {
        .request = request, .policy = policies, .options = &options, .patience_ns = INT64_MAX};
    const enum admission admission =
        dialect_admit(node, &query, placement ? placement : &scratch, &reason);
    ck_assert_int_ne(admission, ADMISSION_WAIT);
    return admission == ADMISSION_YES ? REASON_NONE : reason;
}

/* A pod of one container, with the limits that the text has: "UUID,NVIDIA,MiB,percent:;". */
static inline void hold(const char *uid, const char *text, const char *phase)
{
    g_auto(GStrv) fields = g_strsplit(text, ",", 4);
    g_autofree char *cores = g_strndup(fields[3], strcspn(fields[3], ":"));
    struct pod_view view = {
        .ns = "ml", .name = uid, .uid = uid, .node_name = "n1", .phase = "Pending",
        .annotations = PAIRS({ALLOCATED, text}, {"hami.io/bind-phase", phase}),
        CONTAINERS(WITH({GPU, "1"}, {MEM, fields[2]}, {CORES, cores})),
    };
    ledger_put(book, "n1", dialect_read_allocation(&view, &options, NULL));
}

#define POD(...)                                                                                   \
    (struct pod_view) { .ns = "ml", .name = "p", .uid = "p", CONTAINERS(__VA_ARGS__) }
