/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

void client_connect(struct client *client, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int on = 1;

    client->answer = g_string_new(NULL);
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("connect");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void client_close(struct client *client)
{
    close(client->fd);
    g_string_free(client->answer, TRUE);
}

void client_write(GString *request, const char *method, const char *path, const char *body,
                  size_t length)
{
    g_string_printf(request,
                    "%s %s HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                    method, path, length);
    g_string_append_len(request, body, (gssize)length);
}

GString *client_prepare(const char *path, const char *body, size_t length)
{
    GString *request = g_string_sized_new(length + 256);
    client_write(request, "POST", path, body, length);
    return request;
}

/* The size of the whole answer, SIZE_MAX before its head is there. */
static size_t answer_size(struct client *client)
{
    const GString *answer = client->answer;
    const char *end = strstr(answer->str, "\r\n\r\n");
    if (!end)
        return SIZE_MAX;
    client->status = (int)strtol(answer->str + strlen("HTTP/1.1 "), NULL, 10);
    size_t head = (size_t)(end + 4 - answer->str);
    if (client->status == 204)
        return head;
    const char *length = strcasestr(answer->str, "content-length:");
    if (!length || length > end || (client->status / 100 != 2 && client->status != 503)) {
        fprintf(stderr, "unexpected answer: %.400s\n", answer->str);
        exit(1);
    }
    return head + strtoull(length + 15, NULL, 10);
}

int64_t client_call(struct client *client, const GString *request)
{
    int64_t start_us = g_get_monotonic_time();

    for (size_t sent = 0; sent < request->len;) {
        ssize_t n = send(client->fd, request->str + sent, request->len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            die("send");
        sent += (size_t)n;
    }
    g_string_truncate(client->answer, 0);
    for (size_t size = SIZE_MAX; client->answer->len < size;) {
        char chunk[1 << 16];
        ssize_t n = recv(client->fd, chunk, sizeof chunk, 0);
        if (n <= 0)
            die("recv");
        g_string_append_len(client->answer, chunk, n);
        if (size == SIZE_MAX)
            size = answer_size(client);
    }
    return g_get_monotonic_time() - start_us;
}

const char *client_body(const struct client *client)
{
    return strstr(client->answer->str, "\r\n\r\n") + 4;
}
