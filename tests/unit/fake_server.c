/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX 65536

struct scripted {
    struct fake_reply reply;
    int left; /* FAKE_ALWAYS: never runs out */
};

struct fake_server {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    pthread_t acceptor;
    GArray *script;      /* struct scripted */
    GPtrArray *requests; /* char * */
    GArray *connections; /* pthread_t */
    unsigned unscripted;
    bool accepting;
    int listener;
    int stop; /* eventfd: readable once the server ends */
    int halt; /* eventfd: readable once the acceptor is to end */
    int free; /* eventfd: how many replies that are held may go */
    uint16_t port;
    char *url;
};

struct connection {
    struct fake_server *server;
    int fd;
};

/* Waits for input; false when the server ends or the time is over. */
static bool wait_input(const struct connection *connection, int timeout_ms)
{
    struct pollfd fds[] = {{connection->fd, POLLIN, 0}, {connection->server->stop, POLLIN, 0}};
    int n;

    do
        n = poll(fds, 2, timeout_ms);
    while (n < 0 && errno == EINTR);
    return n > 0 && !fds[1].revents;
}

static bool is_stopping(const struct fake_server *server, int timeout_ms)
{
    struct pollfd fd = {server->stop, POLLIN, 0};
    return poll(&fd, 1, timeout_ms) > 0;
}

static size_t body_length(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-length:");
    return field ? (size_t)g_ascii_strtoull(field + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

/* One request, head and body. */
static bool read_request(const struct connection *connection, GString *request)
{
    char bytes[4096];

    g_string_truncate(request, 0);
    while (request->len < REQUEST_MAX) {
        const char *head_end = strstr(request->str, "\r\n\r\n");

        if (head_end &&
            request->len >= (size_t)(head_end - request->str) + 4 + body_length(request->str))
            return true;
        if (!wait_input(connection, -1))
            return false;
        const ssize_t n = recv(connection->fd, bytes, sizeof(bytes), 0);
        if (n <= 0)
            return false;
        g_string_append_len(request, bytes, n);
    }
    return false;
}

/* Notes the request and finds its reply. */
static bool take_reply(struct fake_server *server, const char *request, struct fake_reply *ret)
{
    g_autofree char *line = g_strndup(request, strcspn(request, "\r\n"));
    bool found = false;

    pthread_mutex_lock(&server->lock);
    g_ptr_array_add(server->requests, g_strdup(request));
    for (guint i = 0; i < server->script->len && !found; i++) {
        struct scripted *scripted = &g_array_index(server->script, struct scripted, i);

        if (scripted->left == 0 || (scripted->reply.match && !strstr(line, scripted->reply.match)))
            continue;
        if (scripted->left > 0)
            scripted->left--;
        *ret = scripted->reply;
        found = true;
    }
    if (!found)
        server->unscripted++;
    pthread_cond_broadcast(&server->arrived);
    pthread_mutex_unlock(&server->lock);
    return found;
}

static bool send_text(const struct connection *connection, const char *text, size_t length)
{
    while (length > 0) {
        const ssize_t n = send(connection->fd, text, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

static bool send_chunk(const struct connection *connection, const char *text)
{
    g_autofree char *head = g_strdup_printf("%zx\r\n", strlen(text));
    g_autofree char *chunk = g_strconcat(head, text, "\r\n", NULL);

    return send_text(connection, chunk, strlen(chunk));
}

/* False: the connection is over. */
/* Without a body of its own, a 404 is the API server's, which is a Status. */
/* False when the server ends. */
static bool await_release(const struct fake_server *server)
{
    struct pollfd fds[] = {{server->free, POLLIN, 0}, {server->stop, POLLIN, 0}};
    eventfd_t one;

    while (poll(fds, 2, -1) < 0)
        continue;
    return !fds[1].revents && eventfd_read(server->free, &one) == 0;
}

static const char *chunk_of(const struct fake_reply *reply, size_t i)
{
    const char *chunk = i < FAKE_CHUNKS_MAX ? reply->chunks[i] : NULL;
    const bool empty = i == 0 && (!chunk || strcmp(chunk, "{}") == 0);

    return reply->status == 404 && empty
               ? "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}"
               : chunk;
}

static bool answer(const struct connection *connection, const struct fake_reply *reply)
{
    g_autofree char *head =
        g_strdup_printf("HTTP/1.1 %d Scripted\r\nContent-Type: application/json\r\n"
                        "Transfer-Encoding: chunked\r\n%s\r\n",
                        reply->status ? reply->status : 200, reply->headers ? reply->headers : "");

    if (reply->delay_ms && is_stopping(connection->server, reply->delay_ms))
        return false;
    if (reply->held && !await_release(connection->server))
        return false;
    if (reply->end == FAKE_NO_REPLY || !send_text(connection, head, strlen(head)))
        return false;
    const char *chunk;
    for (size_t i = 0; (chunk = chunk_of(reply, i)); i++) {
        if (!send_chunk(connection, chunk))
            return false;
    }
    if (reply->end == FAKE_HANG)
        wait_input(connection, -1);
    return reply->end == FAKE_KEEP && send_text(connection, "0\r\n\r\n", 5);
}

static void *serve(void *data)
{
    static const struct fake_reply unscripted = {.status = 501, .chunks = {"{}"}};
    struct connection *connection = data;
    g_autoptr(GString) request = g_string_new(NULL);
    struct fake_reply reply = {0};

    while (read_request(connection, request)) {
        const bool found = take_reply(connection->server, request->str, &reply);
        if (!answer(connection, found ? &reply : &unscripted))
            break;
    }
    close(connection->fd);
    g_free(connection);
    return NULL;
}

static void *accept_all(void *data)
{
    struct fake_server *server = data;

    for (;;) {
        struct pollfd fds[] = {{server->listener, POLLIN, 0}, {server->halt, POLLIN, 0}};
        pthread_t thread;

        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[1].revents)
            return NULL;
        const int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        const int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct connection *connection = g_new0(struct connection, 1);
        *connection = (struct connection){server, fd};
        pthread_mutex_lock(&server->lock); /* it is counted before it answers */
        if (pthread_create(&thread, NULL, serve, connection) != 0)
            g_error("no thread for a connection");
        g_array_append_val(server->connections, thread);
        pthread_mutex_unlock(&server->lock);
    }
}

static void open_port(struct fake_server *server)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons(server->port),
    };
    socklen_t size = sizeof(address);
    const int on = 1;

    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(server->listener, (const struct sockaddr *)&address, size) != 0 ||
        listen(server->listener, SOMAXCONN) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &size) != 0)
        g_error("no port to listen on: %s", g_strerror(errno));
    server->port = ntohs(address.sin_port);
    server->halt = eventfd(0, EFD_CLOEXEC);
    if (pthread_create(&server->acceptor, NULL, accept_all, server) != 0)
        g_error("no thread to accept connections");
    server->accepting = true;
}

