/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include "../prop/chance.h"
#include "faults.h"
#include "server.h"
#include "sim.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000
#define S (1000 * MS)
#define MULTIS_MAX 16
#define EASIES_MAX 4
#define SENT_MAX 64

static struct {
    uint64_t told;
    struct multi *multis[MULTIS_MAX];
    struct easy *sent[SENT_MAX]; /* that the server has not heeded yet */
    GQueue late;                 /* struct late * */
} net;

uint64_t net_told(void)
{
    return net.told;
}

/* --- handles -------------------------------------------------------------------------------- */

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

static char *authorization(const struct easy *easy)
{
    static const char key[] = "Authorization: ";

    for (const struct curl_slist *header = easy->headers; header; header = header->next) {
        if (g_str_has_prefix(header->data, key))
            return header->data + strlen(key);
    }
    return NULL;
}

static const char *path_of(const struct easy *easy)
{
    return strstr(easy->url, "://") ? strchr(strstr(easy->url, "://") + 3, '/') : easy->url;
}

static struct server_request request_of(const struct easy *easy)
{
    return (struct server_request){easy->method, path_of(easy), easy->body, authorization(easy)};
}

static void refuse(struct server_reply *reply, const struct fault *fault)
{
    server_refuse(reply, fault->status, fault->reason, fault->name);
}

/* --- one request, one reply ----------------------------------------------------------------- */

struct late {
    int64_t at_us;
    char *method, *url, *body, *authorization;
    char *uid; /* of the pod that it would bind, or NULL */
    struct pod *pod;
};

static void carry_out(struct late *late)
{
    struct server_reply reply = {.body = g_string_new(NULL)};

    server_serve(&(struct server_request){late->method, late->url, late->body, late->authorization},
                 &reply);
    sim_trace("late %s %s: %ld", late->method, late->url, reply.status);
    net_tell();
    g_string_free(reply.body, TRUE);
}

static void forget_late(struct late *late)
{
    if (late->pod && late->pod->exists && g_str_equal(late->pod->uid, late->uid))
        late->pod->late--;
    g_queue_remove(&net.late, late);
    g_free(late->method);
    g_free(late->url);
    g_free(late->body);
    g_free(late->authorization);
    g_free(late->uid);
    g_free(late);
}

static void serve_late(void *data)
{
    struct late *late = data;

    sim_sleep(late->at_us - sim_now_us());
    carry_out(late);
    forget_late(late);
}

/* The server has the request, and we do not wait for it. */
static void leave_behind(const struct easy *easy, int64_t after_us)
{
    struct server_request request = request_of(easy);
    struct late *late = g_new0(struct late, 1);
    int card;
    struct pod *pod = server_binding(&request, &card);

    late->at_us = sim_now_us() + after_us;
    late->method = g_strdup(request.method);
    late->url = g_strdup(request.url);
    late->body = g_strdup(request.body);
    late->authorization = g_strdup(request.authorization);
    if (pod) {
        late->pod = pod;
        late->uid = g_strdup(pod->uid);
        pod->late++;
        pod->late_card = card;
    }
    g_queue_push_tail(&net.late, late);
    sim_spawn(serve_late, late);
}

static struct easy **place_of(struct easy *easy)
{
    unsigned i = 0;

    while (net.sent[i] != easy)
        HOLDS(++i < SENT_MAX, "more than %d requests at a time", SENT_MAX);
    return &net.sent[i];
}

static void travel(struct easy *easy, int64_t lag_us)
{
    *place_of(NULL) = easy;
    sim_sleep(lag_us);
    *place_of(easy) = NULL;
}

void net_crash(void)
{
    struct server_reply reply = {.body = g_string_new(NULL)};
    struct late *late;

    for (unsigned i = 0; i < SENT_MAX; i++) {
        if (net.sent[i] && chance_percent(50)) {
            struct server_request request = request_of(net.sent[i]);
            server_serve(&request, &reply);
            sim_trace("crash: %s %s: %ld", request.method, request.url, reply.status);
        }
        net.sent[i] = NULL;
    }
    while ((late = g_queue_peek_head(&net.late))) {
        if (chance_percent(50))
            carry_out(late);
        forget_late(late);
    }
    g_string_free(reply.body, TRUE);
}

