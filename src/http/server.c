/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd calls step() once when a request's head is complete, then for each piece of the
 * body, then once more; an answer may be queued in the first and the last call only. What lives
 * between the calls is a struct exchange, made in the first and freed by complete().
 *
 * Connections are accepted here and handed over, so that they can be counted, chosen from and
 * timed (http/connections.h). The library's own limit closes newcomers, and its idle time lets
 * each connection's thread spin through the last second of it; both are off.
 */
#include "http/server.h"

#include "base/log.h"
#include "http/body.h"
#include "http/head.h"
#include "http/listen.h"
#include "http/message.h"
#include "http/outgoing.h"
#include "http/tls.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gpuledger/error.h>
#include <limits.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)512 << 10)
/* Head and read buffer of one connection. More does not make large bodies faster, and the library
 * clears it after each request: 128 KiB cost 5 us. A larger head is answered with 431. */
#define CONNECTION_MEMORY ((size_t)32 << 10)
#define HANDSHAKE_MAX_MS 10000
#define GRACE_MS 1000   /* to make a first call */
#define REFRESH_MS 1000 /* how often certificates are looked at */
#define BEGIN_MAX_MS 1000 /* for the library to begin with the last connections before the end */
#define LARGE_KEPT_MS 2000
#define CROWD 64             /* connections whose memory is worth looking for when they have gone */
#define EXHAUSTED_WAIT_MS 10 /* before accepting again when descriptors have run out */

struct server {
    struct server_options options;
    struct MHD_Daemon *daemon;
    struct connections *connections;
    struct body_pool bodies;
    int listen_fd;
    int wake_fd; /* an eventfd: look at `draining` and `stopping` */
    uint16_t port;
    pthread_t keeper;

    pthread_mutex_t lock; /* the rest; never held across a call */
    pthread_cond_t idle;
    pthread_cond_t begun;
    unsigned in_flight; /* requests from their head to the end of their answer */
    unsigned handed;    /* connections that the library was given and has not begun with */
    bool draining;
    bool stopping;
};

/* What belongs to a connection of the library. */
struct client {
    struct tls_session tls; /* first: the session's pointer leads here */
    struct connection *connection;
};

struct exchange {
    struct server *server;
    struct connection *connection;
    int64_t start_us;
    struct body body;
    size_t held; /* of the answer */
    const char *fault; /* of the head, or NULL; answered before its body, it ends the connection */
};

static bool is_draining(struct server *server)
{
    bool draining;

    pthread_mutex_lock(&server->lock);
    draining = server->draining;
    pthread_mutex_unlock(&server->lock);
    return draining;
}

/* --- the life of a request ------------------------------------------------------------------ */

static const char *refusal_text(unsigned status)
{
    return status == MHD_HTTP_CONTENT_TOO_LARGE ? "the request is larger than this server accepts"
                                                : "too many large requests at a time; try again";
}

static void handle(struct exchange *exchange, struct MHD_Connection *connection, const char *method,
                   const char *path, struct http_response *response)
{
    struct server *server = exchange->server;
    struct body *body = &exchange->body;
    bool takes_turns = body->length > BODY_LARGE;
    struct http_request request = {
        .method = method,
        .path = path,
        .body = body->data ? body->data : "",
        .length = body->length,
        .read_us = g_get_monotonic_time() - exchange->start_us,
        .outgoing = server->options.outgoing,
        .connection = connection,
    };

    if (takes_turns)
        pthread_mutex_lock(&server->bodies.turn);
    server->options.handler(server->options.data, &request, response);
    body_release(body);
    if (takes_turns)
        pthread_mutex_unlock(&server->bodies.turn);
}

