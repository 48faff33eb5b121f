/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP/1.1 server that calls one function per request, with the whole body at hand. A thin
 * layer over libmicrohttpd that owns what is easy to get wrong there: body limits, the life of a
 * request, an orderly end.
 *
 * Memory: a request's head may have 32 KiB. Of one request no more than body_max bytes of body
 * are ever held, of all requests together no more than bodies_max (http/body.h). What goes beyond
 * is read and thrown away and then answered with 413 or 503, so that the client gets to see the
 * answer; after DISCARD_MAX bytes the connection is cut. Answers: http/outgoing.h.
 *
 * Connections and time: http/connections.h. Nothing but a handler may take as long as it likes.
 *
 * Threads: the handler runs in one thread per connection (SERVER_THREADS), where it may block, or
 * in one thread for all (SERVER_ONE_THREAD), where it must not. These threads take no signals,
 * SIGPIPE included. The functions below may be called from any thread but a handler's.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_PARAMS_MAX 4
#define HTTP_HEADERS_MAX 8
#define DISCARD_MAX ((uint64_t)64 << 20) /* bytes */

struct MHD_Connection;
struct outgoing;
struct tls;

/* Borrowed by the handler until it returns. */
struct http_request {
    const char *method;
    const char *path; /* percent-decoded, without the query */
    const char *body; /* not terminated; never NULL */
    size_t length;
    int64_t read_us; /* from the end of the head to the end of the body */

    /* Filled by the router (http/routes.h). */
    size_t n_params;
    struct {
        const char *name; /* ends at the pattern's '}' */
        const char *value;
    } params[HTTP_PARAMS_MAX];
    bool trusted; /* has shown the token, or none is asked for */
    bool crowded; /* of ROUTE_WAITS: as many as may wait do so already */

    struct outgoing *outgoing;

    struct MHD_Connection *connection;
};

/* A decoded value of the query: "" for "?name" and "?name=", NULL if it is absent. */
const char *http_request_query(const struct http_request *request, const char *name);

/* A header's value, or NULL; names are matched regardless of case. */
const char *http_request_header(const struct http_request *request, const char *name);

/* What the handler answers; begins as 200 with an empty body. */
struct http_response {
    unsigned status;
    const char *content_type; /* a constant; sent if there is a body */
    GString *body;
    char *error; /* owned, or NULL: what to say instead of a body, see http_response_fail */
    bool is_view; /* of no use to kube-scheduler: refused where memory is short */
    size_t n_headers;
    struct {
        const char *name; /* a constant */
        char *value;      /* owned */
    } headers[HTTP_HEADERS_MAX];
};

void http_response_add_header(struct http_response *response, const char *name, char *take_value);

/* Answers with a status and no body, or {"error": …} where the server has error_bodies. */
void http_response_fail(struct http_response *response, unsigned status, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

typedef void (*server_handler)(void *data, struct http_request *request,
                               struct http_response *response);

enum server_mode {
    SERVER_THREADS,
    SERVER_ONE_THREAD,
};

struct server_options {
    const char *name; /* a constant, for the log */
    const char *host; /* a name or a numeric address; "" for all, of both families */
    uint16_t port;    /* 0: any free one */
    enum server_mode mode;
    struct tls *tls; /* borrowed; NULL: none. Its files are looked at every second */
    unsigned connections_max;
    unsigned idle_timeout_s; /* keep above the clients' own, so that they close first */
    /* For a request to arrive, first byte to last, and for its answer to be taken. A handshake
     * has the same, at most 10 s. */
    int64_t transfer_timeout_ms;
    size_t body_max;   /* bytes of one body */
    size_t bodies_max; /* bytes of all bodies at a time; more than body_max */
    struct outgoing *outgoing; /* borrowed; NULL: answers are not counted */
    bool error_bodies; /* off for Go clients: they drop a connection that has one */
    server_handler handler;
    void *data; /* borrowed, for the handler */
};

/* Values that fit kube-scheduler, whose Go client keeps idle connections for 90 s. */
#define SERVER_CONNECTIONS 1024
#define SERVER_IDLE_TIMEOUT_S 120
#define SERVER_TRANSFER_TIMEOUT_MS 30000
#define SERVER_BODY_MAX ((size_t)64 << 20)
#define SERVER_BODIES_MAX ((size_t)128 << 20)

struct server;

/* Listens and serves. Errors are GPULEDGER_ERROR_IO and name the address. Options are copied but
 * for what they point to. */
struct server *server_start(const struct server_options *options, GError **error);

/* The port that is listened on. */
uint16_t server_port(const struct server *server);

/* Whether it listens on a loopback address, which only this machine reaches. */
bool server_is_local(const struct server *server);

/* Waits until no request is being handled or `timeout_ms` is over (false). New ones are let in. */
bool server_await_idle(struct server *server, int64_t timeout_ms);

/* Refuses new connections, then waits until no request is being handled or `timeout_ms` is over
 * (false). Requests that arrive on open connections meanwhile are still answered, and their
 * connections closed. */
bool server_drain(struct server *server, int64_t timeout_ms);

/* Closes all connections; waits for handlers that still run. */
void server_free(struct server *server);
typedef struct server server; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(server, server_free)
