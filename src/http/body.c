/* SPDX-License-Identifier: Apache-2.0 */
#include "http/body.h"

#include "http/server.h"

#include <microhttpd.h>
#include <string.h>

#define CHUNKED_CAPACITY ((size_t)16 << 10)
#define OFFER_FROM ((size_t)64 << 10) /* less is not worth asking for */

void body_release(struct body *body)
{
    if (body->length > BODY_SMALL)
        atomic_store(&body->pool->large_us, g_get_monotonic_time());
    g_free(body->data);
    atomic_fetch_sub(&body->pool->held, body->length);
    body->data = NULL;
    body->length = 0;
    body->capacity = 0;
}

static void refuse(struct body *body, unsigned status)
{
    body_release(body);
    body->refusal = status;
}

static void give_up(void *data)
{
    struct body *body = data;

    pthread_mutex_lock(&body->lock);
    refuse(body, MHD_HTTP_SERVICE_UNAVAILABLE);
    pthread_mutex_unlock(&body->lock);
}

/* Books `n` more bytes for a body of `size` with them. */
static bool pool_take(struct body_pool *pool, size_t size, size_t n)
{
    size_t max = size > BODY_SMALL ? pool->bodies_max / 4 * 3 : pool->bodies_max;
    size_t before = atomic_fetch_add(&pool->held, n);

    if (before + n <= max)
        return true;
    atomic_fetch_sub(&pool->held, n);
    return false;
}

/* Makes room for `size` bytes in all; false if there is no memory. */
static bool reserve(struct body *body, size_t size)
{
    char *data;

    if (size <= body->capacity)
        return true;
    size = MAX(size, MAX(body->capacity * 2, CHUNKED_CAPACITY));
    size = MIN(size, body->pool->body_max);
    data = g_try_realloc(body->data, size);
    if (!data)
        return false;
    body->data = data;
    body->capacity = size;
    return true;
}

/* Under the lock, which is left for a moment if others have to give up theirs. */
static bool take(struct body *body, size_t n)
{
    while (!body->refusal && !pool_take(body->pool, body->length + n, n)) {
        bool is_large = body->length + n > BODY_SMALL, reclaimed;

        pthread_mutex_unlock(&body->lock);
        reclaimed = connections_reclaim(body->pool->connections, body->connection, is_large);
        pthread_mutex_lock(&body->lock);
        if (!reclaimed && !body->refusal)
            refuse(body, MHD_HTTP_SERVICE_UNAVAILABLE);
    }
    if (body->refusal)
        return false;
    if (reserve(body, body->length + n))
        return true;
    atomic_fetch_sub(&body->pool->held, n);
    refuse(body, MHD_HTTP_SERVICE_UNAVAILABLE);
    return false;
}

bool body_append(struct body *body, const char *piece, size_t n)
{
    bool go_on = true, offer = false;

    pthread_mutex_lock(&body->lock);
    if (!body->refusal && n > body->pool->body_max - body->length)
        refuse(body, MHD_HTTP_CONTENT_TOO_LARGE);
    if (!body->refusal && take(body, n)) {
        offer = body->length < OFFER_FROM && body->length + n >= OFFER_FROM;
        memcpy(body->data + body->length, piece, n);
        body->length += n;
    } else {
        body->discarded += n;
        go_on = body->discarded <= DISCARD_MAX;
    }
    pthread_mutex_unlock(&body->lock);
    if (offer)
        connection_offer(body->connection, give_up, body);
    return go_on;
}

void body_init(struct body *body, struct body_pool *pool, struct connection *connection,
               uint64_t announced)
{
    *body = (struct body){.pool = pool, .connection = connection};
    pthread_mutex_init(&body->lock, NULL);
    /* A body of known length gets its memory at once; one that is too large is not even begun. */
    if (announced > pool->body_max)
        body->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
    else if (announced > 0 && !reserve(body, announced))
        body->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
}

void body_complete(struct body *body)
{
    connection_keep(body->connection);
}

void body_destroy(struct body *body)
{
    connection_keep(body->connection);
    body_release(body);
    pthread_mutex_destroy(&body->lock);
}