/* Counts the answer, or drops it for want of memory. */
static void hold(struct exchange *exchange, struct http_response *response)
{
    struct outgoing *outgoing = exchange->server->options.outgoing;

    if (!outgoing || outgoing_hold(outgoing, exchange->connection, response->body->len,
                                   response->is_view, &exchange->held))
        return;
    g_string_free(response->body, TRUE);
    response->body = g_string_new(NULL);
    http_response_fail(response, MHD_HTTP_SERVICE_UNAVAILABLE,
                       "too many answers wait for their clients to take them; try again");
}

static enum MHD_Result answer(struct exchange *exchange, struct MHD_Connection *connection,
                              const char *method, const char *path)
{
    struct server *server = exchange->server;
    struct http_response response = {.status = MHD_HTTP_OK, .body = g_string_new(NULL)};
    int64_t read_us = g_get_monotonic_time() - exchange->start_us;

    body_complete(&exchange->body);
    connection_enter(exchange->connection, CONNECTION_HANDLING);
    size_t length = exchange->body.length;
    unsigned refusal = exchange->body.refusal;
    if (refusal)
        http_response_fail(&response, refusal, "%s",
                           exchange->fault ? exchange->fault : refusal_text(refusal));
    else
        handle(exchange, connection, method, path, &response);
    hold(exchange, &response);
    log_event(LOG_LEVEL_DEBUG, "request", LOG_TEXT("listener", server->options.name),
              LOG_TEXT("method", method), LOG_TEXT("path", path),
              LOG_NUMBER("status", response.status), LOG_NUMBER("received", length),
              LOG_NUMBER("sent", response.body->len), LOG_NUMBER("read_us", read_us),
              LOG_NUMBER("us", g_get_monotonic_time() - exchange->start_us));
    connection_send(exchange->connection, exchange->held);
    return response_send(&response, connection,
                         (server->options.error_bodies ? RESPONSE_ERROR_BODY : 0) |
                             (is_draining(server) ? RESPONSE_CLOSE : 0));
}

static struct exchange *exchange_begin(struct server *server, struct MHD_Connection *connection,
                                       uint64_t announced)
{
    const struct client *client =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    struct exchange *exchange = g_new0(struct exchange, 1);

    exchange->server = server;
    exchange->connection = client->connection;
    exchange->start_us = g_get_monotonic_time();
    connection_enter(exchange->connection, CONNECTION_RECEIVING);
    body_init(&exchange->body, &server->bodies, exchange->connection, announced);
    pthread_mutex_lock(&server->lock);
    server->in_flight++;
    pthread_mutex_unlock(&server->lock);
    return exchange;
}

static enum MHD_Result step(void *data, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *piece,
                            size_t *piece_length, void **state)
{
    struct exchange *exchange = *state;

    if (!exchange) {
        const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                         MHD_HTTP_HEADER_CONTENT_LENGTH);
        uint64_t announced = 0;

        /* libmicrohttpd has refused a length that is no number. */
        if (length)
            g_ascii_string_to_unsigned(length, 10, 0, G_MAXUINT64, &announced, NULL);
        *state = exchange = exchange_begin(data, connection, announced);
        const unsigned fault = head_fault(connection, version, &exchange->fault);
        if (fault) {
            exchange->body.refusal = fault;
            return answer(exchange, connection, method, path);
        }
        /* A client that waits for "100 Continue" need not send the body in vain, and nobody
         * reads that much only to be polite. */
        if (exchange->body.refusal &&
            (announced > DISCARD_MAX ||
             MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT)))
            return answer(exchange, connection, method, path);
        return MHD_YES;
    }
    if (*piece_length > 0) {
        bool go_on = body_append(&exchange->body, piece, *piece_length);

        *piece_length = 0;
        return go_on ? MHD_YES : MHD_NO;
    }
    return answer(exchange, connection, method, path);
}

