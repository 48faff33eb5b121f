/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An HTTP/1.1 server in this process that answers by a script and remembers what it was asked.
 * Threads: one for each connection; the functions may be called from any.
 */
#include <stdbool.h>

#define FAKE_CHUNKS_MAX 8

enum fake_end {
    FAKE_KEEP,     /* the reply is complete, the connection stays */
    FAKE_CUT,      /* the connection is closed in the middle of the reply */
    FAKE_HANG,     /* nothing more comes until the client goes */
    FAKE_NO_REPLY, /* the request is read, then the connection is closed */
};

/* Answers the first request that matches and that no earlier reply has answered. */
struct fake_reply {
    const char *match;   /* part of the request's first line; NULL: any */
    int status;          /* 0: 200 */
    const char *headers; /* further lines, each with its CRLF, or NULL */
    int delay_ms;        /* before the reply */
    bool held;           /* no reply before fake_server_release */
    enum fake_end end;
    int times;                           /* 0: once; FAKE_ALWAYS */
    const char *chunks[FAKE_CHUNKS_MAX]; /* the body, each piece sent on its own */
};
#define FAKE_ALWAYS (-1)

struct fake_server;

struct fake_server *fake_server_new(void);
void fake_server_free(struct fake_server *server);

/* "http://127.0.0.1:12345" */
const char *fake_server_url(const struct fake_server *server);

/* Adds to the script; the reply's strings must outlive the server. */
void fake_server_script(struct fake_server *server, const struct fake_reply *reply);

/* Lets one reply go that is held, or will be. */
void fake_server_release(struct fake_server *server);

/* Closes the port (true), so that connections are refused, or opens the same one again. */
void fake_server_refuse(struct fake_server *server, bool refuse);

/* Requests so far, answered or not. */
unsigned fake_server_count(struct fake_server *server);
/* Requests that no reply matched; they get a 501. */
unsigned fake_server_unscripted(struct fake_server *server);
/* Connections so far. */
unsigned fake_server_connections(struct fake_server *server);
/* The text of a request, head and body; free with g_free. NULL: there is no such one. */
char *fake_server_request(struct fake_server *server, unsigned index);
/* Until there were that many requests; false after `timeout_ms`. */
bool fake_server_wait(struct fake_server *server, unsigned count, int timeout_ms);
