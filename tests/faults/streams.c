/* SPDX-License-Identifier: Apache-2.0 */
#include "../prop/chance.h"
#include "easy.h"
#include "net.h"
#include "sim.h"

#include <string.h>

#define MULTIS_MAX 16

static struct multi *multis[MULTIS_MAX];
static uint64_t told;

uint64_t net_told(void)
{
    return told;
}

static void finish(struct easy *easy, CURLcode code)
{
    easy->stage = STAGE_DONE;
    easy->message = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = easy, .data.result = code};
    sim_trace("stream %s ends with %d, %ld (%s)", easy_path(easy), code, easy->status,
              easy->fault->name);
}

static void begin_stream(struct easy *easy)
{
    struct server_request request = easy_request(easy);
    bool watch = strstr(request.url, "watch=1") != NULL;

    easy->fault = faults_draw(watch ? WAY_WATCH : WAY_LIST);
    easy->until_fault = chance_below(8);
    easy->cut_at = G_MAXSIZE;
    easy->due_us = sim_now_us() + chance_below(2 * MS);
    if (easy->fault->act == ACT_SLOW)
        easy->due_us += chance_below(20 * S);
    sim_trace("stream %s begins (%s)", request.url, easy->fault->name);
    if (easy->fault->act == ACT_REFUSE) {
        finish(easy, CURLE_COULDNT_CONNECT);
        return;
    }
    if (easy->fault->act == ACT_LOSE) {
        easy->stage = STAGE_DEAD;
        return;
    }
    if (easy->fault->act == ACT_STATUS) {
        easy_refuse(&easy->reply, easy->fault);
        easy->retry_after_s = easy->fault->retry_after_s;
    } else {
        server_serve(&request, &easy->reply);
    }
    if (easy->fault->act == ACT_CUT && !watch)
        easy->cut_at = chance_below((uint32_t)easy->reply.body->len);
    easy->bookmark_us = sim_now_us() + 60 * S;
    easy->end_us = sim_now_us() + (int64_t)chance_between(300, 600) * S;
    easy->stage = easy->reply.watch ? STAGE_WATCH : STAGE_BODY;
    easy->status = easy->reply.watch ? 200 : 0;
}

/* A list is known when all of its pages have arrived, in whatever order. */
static void note_page(struct easy *easy)
{
    struct multi *multi = easy->multi;
    bool all = true;

    multi->list_version = MAX(multi->list_version, easy->reply.list_version);
    for (unsigned i = 0; i < EASIES_MAX; i++)
        all &= !multi->easies[i] || multi->easies[i]->stage == STAGE_DONE;
    if (all && multi->list_version > 0)
        server.known[easy->reply.resource] = multi->list_version;
}

/* Some of the body, at times in pieces. */
static void go_on_with_body(struct easy *easy)
{
    gsize end = MIN(easy->reply.body->len, easy->cut_at), length = end - easy->sent;

    easy->status = easy->reply.status;
    if (length > 1 && faults_possible() && chance_percent(50))
        length = 1 + chance_below((uint32_t)length);
    const char *bytes = easy->reply.body->str + easy->sent;
    easy->sent += length;
    if (!easy_deliver(easy, bytes, length)) {
        finish(easy, CURLE_WRITE_ERROR);
    } else if (easy->sent < end) {
        easy->due_us = sim_now_us() + faults_draw_lag_us();
    } else if (end < easy->reply.body->len) {
        finish(easy, CURLE_PARTIAL_FILE);
    } else {
        finish(easy, CURLE_OK);
        note_page(easy);
    }
}

static bool tell(struct easy *easy, const char *type, const char *object, gsize max)
{
    g_autofree char *line = g_strdup_printf("{\"type\":\"%s\",\"object\":%s}\n", type, object);

    return easy_deliver(easy, line, MIN(strlen(line), max));
}