static void complete(void *data, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode code)
{
    struct server *server = data;
    struct exchange *exchange = *state;

    if (!exchange)
        return; /* it ended before its head was complete */
    *state = NULL;
    body_destroy(&exchange->body);
    connection_enter(exchange->connection, CONNECTION_IDLE);
    if (server->options.outgoing)
        outgoing_release(server->options.outgoing, exchange->held);
    g_free(exchange);
    pthread_mutex_lock(&server->lock);
    if (--server->in_flight == 0)
        pthread_cond_broadcast(&server->idle);
    pthread_mutex_unlock(&server->lock);
}

G_GNUC_PRINTF(2, 0)
static void log_library(void *data, const char *format, va_list arguments)
{
    const struct server *server = data;
    g_autofree char *text = g_strdup_vprintf(format, arguments);

    log_event_limited(LOG_LEVEL_WARN, "http", LOG_TEXT("listener", server->options.name),
                      LOG_TEXT("text", g_strchomp(text)));
}

/* --- the life of a connection --------------------------------------------------------------- */

static void count_handed(struct server *server, int change)
{
    pthread_mutex_lock(&server->lock);
    server->handed += (unsigned)change;
    if (server->handed == 0)
        pthread_cond_signal(&server->begun);
    pthread_mutex_unlock(&server->lock);
}

/* A library that is stopped closes connections with which it has not begun, without the lock under
 * which they were handed over. It never begins with one for which it has no memory. */
static void await_begun(struct server *server)
{
    const int64_t until_us = g_get_monotonic_time() + BEGIN_MAX_MS * 1000;
    const struct timespec until = {until_us / 1000000, until_us % 1000000 * 1000};

    pthread_mutex_lock(&server->lock);
    while (server->handed > 0 && pthread_cond_timedwait(&server->begun, &server->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&server->lock);
}

/* The client's last word of a handshake, whatever the version. */
static int handshake_finished(gnutls_session_t session, unsigned type, unsigned when,
                              unsigned incoming, const gnutls_datum_t *message)
{
    const struct client *client = gnutls_session_get_ptr(session);

    if (incoming)
        connection_enter(client->connection, CONNECTION_IDLE);
    return 0;
}

static void client_begin_tls(struct client *client, struct server *server,
                             struct MHD_Connection *connection)
{
    gnutls_session_t session =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;

    tls_begin(server->options.tls, session, &client->tls);
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       handshake_finished);
}

/* Told before a connection's first byte is read, and after its thread has ended. */
static void notify(void *data, struct MHD_Connection *connection, void **context,
                   enum MHD_ConnectionNotificationCode code)
{
    struct server *server = data;
    struct client *client = *context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

        count_handed(server, -1);
        *context = client = g_new0(struct client, 1);
        client->connection = connections_find(server->connections, fd);
        if (server->options.tls)
            client_begin_tls(client, server, connection);
        return;
    }
    *context = NULL;
    connection_remove(client->connection);
    tls_end(&client->tls);
    g_free(client);
}

static void accept_one(struct server *server)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof(peer);
    struct connection *connection;
    int fd;

    if (!connections_make_room(server->connections, connections_watch_ms(server->connections)))
        return;
    fd =
        accept4(server->listen_fd, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
            return; /* the client has left already */
        log_event_limited(LOG_LEVEL_WARN, "connections wait",
                          LOG_TEXT("listener", server->options.name),
                          LOG_TEXT("why", g_strerror(errno)));
        g_usleep(EXHAUSTED_WAIT_MS * 1000);
        return;
    }
    connection = connections_add(server->connections, fd, (struct sockaddr *)&peer,
                                 server->options.tls ? CONNECTION_HANDSHAKE : CONNECTION_IDLE);
    count_handed(server, 1);
    if (MHD_add_connection(server->daemon, fd, (struct sockaddr *)&peer, length) != MHD_YES) {
        count_handed(server, -1);
        connection_remove(connection);
    }
}

/* Of what a thousand connections or a large body used, the allocator keeps tens of MiB for the next
 * ones. Once they have gone, that goes as well; while they come and go, it is of use. */
