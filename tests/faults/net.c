/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include "../prop/chance.h"
#include "easy.h"
#include "sim.h"

#include <string.h>

#define SENT_MAX 64

static struct {
    struct easy *sent[SENT_MAX]; /* that the server has not heeded yet */
    GQueue late;                 /* struct late * */
} net;

struct net_watcher net_watcher;

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
    struct server_request request = easy_request(easy);
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
            struct server_request request = easy_request(net.sent[i]);
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
    struct server_request request = easy_request(easy);
    int card;
    const struct pod *pod = server_binding(&request, &card);

    /* The server binds no pod that is being deleted, and one that has ended holds nothing. */
    if (pod && (pod->terminating || pod->phase == SUCCEEDED || pod->phase == FAILED))
        return;
    HOLDS(!pod || pod->late == 0 || pod->late_card == card,
          "%s was sent to card %d, and to card %d, which may still be carried out",
          pod ? pod->uid : "", card, pod ? pod->late_card : 0);
}

static bool is_binding(const struct server_request *request)
{
    return strcmp(request->method, "POST") == 0 && strstr(request->url, "/binding") != NULL;
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
    struct server_request request = easy_request(easy);

    if (fault->act == ACT_REFUSE) {
        lag_us = chance_below(3 * S);
        sim_sleep(MIN(lag_us, until_us - sim_now_us()));
        return CURLE_COULDNT_CONNECT;
    }
    sim_sleep(chance_below(MS));
    if (easy->before && easy->before(easy->before_data, (char *)"", (char *)"", 0, 0) != 0)
        return CURLE_ABORTED_BY_CALLBACK;
    if (net_watcher.sent)
        net_watcher.sent(&request);
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
    if (fault->act == ACT_OPEN && is_binding(&request))
        leave_behind(easy, chance_below(140 * S));
    if (fault->act == ACT_STATUS || fault->act == ACT_OPEN) {
        easy_refuse(reply, fault);
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
        easy_deliver(easy, reply->body->str, chance_below((uint32_t)reply->body->len + 1));
        return CURLE_PARTIAL_FILE;
    }
    return easy_deliver(easy, reply->body->str, reply->body->len) ? CURLE_OK : CURLE_WRITE_ERROR;
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
    const struct server_request request = easy_request(easy);
    if (net_watcher.heard)
        net_watcher.heard(&request, code == CURLE_OK ? easy->status : 0, reply.body->str);
    sim_trace("%s %s ends with %d, %ld (%s)", easy->method, easy_path(easy), code, easy->status,
              fault->name);
    g_string_free(reply.body, TRUE);
    return code;
}