/* The fault of a watch comes after some changes. */
static bool fail_watch(struct easy *easy, const struct change *change)
{
    struct server_reply error = {.body = g_string_new(NULL)};

    switch (easy->fault->act) {
    case ACT_CUT:
        tell(easy, change->type, change->object, chance_below(100));
        finish(easy, CURLE_RECV_ERROR);
        break;
    case ACT_ERROR:
        easy_refuse(&error, easy->fault);
        finish(easy, tell(easy, "ERROR", error.body->str, G_MAXSIZE) ? CURLE_OK : CURLE_WRITE_ERROR);
        break;
    case ACT_SILENCE:
        easy->stage = STAGE_DEAD;
        break;
    case ACT_END:
        finish(easy, CURLE_OK);
        break;
    default:
        g_string_free(error.body, TRUE);
        return false;
    }
    g_string_free(error.body, TRUE);
    return true;
}

static void tell_bookmark(struct easy *easy)
{
    g_autofree char *object =
        g_strdup_printf("{\"metadata\":{\"resourceVersion\":\"%" G_GINT64_FORMAT "\"}}",
                        server.version);

    easy->bookmark_us = sim_now_us() + 60 * S;
    tell(easy, "BOOKMARK", object, G_MAXSIZE);
    server.known[easy->reply.resource] = server.version;
}

static void go_on_with_watch(struct easy *easy)
{
    bool gone;
    const struct change *change = server_change(easy->reply.resource, easy->reply.cursor, &gone);

    if (gone) {
        struct server_reply error = {.body = g_string_new(NULL)};
        server_refuse(&error, 410, "Expired", "too old resource version");
        finish(easy, tell(easy, "ERROR", error.body->str, G_MAXSIZE) ? CURLE_OK : CURLE_WRITE_ERROR);
        g_string_free(error.body, TRUE);
        return;
    }
    if (!change) {
        if (sim_now_us() >= easy->end_us)
            finish(easy, CURLE_OK);
        else if (sim_now_us() >= easy->bookmark_us)
            tell_bookmark(easy);
        easy->due_us = MIN(easy->bookmark_us, easy->end_us);
        return;
    }
    const struct fault *fault = faults_draw_midway();
    if (fault) {
        easy->fault = fault;
        easy->until_fault = 0;
    }
    if (easy->until_fault == 0 && faults_possible() && fail_watch(easy, change))
        return;
    const char *type = change->type;
    int64_t version = change->version;
    g_autofree char *object = g_strdup(change->object);
    unsigned times = easy->until_fault == 0 && easy->fault->act == ACT_REPEAT ? 2 : 1;
    easy->until_fault -= easy->until_fault > 0;
    easy->reply.cursor++;
    told++;
    sim_trace("told: %s %s", type, object);
    for (; times > 0 && easy->stage == STAGE_WATCH; times--) {
        if (!tell(easy, type, object, G_MAXSIZE))
            finish(easy, CURLE_WRITE_ERROR);
    }
    server.known[easy->reply.resource] = version;
    easy->due_us = sim_now_us() + (chance_percent(70) ? 0 : faults_draw_lag_us());
}

void net_tell(void)
{
    for (unsigned i = 0; i < MULTIS_MAX; i++) {
        struct easy *easy = multis[i] ? multis[i]->easies[0] : NULL;
        bool gone;
        if (!easy || easy->stage != STAGE_WATCH ||
            easy->due_us < MIN(easy->bookmark_us, easy->end_us) ||
            !server_change(easy->reply.resource, easy->reply.cursor, &gone))
            continue;
        easy->due_us = sim_now_us() + faults_draw_lag_us();
        sim_signal(easy->multi);
    }
}

void net_reset(void)
{
    for (unsigned i = 0; i < MULTIS_MAX; i++)
        HOLDS(!multis[i], "a stream is left");
}

CURLM *__wrap_curl_multi_init(void);
CURLMcode __wrap_curl_multi_cleanup(CURLM *handle);
CURLMcode __wrap_curl_multi_add_handle(CURLM *handle, CURL *easy);
CURLMcode __wrap_curl_multi_remove_handle(CURLM *handle, CURL *easy);
CURLMcode __wrap_curl_multi_perform(CURLM *handle, int *ret_running);
CURLMcode __wrap_curl_multi_poll(CURLM *handle, struct curl_waitfd *files, unsigned n, int ms,
                                 int *ret_n);