static void signal_eventfd(int fd)
{
    if (eventfd_write(fd, 1) != 0)
        g_error("eventfd: %s", g_strerror(errno));
}

static void close_port(struct fake_server *server)
{
    signal_eventfd(server->halt);
    pthread_join(server->acceptor, NULL);
    close(server->listener);
    close(server->halt);
    server->accepting = false;
}

struct fake_server *fake_server_new(void)
{
    struct fake_server *server = g_new0(struct fake_server, 1);

    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->arrived, NULL);
    server->script = g_array_new(FALSE, TRUE, sizeof(struct scripted));
    server->requests = g_ptr_array_new_with_free_func(g_free);
    server->connections = g_array_new(FALSE, FALSE, sizeof(pthread_t));
    server->stop = eventfd(0, EFD_CLOEXEC);
    server->free = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    open_port(server);
    server->url = g_strdup_printf("http://127.0.0.1:%u", server->port);
    return server;
}

void fake_server_release(struct fake_server *server)
{
    signal_eventfd(server->free);
}

void fake_server_free(struct fake_server *server)
{
    if (server->accepting)
        close_port(server);
    signal_eventfd(server->stop);
    for (guint i = 0; i < server->connections->len; i++)
        pthread_join(g_array_index(server->connections, pthread_t, i), NULL);
    close(server->stop);
    close(server->free);
    g_array_unref(server->connections);
    g_array_unref(server->script);
    g_ptr_array_unref(server->requests);
    pthread_cond_destroy(&server->arrived);
    pthread_mutex_destroy(&server->lock);
    g_free(server->url);
    g_free(server);
}

const char *fake_server_url(const struct fake_server *server)
{
    return server->url;
}

void fake_server_script(struct fake_server *server, const struct fake_reply *reply)
{
    const struct scripted scripted = {*reply, reply->times ? reply->times : 1};

    pthread_mutex_lock(&server->lock);
    g_array_append_val(server->script, scripted);
    pthread_mutex_unlock(&server->lock);
}

void fake_server_refuse(struct fake_server *server, bool refuse)
{
    if (refuse)
        close_port(server);
    else
        open_port(server);
}

unsigned fake_server_count(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    const unsigned count = server->requests->len;
    pthread_mutex_unlock(&server->lock);
    return count;
}

unsigned fake_server_unscripted(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    const unsigned count = server->unscripted;
    pthread_mutex_unlock(&server->lock);
    return count;
}

unsigned fake_server_connections(struct fake_server *server)
{
    pthread_mutex_lock(&server->lock);
    const unsigned count = server->connections->len;
    pthread_mutex_unlock(&server->lock);
    return count;
}

char *fake_server_request(struct fake_server *server, unsigned index)
{
    pthread_mutex_lock(&server->lock);
    char *request = index < server->requests->len ? g_strdup(server->requests->pdata[index]) : NULL;
    pthread_mutex_unlock(&server->lock);
    return request;
}

bool fake_server_wait(struct fake_server *server, unsigned count, int timeout_ms)
{
    const int64_t until_us = g_get_real_time() + (int64_t)timeout_ms * 1000;
    const struct timespec until = {until_us / G_USEC_PER_SEC, until_us % G_USEC_PER_SEC * 1000};
    int failure = 0;

    pthread_mutex_lock(&server->lock);
    while (server->requests->len < count && failure == 0)
        failure = pthread_cond_timedwait(&server->arrived, &server->lock, &until);
    const bool arrived = server->requests->len >= count;
    pthread_mutex_unlock(&server->lock);
    return arrived;
}
