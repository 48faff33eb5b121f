/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bodies of requests while they arrive, and the memory of all of them together.
 *
 * What is too much is read and thrown away, so that the client gets to see the answer; after
 * DISCARD_MAX bytes the connection is cut. When the memory is used up, the body that has been
 * arriving for the longest gives its own up, if it has been for longer than the one that needs
 * more, or if that one is small: a client that sends the better part of its bodies and then stalls
 * takes nothing from those that do not stall. A quarter of the memory is kept for bodies up to
 * BODY_SMALL.
 *
 * A body belongs to its connection's thread; but for body_pool, nothing here is shared.
 */
#include "http/connections.h"

#include <pthread.h>
#include <stdatomic.h>

#define BODY_SMALL ((size_t)1 << 20)
#define BODY_LARGE ((size_t)4 << 20) /* beyond, one is handled at a time */

struct body_pool {
    size_t body_max;              /* bytes of one */
    size_t bodies_max;            /* bytes of all */
    atomic_int_fast64_t large_us; /* when a body beyond BODY_SMALL was given back; 0: none was */
    atomic_size_t held;           /* bytes */
    pthread_mutex_t turn; /* of those beyond BODY_LARGE: what is made of them is larger still */
    struct connections *connections;
};

struct body {
    struct body_pool *pool;
    struct connection *connection;
    pthread_mutex_t lock; /* for the rest until body_complete: others may make it give up */
    unsigned refusal;     /* the status to answer with instead; 0: none */
    uint64_t discarded;
    char *data; /* not terminated */
    size_t length;
    size_t capacity;
};

/* `announced` is what the head says, 0 if it does not. */
void body_init(struct body *body, struct body_pool *pool, struct connection *connection,
               uint64_t announced);

/* Takes a piece, or throws it away; false: the client goes on for too long. */
bool body_append(struct body *body, const char *piece, size_t n);

/* All of it is there: what it holds is its own until body_release. */
void body_complete(struct body *body);

/* Gives the memory back; may be repeated. */
void body_release(struct body *body);

/* After body_release, or without it. */
void body_destroy(struct body *body);