static void tidy_up(struct server *server, unsigned *most)
{
    unsigned n = connections_count(server->connections);
    int_fast64_t large_us = atomic_load(&server->bodies.large_us);
    bool crowd_left, large_left;

    *most = MAX(*most, n);
    crowd_left = *most >= CROWD && n <= *most / 4;
    large_left = large_us > 0 && g_get_monotonic_time() - large_us > LARGE_KEPT_MS * 1000;
    if (!crowd_left && !large_left)
        return;
    *most = n;
    if (large_left)
        atomic_compare_exchange_strong(&server->bodies.large_us, &large_us, 0);
    malloc_trim(0);
}

/* Lets in, and looks at the clock. */
static void *keep(void *data)
{
    struct server *server = data;
    int64_t watch_us = connections_watch_ms(server->connections) * 1000;
    int64_t next_watch_us = 0, next_refresh_us = 0;
    unsigned most = 0; /* connections, since memory was last given back */

    for (;;) {
        struct pollfd sockets[] = {{.fd = server->wake_fd, .events = POLLIN},
                                   {.fd = server->listen_fd, .events = POLLIN}};
        eventfd_t woken;
        bool draining, stopping;

        pthread_mutex_lock(&server->lock);
        draining = server->draining;
        stopping = server->stopping;
        pthread_mutex_unlock(&server->lock);
        if (stopping)
            return NULL;
        poll(sockets, draining ? 1 : 2, (int)(watch_us / 1000));
        if (sockets[0].revents)
            eventfd_read(server->wake_fd, &woken);
        int64_t now_us = g_get_monotonic_time();
        if (now_us >= next_watch_us) {
            connections_watch(server->connections);
            tidy_up(server, &most);
            next_watch_us = now_us + watch_us;
        }
        if (server->options.tls && now_us >= next_refresh_us) {
            tls_refresh(server->options.tls);
            next_refresh_us = now_us + REFRESH_MS * 1000;
        }
        if (!draining && sockets[1].revents & POLLIN)
            accept_one(server);
    }
}

/* --- start and end -------------------------------------------------------------------------- */

/* Signals are for the main thread. Those that a thread raises by its own fault stay. */
static void signals_block(sigset_t *ret_before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all;

    sigfillset(&all);
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_BLOCK, &all, ret_before);
}

/* Asked only for sessions that were not given an identity, of which there are none. */
static int no_certificate(gnutls_session_t session, const gnutls_datum_t *issuers, int n_issuers,
                          const gnutls_pk_algorithm_t *algorithms, int n_algorithms,
                          gnutls_pcert_st **ret_certificates, unsigned *ret_n,
                          gnutls_privkey_t *ret_key)
{
    return -1;
}

static struct MHD_Daemon *daemon_start(struct server *server)
{
    /* Not epoll, which the library uses edge-triggered: the end of a connection that arrives
     * together with its last data is then missed. */
    static const unsigned mode_flags[] = {
        [SERVER_THREADS] = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD,
        [SERVER_ONE_THREAD] = MHD_USE_POLL_INTERNAL_THREAD,
    };
    const struct MHD_OptionItem tls_options[] = {
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)no_certificate},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)TLS_PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem no_options[] = {{MHD_OPTION_END, 0, NULL}};
    bool tls = server->options.tls;

    return MHD_start_daemon(
        mode_flags[server->options.mode] | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
            MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, step, server, MHD_OPTION_EXTERNAL_LOGGER, log_library,
        server, /* first, or it misses complaints */
        MHD_OPTION_UNESCAPE_CALLBACK, head_unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED, complete,
        server, MHD_OPTION_NOTIFY_CONNECTION, notify, server,
        MHD_OPTION_CONNECTION_LIMIT, UINT_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, STACK_SIZE, MHD_OPTION_ARRAY,
        tls ? tls_options : no_options, MHD_OPTION_END);
}

