/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod asks of the cards of one node, in terms that every dialect shares.
 */
#include <gpuledger/names.h>
#include <gpuledger/host.h>

#include <gpuledger/terms.h>

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)

struct dialect;

#define CORE_WHOLE 1000 /* a whole card's compute, in thousandths */

/* Memory as the pod states it. Some dialects count in a unit that only the node knows, some in
 * parts of whatever card it will be. */
enum amount_kind {
    AMOUNT_BYTES,
    AMOUNT_NODE_UNITS,  /* multiples of struct topology.memory_unit */
    AMOUNT_THOUSANDTHS, /* of the card's memory */
};

struct amount {
    int64_t value;
    enum amount_kind kind;
    int64_t
        at_least; /* bytes that it comes to on a card that has them; of what a pod holds alone */
};

/* One container's wish (or the pod's as a whole): the same amount on each of `count` different
 * cards; or, if `device` is set, `count` devices of a pool (ledger.h), and nothing else. */
struct card_ask {
    struct amount memory; /* per card */
    int32_t container;    /* position in pod_view.containers, CONTAINER_POD for the pod as a whole */
    int32_t count;        /* different cards, at least 1 */
    int32_t core;         /* thousandths of each card */
    bool exclusive;       /* tolerates no other holder on its cards */
    bool unlimited;       /* nothing holds the container to `part`: of a card that is not cut it may
                           * take all memory, which `memory` says */
    struct amount
        part; /* where that is so, what it asks for; an instance of a cut card has so much */
    bool init;            /* of a plain init container, which ends before the others begin */
    bool sidecar;         /* of an init container that goes on beside those that come after it */
    const char *device;   /* the pool's resource; lives in the request's terms or for ever */
};

#define CONTAINER_POD (-1)
#define REQUEST_ASKS_MAX 64

enum request_trait {
    REQUEST_SEVERAL_GPU_CONTAINERS = 1 << 0,
    REQUEST_GPU_INIT_CONTAINER = 1 << 1,
};

struct request {
    const struct dialect *dialect;
    struct terms *terms;         /* terms.h; NULL: none */
    struct request *alternative; /* the same resources as another dialect reads them, or NULL */
    uint32_t traits;             /* enum request_trait */
    enum isolation isolation;    /* of the holders of one card, by the node side */
    uint32_t n_asks;
    struct host host;     /* of the pod as a whole */
    int64_t lasts_s;      /* after so many seconds on a node it has ended; 0: nobody knows */
    int64_t annotations;  /* bytes of the pod's that a Binding leaves (dialect.h); 0: not many */
    int64_t match_amount; /* by what the node side tells its waiting pods apart, dialect's units */
    struct card_ask asks[];
};

/* An empty request of `n_asks` zeroed asks; free with request_free, which frees its alternatives
 * too and lets go of the terms. A duplicate shares the terms. */
struct request *request_new(const struct dialect *dialect, size_t n_asks);
struct request *request_dup(const struct request *request);
void request_free(struct request *request);

/* The same wish: whatever is asked about the one has the same answer for the other. */
bool request_equal(const struct request *a, const struct request *b);
typedef struct request request; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(request, request_free)

#pragma GCC visibility pop
