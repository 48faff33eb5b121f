/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Replies that are too long to keep or never end: lists and watches, handed on as they arrive.
 * A stream belongs to one thread; only api_stream_stop and _wake may come from another.
 */
#include "kube/api_client.h"

#define API_STREAM_CALLS 2 /* at a time, each on a connection of its own */

struct api_stream;

/* Borrows the client. */
struct api_stream *api_stream_new(struct api_client *client);
/* Not while a call is under way. */
void api_stream_free(struct api_stream *stream);

/* From any thread: ends the call or pause that is under way, and all later ones, at once. */
void api_stream_stop(struct api_stream *stream);
bool api_stream_is_stopped(const struct api_stream *stream);

/* From any thread: ends the pause or the wakeable call that is under way; else the next of them ends
 * at once. */
void api_stream_wake(struct api_stream *stream);

/* Sleeps, or less if woken; false if stopped. */
bool api_stream_pause(struct api_stream *stream, int64_t duration_ms);

struct api_stream_call {
    const char *path; /* with query, escaped */
    bool compressed;
    bool wakeable;   /* api_stream_wake ends it */
    int64_t idle_ms; /* without one byte for that long the connection counts as dead */
    /* What the body of a 200 brings. False, with an error, ends the run. */
    /* Once it has been open for so long after a 200, be it that no byte of the body has come; or NULL. */
    int64_t open_ms;
    void (*opened)(void *data);
    bool (*receive)(const char *bytes, size_t length, void *data, GError **error);
    /* After the last byte of it; or NULL. */
    bool (*complete)(void *data, GError **error);
    void *data;
};

enum stream_end {
    STREAM_COMPLETE,    /* the server ended its reply */
    STREAM_CUT,         /* the connection was lost, or idle for too long, after bytes of a 200 */
    STREAM_STATUS,      /* another status than 200 */
    STREAM_UNREACHABLE, /* no reply at all */
    STREAM_ABORTED,     /* by `receive` or `complete` */
    STREAM_STOPPED,
    STREAM_WOKEN,
};

struct stream_result {
    enum stream_end end;
    long status;
    int64_t retry_after_ms; /* 0: not said */
    bool silent;            /* CUT, UNREACHABLE: it was idle for too long */
};

/* Adds a GET to those that the next run, or the one under way, makes: from `receive` and `complete`
 * too. It begins as soon as fewer than API_STREAM_CALLS are under way; only one can wait for that.
 * `path` is copied. */
void api_stream_add(struct api_stream *stream, const struct api_stream_call *call);

/* Until all calls are complete, or one of them is not: then the others are given up. All ends but
 * STREAM_COMPLETE, _STOPPED and _WOKEN come with an error. */
struct stream_result api_stream_run(struct api_stream *stream, GError **error);