static void server_init(struct server *server, const struct server_options *options)
{
    int64_t transfer_us = options->transfer_timeout_ms * 1000;
    const struct connections_limits limits = {
        .max = options->connections_max,
        .grace_us = GRACE_MS * 1000,
        .limit_us =
            {
                [CONNECTION_HANDSHAKE] = MIN(transfer_us, HANDSHAKE_MAX_MS * 1000),
                [CONNECTION_IDLE] = (int64_t)options->idle_timeout_s * G_USEC_PER_SEC,
                [CONNECTION_RECEIVING] = transfer_us,
                [CONNECTION_SENDING] = transfer_us,
            },
    };
    pthread_condattr_t attributes;

    server->options = *options;
    server->connections = connections_new(&limits);
    server->bodies = (struct body_pool){
        .body_max = options->body_max,
        .bodies_max = options->bodies_max,
        .connections = server->connections,
    };
    pthread_mutex_init(&server->bodies.turn, NULL);
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->idle, &attributes);
    pthread_cond_init(&server->begun, &attributes);
    pthread_condattr_destroy(&attributes);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void server_release(struct server *server)
{
    close(server->listen_fd);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    connections_free(server->connections);
    pthread_mutex_destroy(&server->bodies.turn);
    pthread_cond_destroy(&server->idle);
    pthread_cond_destroy(&server->begun);
    pthread_mutex_destroy(&server->lock);
    g_free(server);
}

static bool threads_start(struct server *server)
{
    sigset_t before;
    int code = 0;

    signals_block(&before);
    server->daemon = server->wake_fd >= 0 ? daemon_start(server) : NULL;
    if (server->daemon && (code = pthread_create(&server->keeper, NULL, keep, server)) != 0) {
        MHD_stop_daemon(server->daemon);
        errno = code;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return server->daemon && code == 0;
}

struct server *server_start(const struct server_options *options, GError **error)
{
    int fd = listen_open(options->host, options->port, error);
    struct server *server;

    if (fd < 0)
        return NULL;
    server = g_new0(struct server, 1);
    server_init(server, options);
    server->listen_fd = fd;
    server->port = listen_port(fd);
    if (!threads_start(server)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO,
                    "the server for '%s:%u' cannot be started: %s", options->host, server->port,
                    g_strerror(errno));
        server_release(server);
        return NULL;
    }
    return server;
}

uint16_t server_port(const struct server *server)
{
    return server->port;
}

bool server_is_local(const struct server *server)
{
    return listen_is_local(server->listen_fd);
}

static void wake(struct server *server, bool *flag)
{
    pthread_mutex_lock(&server->lock);
    *flag = true;
    pthread_mutex_unlock(&server->lock);
    eventfd_write(server->wake_fd, 1);
}

/* May be repeated. The socket stays open while it may still be looked at, so that its number is
 * not given to another file. */
static void quiesce(struct server *server)
{
    wake(server, &server->draining);
    shutdown(server->listen_fd, SHUT_RD);
}

bool server_await_idle(struct server *server, int64_t timeout_ms)
{
    int64_t until_us = g_get_monotonic_time() + timeout_ms * 1000;
    const struct timespec until = {
        .tv_sec = until_us / 1000000,
        .tv_nsec = until_us % 1000000 * 1000,
    };
    bool idle;

    pthread_mutex_lock(&server->lock);
    while (server->in_flight > 0 &&
           pthread_cond_timedwait(&server->idle, &server->lock, &until) == 0)
        ;
    idle = server->in_flight == 0;
    pthread_mutex_unlock(&server->lock);
    return idle;
}

bool server_drain(struct server *server, int64_t timeout_ms)
{
    quiesce(server);
    return server_await_idle(server, timeout_ms);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    quiesce(server);
    wake(server, &server->stopping);
    pthread_join(server->keeper, NULL);
    await_begun(server);
    MHD_stop_daemon(server->daemon);
    server_release(server);
}
