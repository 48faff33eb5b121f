/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What stands for libcurl's handles: the options that matter, and where a transfer is. For net.c,
 * which carries out single requests, and streams.c, which carries out lists and watches.
 */
#include "faults.h"
#include "server.h"

#include <curl/curl.h>

#define MS 1000
#define S (1000 * MS)
#define EASIES_MAX 4

enum stage { STAGE_NEW, STAGE_BODY, STAGE_WATCH, STAGE_DEAD, STAGE_DONE };

struct easy {
    char *url, *method, *body;
    curl_off_t body_length;
    const struct curl_slist *headers;
    curl_write_callback write;
    void *write_data;
    curl_prereq_callback before;
    void *before_data;
    void *private;
    long timeout_ms;

    long status;
    int retry_after_s;

    /* In a multi: */
    struct multi *multi;
    enum stage stage;
    const struct fault *fault;
    struct server_reply reply;
    gsize sent, cut_at;   /* of reply.body */
    int64_t due_us;       /* nothing happens before */
    int64_t bookmark_us, end_us;
    unsigned until_fault; /* changes of a watch */
    CURLMsg message;
    bool told;
};

struct multi {
    struct easy *easies[EASIES_MAX];
    int64_t list_version; /* of the pages that arrive, once the last one has */
    bool woken;
};

const char *easy_path(const struct easy *easy);
struct server_request easy_request(const struct easy *easy);
/* False: the program wants no more. */
bool easy_deliver(struct easy *easy, const char *bytes, gsize length);
/* The reply is that of a fault. */
void easy_refuse(struct server_reply *reply, const struct fault *fault);