/* A Binding is under way twice at most with the same words. */
static void check_repeated(const struct easy *easy)
{
    struct server_request request = request_of(easy);
    int card;
    const struct pod *pod = server_binding(&request, &card);

    /* The server binds no pod that is being deleted, and one that has ended holds nothing. */
    if (pod && (pod->terminating || pod->phase == SUCCEEDED || pod->phase == FAILED))
        return;
    HOLDS(!pod || pod->late == 0 || pod->late_card == card,
          "%s was sent to card %d, and to card %d, which may still be carried out",
          pod ? pod->uid : "", card, pod ? pod->late_card : 0);
}

static bool deliver(struct easy *easy, const char *bytes, gsize length)
{
    return length == 0 || easy->write((char *)bytes, 1, length, easy->write_data) == length;
}

static CURLcode wait_in_vain(int64_t until_us)
{
    sim_sleep(until_us - sim_now_us());
    return CURLE_OPERATION_TIMEDOUT;
}

static CURLcode exchange(struct easy *easy, const struct fault *fault, struct server_reply *reply)
{
    int64_t until_us = easy->timeout_ms > 0 ? sim_now_us() + easy->timeout_ms * MS : SIM_FOREVER;
    int64_t lag_us = fault->act == ACT_SLOW ? chance_below(20 * S) : chance_below(3 * MS);
    struct server_request request = request_of(easy);

    if (fault->act == ACT_REFUSE) {
        sim_sleep(MIN(chance_below(3 * S), until_us - sim_now_us()));
        return CURLE_COULDNT_CONNECT;
    }
    sim_sleep(chance_below(MS));
    if (easy->before && easy->before(easy->before_data, (char *)"", (char *)"", 0, 0) != 0)
        return CURLE_ABORTED_BY_CALLBACK;
    check_repeated(easy);
    if (fault->act == ACT_LOSE)
        return wait_in_vain(until_us);
    if (fault->act == ACT_LATE || sim_now_us() + lag_us >= until_us) {
        /* Our words may be under way for a minute and a half, and then be heeded for another. */
        leave_behind(easy, fault->act == ACT_LATE ? chance_below(140 * S) : lag_us);
        if (fault->act == ACT_LATE && chance_percent(50))
            return CURLE_RECV_ERROR;
        return wait_in_vain(until_us);
    }
    travel(easy, lag_us);
    if (fault->act == ACT_STATUS) {
        refuse(reply, fault);
        easy->retry_after_s = fault->retry_after_s;
    } else {
        server_serve(&request, reply);
        net_tell();
    }
    sim_trace("%s %s: %ld (%s)", request.method, request.url, reply->status, fault->name);
    if (fault->act == ACT_DONE_CUT)
        return chance_percent(50) ? CURLE_RECV_ERROR : CURLE_GOT_NOTHING;
    if (fault->act == ACT_DONE_LOST)
        return wait_in_vain(until_us);
    if (fault->act == ACT_DONE_500)
        server_refuse(reply, 500, "InternalError", fault->name);
    if (sim_now_us() + (lag_us = faults_draw_lag_us()) >= until_us)
        return wait_in_vain(until_us);
    sim_sleep(lag_us);
    easy->status = reply->status;
    if (fault->act == ACT_CUT) {
        deliver(easy, reply->body->str, chance_below((uint32_t)reply->body->len + 1));
        return CURLE_PARTIAL_FILE;
    }
    return deliver(easy, reply->body->str, reply->body->len) ? CURLE_OK : CURLE_WRITE_ERROR;
}

CURLcode __wrap_curl_easy_perform(CURL *handle);

CURLcode __wrap_curl_easy_perform(CURL *handle)
{
    struct easy *easy = handle;
    struct server_reply reply = {.body = g_string_new(NULL)};
    const struct fault *fault = faults_draw(strcmp(easy->method, "GET") == 0 ? WAY_READ : WAY_WRITE);

    easy->status = 0;
    easy->retry_after_s = 0;
    CURLcode code = exchange(easy, fault, &reply);
    sim_trace("%s %s ends with %d, %ld (%s)", easy->method, path_of(easy), code, easy->status,
              fault->name);
    g_string_free(reply.body, TRUE);
    return code;
}

/* --- streams -------------------------------------------------------------------------------- */

static void finish(struct easy *easy, CURLcode code)
{
    easy->stage = STAGE_DONE;
    easy->message = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = easy, .data.result = code};
    sim_trace("stream %s ends with %d, %ld (%s)", path_of(easy), code, easy->status,
              easy->fault->name);
}

