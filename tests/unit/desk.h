/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that come to nodes and go, through the table of dialects, as filter and bind lead them: what
 * is asked is read from the pod, placed, reserved, written into annotations, and what is then held
 * is read from those. Whatever a test did, teardown finds usage to be the sum of its parts.
 */
#include "core/ledger.h"
#include "ledger_end.h"
#include "literals.h"

#include <check.h>
#include <gpuledger/dialect.h>
#include <stdlib.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define SECOND INT64_C(1000000000)
/* 2026-01-01T00:00:00Z */
#define TODAY (INT64_C(1767225600) * SECOND)
#define PATIENCE (30 * SECOND)

static struct ledger *book;
static struct dialect_options options;
static int64_t now_ns;

static inline void setup(void)
{
    book = ledger_new();
    options = (struct dialect_options){0};
    now_ns = TODAY;
}

static inline void teardown(void)
{
    ledger_end(book);
}

/* The node as all dialects together read it; fails the test if none does. */
static inline struct node *desk_node(const struct node_view *view)
{
    g_autoptr(topology) topology = topology_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *warning = NULL;

    ck_assert_msg(dialect_read_topology(view, &options, topology, &warning, &error), "%s",
                  error ? error->message : "no dialect");
    return ledger_set_topology(book, view->name, topology);
}

/* One word of text for each annotation, "KEY=VALUE"; times are left out. */
static inline char *desk_annotations_text(const struct annotations *annotations)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (size_t i = 0; i < annotations->n; i++) {
        if (!g_str_has_suffix(annotations->items[i].key, "-time"))
            g_string_append_printf(text, "%s%s=%s", text->len ? " " : "",
                                   annotations->items[i].key, annotations->items[i].value);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static inline struct allocation *desk_reserve(const struct pod_view *pod, const char *node,
                                              const struct placement *placement)
{
    struct allocation *allocation =
        allocation_new(pod->uid, pod->ns, pod->name, placement->n_shares);
    enum reason reason;

    allocation->dialect = placement->request->dialect;
    allocation->terms = terms_ref(placement->request->terms);
    allocation->waiting = allocation->dialect->in_flight != NULL;
    allocation->match_amount = placement->request->match_amount;
    allocation->assume_time_ns = ++now_ns;
    memcpy(allocation->shares, placement->shares, placement->n_shares * sizeof(struct share));
    allocation_witness(allocation, ledger_node(book, node));
    allocation = ledger_reserve(book, node, allocation, &reason);
    ck_assert_msg(allocation, "what was placed does not fit: %s", reason_info(reason)->code);
    return allocation;
}

static inline int64_t share_bytes(const struct node *node, const struct share *share)
{
    return card_bytes(node, node_share_card(node, share), share->memory);
}

/* The API server's word replaces our own, and says the same. */
static inline void desk_confirm(const struct pod_view *pod, const char *node,
                                const struct annotations *annotations)
{
    struct string_pair pairs[ANNOTATIONS_MAX];
    struct pod_view bound = *pod;
    g_autofree char *warning = NULL;

    for (size_t i = 0; i < annotations->n; i++)
        pairs[i] = (struct string_pair){annotations->items[i].key, annotations->items[i].value};
    bound.annotations = (struct string_pairs){pairs, annotations->n};
    bound.node_name = node;
    struct allocation *seen = dialect_read_allocation(&bound, &options, &warning);
    const struct allocation *ours = ledger_get(book, pod->uid);
    ck_assert_msg(!warning, "%s", warning);
    ck_assert_ptr_eq(seen->dialect, ours->dialect);
    ck_assert_int_eq(seen->distrust, DISTRUST_NONE);
    ck_assert_int_eq(seen->waiting, ours->waiting);
    ck_assert_int_eq(seen->assume_time_ns, ours->waiting ? ours->assume_time_ns : 0);
    ck_assert_int_eq(seen->match_amount, ours->match_amount);
    ck_assert_uint_eq(seen->n_shares, ours->n_shares);
    for (uint32_t i = 0; i < seen->n_shares; i++) {
        ck_assert_int_eq(seen->shares[i].card, ours->shares[i].card);
        ck_assert_int_eq(seen->shares[i].core, ours->shares[i].core);
        ck_assert_int_eq(seen->shares[i].container, ours->shares[i].container);
        ck_assert_int_eq(seen->shares[i].exclusive, ours->shares[i].exclusive);
        ck_assert_int_eq(share_bytes(ours->node, &seen->shares[i]),
                         share_bytes(ours->node, &ours->shares[i]));
    }
    ledger_put(book, node, seen);
}

/* What the row says that every Binding replaces, this one does. */
static inline void desk_check_replaced(const struct dialect *dialect,
                                       const struct annotations *written)
{
    ck_assert_ptr_nonnull(dialect->replaces);
    for (const char *const *key = dialect->replaces; *key; key++) {
        size_t i = 0;
        while (i < written->n && strcmp(written->items[i].key, *key) != 0)
            i++;
        ck_assert_msg(i < written->n, "%s is not written", *key);
    }
}

/* Binds the pod to the node. What was written, or the reason's code, or "wait", or the error. */
static inline char *desk_bind(const struct pod_view *pod, const char *node)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(request) request = dialect_read_request(pod, &options, &error);
    g_auto(annotations) written = {0};
    struct placement placement;
    enum reason reason;

    if (!request)
        return g_strdup(error ? error->message : "nothing");
    struct admission_query query = {
        .request = request,
        .policy = policies,
        .options = &options,
        .now_ns = now_ns,
        .patience_ns = PATIENCE,
    };
    switch (dialect_admit(ledger_node(book, node), &query, &placement, &reason)) {
    case ADMISSION_WAIT:
        return g_strdup("wait");
    case ADMISSION_NO:
        return g_strdup(reason_info(reason)->code);
    case ADMISSION_YES:
        break;
    }
    const struct allocation *allocation = desk_reserve(pod, node, &placement);
    allocation->dialect->write_annotations(allocation, allocation->node, &written);
    desk_check_replaced(allocation->dialect, &written);
    desk_confirm(pod, node, &written);
    return desk_annotations_text(&written);
}

/* Fails the test unless binding says exactly this. */
static inline void desk_expect(const struct pod_view *pod, const char *node, const char *answer)
{
    g_autofree char *found = desk_bind(pod, node);
    ck_assert_str_eq(found, answer);
}
