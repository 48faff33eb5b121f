/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A consistent list of the API server, read page by page, its objects handed out one by one as
 * they arrive. One thread, that of the stream.
 */
#include "kube/api_stream.h"
#include "kube/framer.h"

/* Each page costs the API server time of its own. */
#define API_LIST_PAGE 1000
/* Two million objects; Kubernetes is made for 150,000 pods. A list that is longer has no end. */
#define API_LIST_PAGES_MAX 2000
/* A third and more of what the API server writes, about who wrote what; objects come without it. */
#define API_LIST_UNREAD "managedFields"

struct api_list_call {
    const char *path;           /* without query, escaped */
    int64_t page;               /* objects in one reply; 0: all of them */
    int64_t idle_ms;            /* as in struct api_stream_call */
    framer_emit emit;
    void *data;
};

/* Reads all pages. STREAM_COMPLETE: `ret_version` is the resourceVersion of all of them (g_free).
 * Anything else is how the page that failed ended, what it held in part having been handed out; a
 * reply that is no list is STREAM_ABORTED. After status 410 the pages' common snapshot has expired:
 * one reply without pages cannot. */
struct stream_result api_list_run(struct api_stream *stream, const struct api_list_call *call,
                                  char **ret_version, GError **error);

/* Appends a parameter to a URL, escaped; `url` has a query already or not. */
void api_url_add(GString *url, const char *name, const char *value);
void api_url_add_number(GString *url, const char *name, int64_t value);
