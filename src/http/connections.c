/* SPDX-License-Identifier: Apache-2.0 */
#include "http/connections.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

/* Connections that were cut count no more, but take a moment to go. */
#define LEAVING_MAX 64
#define WATCH_MS_MAX 500
#define WATCH_MS_MIN 10
#define HEAVY_SHARE 4 /* of all places, one part in so many makes a client a heavy one */

#define RECEIVED_UNKNOWN UINT64_MAX

/* Whom a connection is counted to. */
struct peer {
    struct in6_addr address; /* an IPv4 address is mapped; of an IPv6 address the first half */
    unsigned n;              /* connections */
};

struct connection {
    struct connections *owner;
    int fd;
    struct peer *peer;
    enum connection_state state;
    int64_t since_us;
    uint64_t received; /* bytes when it became idle, or RECEIVED_UNKNOWN */
    bool proven;       /* a request of it was handled */
    bool cut;
    size_t held; /* bytes of the answer that is being sent */
    void (*give_up)(void *data); /* NULL: nothing to give */
    void *give_up_data;
};

struct connections {
    struct connections_limits limits;
    pthread_mutex_t lock; /* for all that follows, and for the connections */
    pthread_cond_t left;
    GHashTable *by_fd; /* of struct connection */
    GHashTable *peers; /* set of struct peer */
    unsigned n_cut;
};

/* --- peers ---------------------------------------------------------------------------------- */

static guint peer_hash(gconstpointer key)
{
    const struct peer *peer = key;
    guint hash = 0;

    for (size_t i = 0; i < sizeof(peer->address.s6_addr); i++)
        hash = hash * 31 + peer->address.s6_addr[i];
    return hash;
}

static gboolean peer_equal(gconstpointer a, gconstpointer b)
{
    const struct peer *left = a, *right = b;

    return memcmp(&left->address, &right->address, sizeof(left->address)) == 0;
}

static struct in6_addr peer_address(const struct sockaddr *from)
{
    struct in6_addr address = {0};

    if (from->sa_family == AF_INET) {
        address.s6_addr[10] = address.s6_addr[11] = 0xff;
        memcpy(&address.s6_addr[12], &((const struct sockaddr_in *)from)->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        address = ((const struct sockaddr_in6 *)from)->sin6_addr;
        /* Who has one address of a /64 has all of them. */
        if (!IN6_IS_ADDR_V4MAPPED(&address))
            memset(&address.s6_addr[8], 0, 8);
    }
    return address;
}

static struct peer *peer_join(struct connections *connections, const struct sockaddr *from)
{
    const struct peer key = {.address = peer_address(from)};
    struct peer *peer = g_hash_table_lookup(connections->peers, &key);

    if (!peer) {
        peer = g_memdup2(&key, sizeof(key));
        g_hash_table_add(connections->peers, peer);
    }
    peer->n++;
    return peer;
}

static void peer_leave(struct connections *connections, struct peer *peer)
{
    if (--peer->n == 0)
        g_hash_table_remove(connections->peers, peer);
}

/* --- coming and going ----------------------------------------------------------------------- */

struct connections *connections_new(const struct connections_limits *limits)
{
    struct connections *connections = g_new0(struct connections, 1);
    pthread_condattr_t monotonic;

    connections->limits = *limits;
    pthread_mutex_init(&connections->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&connections->left, &monotonic);
    pthread_condattr_destroy(&monotonic);
    connections->by_fd = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    connections->peers = g_hash_table_new_full(peer_hash, peer_equal, g_free, NULL);
    return connections;
}

void connections_free(struct connections *connections)
{
    if (!connections)
        return;
    g_hash_table_unref(connections->by_fd);
    g_hash_table_unref(connections->peers);
    pthread_cond_destroy(&connections->left);
    pthread_mutex_destroy(&connections->lock);
    g_free(connections);
}

static void forget(struct connections *connections, struct connection *connection)
{
    peer_leave(connections, connection->peer);
    connections->n_cut -= connection->cut;
    g_hash_table_remove(connections->by_fd, GINT_TO_POINTER(connection->fd));
    pthread_cond_broadcast(&connections->left);
}

struct connection *connections_add(struct connections *connections, int fd,
                                   const struct sockaddr *peer, enum connection_state first)
{
    struct connection *connection = g_new0(struct connection, 1);

    *connection = (struct connection){
        .owner = connections,
        .fd = fd,
        .state = first,
        .since_us = g_get_monotonic_time(),
    };
    pthread_mutex_lock(&connections->lock);
    /* The library closes a connection for which it has no memory without a word. */
    struct connection *stale = g_hash_table_lookup(connections->by_fd, GINT_TO_POINTER(fd));
    if (stale)
        forget(connections, stale);
    connection->peer = peer_join(connections, peer);
    g_hash_table_insert(connections->by_fd, GINT_TO_POINTER(fd), connection);
    pthread_mutex_unlock(&connections->lock);
    return connection;
}

void connection_remove(struct connection *connection)
{
    struct connections *connections = connection->owner;

    pthread_mutex_lock(&connections->lock);
    forget(connections, connection);
    pthread_mutex_unlock(&connections->lock);
}

struct connection *connections_find(struct connections *connections, int fd)
{
    struct connection *connection;