CURLMcode __wrap_curl_multi_wakeup(CURLM *handle);
CURLMsg *__wrap_curl_multi_info_read(CURLM *handle, int *ret_left);

CURLM *__wrap_curl_multi_init(void)
{
    struct multi *multi = g_new0(struct multi, 1);
    unsigned i = 0;

    while (multis[i])
        HOLDS(++i < MULTIS_MAX, "more than %d streams", MULTIS_MAX);
    multis[i] = multi;
    return (CURLM *)multi;
}

CURLMcode __wrap_curl_multi_cleanup(CURLM *handle)
{
    for (unsigned i = 0; i < MULTIS_MAX; i++) {
        if (multis[i] == (struct multi *)handle)
            multis[i] = NULL;
    }
    g_free(handle);
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_add_handle(CURLM *handle, CURL *curl)
{
    struct multi *multi = (struct multi *)handle;
    struct easy *easy = curl;

    unsigned i = 0, others = 0;
    for (unsigned j = 0; j < EASIES_MAX; j++)
        others += multi->easies[j] != NULL;
    while (multi->easies[i])
        HOLDS(++i < EASIES_MAX, "more than %d transfers", EASIES_MAX);
    multi->easies[i] = easy;
    if (others == 0)
        multi->list_version = 0;
    easy->multi = multi;
    easy->stage = STAGE_NEW;
    easy->reply = (struct server_reply){.body = g_string_new(NULL)};
    easy->status = easy->retry_after_s = 0;
    easy->sent = 0;
    easy->told = false;
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_remove_handle(CURLM *handle, CURL *curl)
{
    struct easy *easy = curl;

    struct multi *multi = (struct multi *)handle;
    for (unsigned i = 0; i < EASIES_MAX; i++) {
        if (multi->easies[i] == easy)
            multi->easies[i] = NULL;
    }
    easy->multi = NULL;
    g_string_free(easy->reply.body, TRUE);
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_perform(CURLM *handle, int *ret_running)
{
    struct multi *multi = (struct multi *)handle;

    *ret_running = 0;
    for (unsigned i = 0; i < EASIES_MAX; i++) {
        struct easy *easy = multi->easies[i];
        if (!easy)
            continue;
        if (easy->stage == STAGE_NEW)
            begin_stream(easy);
        while (sim_now_us() >= easy->due_us &&
               (easy->stage == STAGE_BODY || easy->stage == STAGE_WATCH)) {
            if (easy->stage == STAGE_BODY)
                go_on_with_body(easy);
            else
                go_on_with_watch(easy);
        }
        *ret_running += easy->stage != STAGE_DONE;
    }
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_poll(CURLM *handle, struct curl_waitfd *files, unsigned n, int ms,
                                 int *ret_n)
{
    struct multi *multi = (struct multi *)handle;
    int64_t until_us = sim_now_us() + (int64_t)ms * MS;

    for (unsigned i = 0; i < EASIES_MAX; i++) {
        const struct easy *easy = multi->easies[i];
        if (easy && (easy->stage == STAGE_BODY || easy->stage == STAGE_WATCH))
            until_us = MIN(until_us, easy->due_us);
    }
    if (!multi->woken)
        sim_wait(multi, until_us);
    multi->woken = false;
    return CURLM_OK;
}

CURLMcode __wrap_curl_multi_wakeup(CURLM *handle)
{
    ((struct multi *)handle)->woken = true;
    sim_signal(handle);
    return CURLM_OK;
}

CURLMsg *__wrap_curl_multi_info_read(CURLM *handle, int *ret_left)
{
    struct multi *multi = (struct multi *)handle;

    *ret_left = 0;
    for (unsigned i = 0; i < EASIES_MAX; i++) {
        struct easy *easy = multi->easies[i];
        if (!easy || easy->stage != STAGE_DONE || easy->told)
            continue;
        easy->told = true;
        return &easy->message;
    }
    return NULL;
}
