/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The least HTTP client that tests of the server need: what it sends is spelled out by the test,
 * so that requests may be wrong, slow or cut off. Failures end the test.
 */
#include <arpa/inet.h>
#include <check.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_reply {
    int status;
    char *head; /* with all line ends */
    GString *body;
};

static inline void http_reply_clear(struct http_reply *reply)
{
    g_free(reply->head);
    if (reply->body)
        g_string_free(reply->body, TRUE);
    *reply = (struct http_reply){0};
}
typedef struct http_reply http_reply;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(http_reply, http_reply_clear)

/* -1: refused. */
static inline int http_try_connect(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(fd, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline int http_connect(uint16_t port)
{
    int fd = http_try_connect(port);

    ck_assert_msg(fd >= 0, "connect: %s", g_strerror(errno));
    return fd;
}

static inline void http_send(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, data, length, MSG_NOSIGNAL);

        ck_assert_msg(n > 0, "send: %s", g_strerror(errno));
        data += n;
        length -= (size_t)n;
    }
}

static inline void http_send_text(int fd, const char *text)
{
    http_send(fd, text, strlen(text));
}

/* A header's value, or NULL. Free with g_free. */
static inline char *http_header(const struct http_reply *reply, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(reply->head, "\r\n", -1);

    for (size_t i = 1; lines[i]; i++) {
        size_t length = strlen(name);

        if (g_ascii_strncasecmp(lines[i], name, length) == 0 && lines[i][length] == ':')
            return g_strdup(g_strstrip(lines[i] + length + 1));
    }
    return NULL;
}

/* One reply of known length; false if the connection ends before it is complete. */
static inline bool http_receive(int fd, bool head_only, struct http_reply *ret_reply)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char piece[16384];
    char *end = NULL;
    size_t body_length = 0;

    while (!end || text->len < (size_t)(end - text->str) + body_length) {
        size_t wanted =
            end ? (size_t)(end - text->str) + body_length - text->len : 1; /* byte by byte */
        ssize_t n = recv(fd, piece, MIN(wanted, sizeof(piece)), 0);
        ptrdiff_t at = end ? end - text->str : -1;

        if (n <= 0)
            return false;
        g_string_append_len(text, piece, n);
        end = at >= 0 ? text->str + at : NULL;
        if (end || !g_str_has_suffix(text->str, "\r\n\r\n"))
            continue;
        g_autofree char *length = NULL;

        ret_reply->head = g_strdup(text->str);
        length = http_header(ret_reply, "Content-Length");
        ret_reply->status = (int)g_ascii_strtoull(text->str + strlen("HTTP/1.1 "), NULL, 10);
        head_only = head_only || ret_reply->status == 204;
        ck_assert_msg(length || head_only, "no length: %s", text->str);
        body_length = head_only ? 0 : g_ascii_strtoull(length, NULL, 10);
        end = text->str + text->len;
    }
    ret_reply->body = g_string_new_len(end, (gssize)body_length);
    return true;
}

struct http_call {
    const char *method;
    const char *path;
    const char *headers; /* with their line ends, or NULL */
    const char *body;    /* or NULL */
    size_t length;
    const char *host; /* NULL: "test" */
};

/* Sends a request and waits for its reply, on a connection that stays open. */
static inline void http_call(int fd, const struct http_call *call, struct http_reply *ret_reply)
{
    g_autofree char *head = g_strdup_printf(
        "%s %s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %zu\r\n\r\n", call->method, call->path,
        call->host ? call->host : "test", call->headers ? call->headers : "", call->length);

    http_send_text(fd, head);
    http_send(fd, call->body, call->length);
    ck_assert_msg(http_receive(fd, strcmp(call->method, "HEAD") == 0, ret_reply),
                  "%s %s: the connection ended", call->method, call->path);
}