static void begin_stream(struct easy *easy)
{
    struct server_request request = request_of(easy);
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
        refuse(&easy->reply, easy->fault);
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
    if (!deliver(easy, bytes, length)) {
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

    return deliver(easy, line, MIN(strlen(line), max));
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
        refuse(&error, easy->fault);
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
        g_strdup_printf("{\"metadata\":{\"resourceVersion\":\"%" G_GINT64_FORMAT "\"}}", server.version);

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
    if (easy->until_fault == 0 && fail_watch(easy, change))
        return;
    const char *type = change->type;
    int64_t version = change->version;
    g_autofree char *object = g_strdup(change->object);
    unsigned times = easy->until_fault == 0 && easy->fault->act == ACT_REPEAT ? 2 : 1;
    easy->until_fault -= easy->until_fault > 0;
    easy->reply.cursor++;
    net.told++;
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
        struct easy *easy = net.multis[i] ? net.multis[i]->easies[0] : NULL;
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
        HOLDS(!net.multis[i], "a stream is left");
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

    while (net.multis[i])
        HOLDS(++i < MULTIS_MAX, "more than %d streams", MULTIS_MAX);
    net.multis[i] = multi;
    return (CURLM *)multi;
}

CURLMcode __wrap_curl_multi_cleanup(CURLM *handle)
{
    for (unsigned i = 0; i < MULTIS_MAX; i++) {
        if (net.multis[i] == (struct multi *)handle)
            net.multis[i] = NULL;
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

/* --- options -------------------------------------------------------------------------------- */

CURL *__wrap_curl_easy_init(void);
void __wrap_curl_easy_cleanup(CURL *handle);
void __wrap_curl_easy_reset(CURL *handle);
CURLcode __wrap_curl_easy_setopt(CURL *handle, CURLoption option, ...);
CURLcode __wrap_curl_easy_getinfo(CURL *handle, CURLINFO info, ...);

CURL *__wrap_curl_easy_init(void)
{
    return g_new0(struct easy, 1);
}

void __wrap_curl_easy_reset(CURL *handle)
{
    struct easy *easy = handle;

    g_free(easy->url);
    g_free(easy->method);
    g_free(easy->body);
    *easy = (struct easy){.stage = STAGE_NEW};
}

void __wrap_curl_easy_cleanup(CURL *handle)
{
    if (handle)
        __wrap_curl_easy_reset(handle);
    g_free(handle);
}

CURLcode __wrap_curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
    struct easy *easy = handle;
    va_list values;

    va_start(values, option);
    switch ((int)option) {
    case CURLOPT_URL:
        easy->url = g_strdup(va_arg(values, char *));
        break;
    case CURLOPT_CUSTOMREQUEST:
        easy->method = g_strdup(va_arg(values, char *));
        break;
    case CURLOPT_POSTFIELDS:
        easy->body = g_strdup(va_arg(values, char *));
        break;
    case CURLOPT_HTTPHEADER:
        easy->headers = va_arg(values, struct curl_slist *);
        break;
    case CURLOPT_WRITEFUNCTION:
        easy->write = va_arg(values, curl_write_callback);
        break;
    case CURLOPT_WRITEDATA:
        easy->write_data = va_arg(values, void *);
        break;
    case CURLOPT_PREREQFUNCTION:
        easy->before = va_arg(values, curl_prereq_callback);
        break;
    case CURLOPT_PREREQDATA:
        easy->before_data = va_arg(values, void *);
        break;
    case CURLOPT_PRIVATE:
        easy->private = va_arg(values, void *);
        break;
    case CURLOPT_TIMEOUT_MS:
        easy->timeout_ms = va_arg(values, long);
        break;
    default:
        break; /* about connections, of which there are none */
    }
    va_end(values);
    return CURLE_OK;
}

CURLcode __wrap_curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
    const struct easy *easy = handle;
    va_list values;

    va_start(values, info);
    if (info == CURLINFO_RESPONSE_CODE)
        *va_arg(values, long *) = easy->status;
    else if (info == CURLINFO_PRIVATE)
        *va_arg(values, void **) = easy->private;
    else if (info == CURLINFO_RETRY_AFTER)
        *va_arg(values, curl_off_t *) = easy->retry_after_s;
    va_end(values);
    return CURLE_OK;
}