    pthread_mutex_lock(&connections->lock);
    connection = g_hash_table_lookup(connections->by_fd, GINT_TO_POINTER(fd));
    pthread_mutex_unlock(&connections->lock);
    return connection;
}

unsigned connections_count(struct connections *connections)
{
    unsigned n;

    pthread_mutex_lock(&connections->lock);
    n = g_hash_table_size(connections->by_fd);
    pthread_mutex_unlock(&connections->lock);
    return n;
}

static void enter(struct connection *connection, enum connection_state state, size_t held)
{
    struct connections *connections = connection->owner;

    pthread_mutex_lock(&connections->lock);
    connection->held = held;
    /* That a head is arriving may have been seen already, and its time be running. */
    if (state != connection->state)
        connection->since_us = g_get_monotonic_time();
    connection->state = state;
    connection->proven |= state == CONNECTION_HANDLING;
    if (state == CONNECTION_IDLE)
        connection->received = RECEIVED_UNKNOWN;
    pthread_mutex_unlock(&connections->lock);
}

void connection_enter(struct connection *connection, enum connection_state state)
{
    enter(connection, state, 0);
}

void connection_send(struct connection *connection, size_t held)
{
    enter(connection, CONNECTION_SENDING, held);
}

/* --- cutting -------------------------------------------------------------------------------- */

static void cut(struct connection *connection, enum http_cut reason)
{
    connection->cut = true;
    connection->owner->n_cut++;
    shutdown(connection->fd, SHUT_RDWR);
    metrics_count(COUNTER_HTTP_CUTS, reason);
}

/* Those that are new must not be counted in: while others crowd in, it is their turn. */
static bool never_called(const struct connection *connection, int64_t now_us)
{
    return !connection->proven &&
           now_us - connection->since_us >= connection->owner->limits.grace_us;
}

/* Whether `left` should go before `right`; see the header. */
static bool goes_before(const struct connection *left, const struct connection *right,
                        int64_t now_us)
{
    unsigned heavy = left->owner->limits.max / HEAVY_SHARE;
    bool left_is_heavy = left->peer->n > heavy, right_is_heavy = right->peer->n > heavy;

    if (left_is_heavy != right_is_heavy)
        return left_is_heavy;
    if (never_called(left, now_us) != never_called(right, now_us))
        return never_called(left, now_us);
    return left->since_us < right->since_us;
}

static bool cut_for_room(struct connections *connections)
{
    struct connection *victim = NULL, *connection;
    int64_t now_us = g_get_monotonic_time();
    GHashTableIter all;

    g_hash_table_iter_init(&all, connections->by_fd);
    while (g_hash_table_iter_next(&all, NULL, (void **)&connection)) {
        if (connection->cut || connection->state == CONNECTION_HANDLING)
            continue;
        if (!victim || goes_before(connection, victim, now_us))
            victim = connection;
    }
    if (!victim)
        return false;
    cut(victim, HTTP_CUT_ROOM);
    return true;
}

void connections_cut_slowest(const struct connection *taker)
{
    struct connections *connections = taker->owner;
    struct connection *slowest = NULL, *connection;
    GHashTableIter all;

    pthread_mutex_lock(&connections->lock);
    g_hash_table_iter_init(&all, connections->by_fd);
    while (g_hash_table_iter_next(&all, NULL, (void **)&connection)) {
        if (connection != taker && !connection->cut && connection->held > 0 &&
            (!slowest || connection->since_us < slowest->since_us))
            slowest = connection;
    }
    if (slowest)
        cut(slowest, HTTP_CUT_SENDING);
    pthread_mutex_unlock(&connections->lock);
}

static bool has_room(const struct connections *connections)
{
    guint n = g_hash_table_size(connections->by_fd);

    return n - connections->n_cut < connections->limits.max &&
           n < connections->limits.max + LEAVING_MAX;
}

bool connections_make_room(struct connections *connections, int64_t timeout_ms)
{
    int64_t until_us = g_get_monotonic_time() + timeout_ms * 1000;
    const struct timespec until = {until_us / 1000000, until_us % 1000000 * 1000};
    bool room;

    pthread_mutex_lock(&connections->lock);
    while (g_hash_table_size(connections->by_fd) - connections->n_cut >= connections->limits.max &&
           cut_for_room(connections))
        continue;
    while (!(room = has_room(connections)) &&
           pthread_cond_timedwait(&connections->left, &connections->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&connections->lock);
    return room;
}

/* --- time ----------------------------------------------------------------------------------- */

int64_t connections_watch_ms(const struct connections *connections)
{
    int64_t shortest_us = INT64_MAX;

    for (size_t i = 0; i < CONNECTION_STATE_N; i++) {
        if (connections->limits.limit_us[i] > 0)
            shortest_us = MIN(shortest_us, connections->limits.limit_us[i]);
    }
    return CLAMP(shortest_us / 4000, WATCH_MS_MIN, WATCH_MS_MAX);
}

/* The library does not tell when the first byte of a head arrives, but the kernel counts bytes. */
static uint64_t bytes_received(int fd)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
        return 0;
    return info.tcpi_bytes_received;
}

static void watch_idle(struct connection *connection, int64_t now_us)
{
    uint64_t received = bytes_received(connection->fd);

    if (connection->received == RECEIVED_UNKNOWN) {
        connection->received = received;
    } else if (received > connection->received) {
        connection->state = CONNECTION_RECEIVING;
        connection->since_us = now_us;
    }
}

void connections_watch(struct connections *connections)
{
    static const enum http_cut reasons[CONNECTION_STATE_N] = {
        [CONNECTION_HANDSHAKE] = HTTP_CUT_HANDSHAKE,
        [CONNECTION_IDLE] = HTTP_CUT_IDLE,
        [CONNECTION_RECEIVING] = HTTP_CUT_RECEIVING,
        [CONNECTION_SENDING] = HTTP_CUT_SENDING,
    };
    int64_t now_us = g_get_monotonic_time();
    struct connection *connection;
    GHashTableIter all;

    pthread_mutex_lock(&connections->lock);
    g_hash_table_iter_init(&all, connections->by_fd);
    while (g_hash_table_iter_next(&all, NULL, (void **)&connection)) {
        if (connection->cut)
            continue;
        if (connection->state == CONNECTION_IDLE)
            watch_idle(connection, now_us);
        int64_t limit_us = connections->limits.limit_us[connection->state];
        if (limit_us > 0 && now_us - connection->since_us > limit_us)
            cut(connection, reasons[connection->state]);
    }
    pthread_mutex_unlock(&connections->lock);
}

/* --- what a connection holds ------------------------------------------------------------------
 */

void connection_offer(struct connection *connection, void (*give_up)(void *data), void *data)
{
    pthread_mutex_lock(&connection->owner->lock);
    connection->give_up = give_up;
    connection->give_up_data = data;
    pthread_mutex_unlock(&connection->owner->lock);
}

void connection_keep(struct connection *connection)
{
    connection_offer(connection, NULL, NULL);
}

bool connections_reclaim(struct connections *connections, const struct connection *taker,
                         bool only_older)
{
    struct connection *oldest = NULL, *connection;
    GHashTableIter all;

    pthread_mutex_lock(&connections->lock);
    g_hash_table_iter_init(&all, connections->by_fd);
    while (g_hash_table_iter_next(&all, NULL, (void **)&connection)) {
        if (connection != taker && connection->give_up &&
            (!oldest || connection->since_us < oldest->since_us))
            oldest = connection;
    }
    if (oldest && only_older && oldest->since_us >= taker->since_us)
        oldest = NULL;
    if (oldest) {
        oldest->give_up(oldest->give_up_data);
        oldest->give_up = NULL;
    }
    pthread_mutex_unlock(&connections->lock);
    return oldest != NULL;
}
