/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A reflector against a scripted API server. The store is a fake that writes down what it is told,
 * so that a program includes this once.
 */
#include "kube/reflector.h"
#include "store/kinds/kind.h"
#include "wire/budget.h"
#include "wire/pod_group.h"
#include "wire/resource_quota.h"
#include "scripted_api.h"

#include <pthread.h>
#include <string.h>

static struct reflector *running;

static const struct reflector_options quick = {
    .backoff_ms = 20,
    .backoff_max_ms = 80,
    .idle_ms = 10000,
    .short_watch_ms = 1,
    .page = 2,
};

/* --- the store ------------------------------------------------------------------------------ */

static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t trace_grown = PTHREAD_COND_INITIALIZER;
static GString *trace; /* a word for each call, with a space after it */

G_GNUC_PRINTF(1, 2)
static inline void note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    pthread_mutex_lock(&trace_lock);
    g_string_append_vprintf(trace, format, arguments);
    g_string_append_c(trace, ' ');
    pthread_cond_broadcast(&trace_grown);
    pthread_mutex_unlock(&trace_lock);
    va_end(arguments);
}

void store_list_begin(struct store *store, enum feed feed)
{
    note("(");
}

void store_list_end(struct store *store, enum feed feed)
{
    note(")");
}

void store_list_spare(struct store *store, enum feed feed)
{
    note("spared");
}

void store_set_unwatched(struct store *store, enum feed feed, const char *why)
{
    note(why ? "unwatched" : "watched");
}

/* Only changes; read once the trace says that they have been made. */
static GString *troubles;

void store_set_trouble(struct store *store, enum feed feed, const char *why)
{
    g_autofree char *word = g_strconcat(why ? why : "well", " ", NULL);

    pthread_mutex_lock(&trace_lock);
    if (!g_str_has_suffix(troubles->str, word))
        g_string_append(troubles, word);
    pthread_mutex_unlock(&trace_lock);
}

void store_apply_pod(struct store *store, const struct pod_view *pod)
{
    note("%s@%s", pod->uid, pod->node_name ? pod->node_name : "");
}

void store_vanish_pod(struct store *store, const char *uid)
{
    note("-%s", uid);
}

void store_apply_node(struct store *store, const struct node_view *node)
{
    note("%s", node->name);
}

void store_delete_node(struct store *store, const char *name)
{
    note("-%s", name);
}

/* How much of each there is. */
static inline int amount_of(enum feed feed, const void *view)
{
    switch (feed) {
    case FEED_BUDGETS:
        return (int)((const struct budget_view *)view)->allowed;
    case FEED_RESOURCE_QUOTAS:
    case FEED_ELASTIC_QUOTAS:
        return (int)((const struct resource_quota_view *)view)->hard.n;
    default:
        return (int)((const struct pod_group_view *)view)->min;
    }
}

void store_apply_object(struct store *store, enum feed feed, const void *view)
{
    const struct object_name *name = view;
    const struct configmap_view *configmap = view;

    if (feed == FEED_CONFIGMAPS)
        note("%s/%s=%s", name->ns, name->name,
             configmap->data.n ? configmap->data.items[0].value : "");
    else
        note("%s/%s=%d", name->ns, name->name, amount_of(feed, view));
}

void store_remove_object(struct store *store, enum feed feed, const struct object_name *name)
{
    note("-%s/%s", name->ns, name->name);
}

/* Until the trace reads exactly so. */
static inline void expect_trace(const char *expected)
{
    const int64_t until_us = g_get_real_time() + PATIENT_MS * 1000;
    const struct timespec until = {until_us / G_USEC_PER_SEC, until_us % G_USEC_PER_SEC * 1000};
    int failure = 0;

    pthread_mutex_lock(&trace_lock);
    while (trace->len < strlen(expected) && failure == 0)
        failure = pthread_cond_timedwait(&trace_grown, &trace_lock, &until);
    g_autofree char *seen = g_strdup(trace->str);
    pthread_mutex_unlock(&trace_lock);
    ck_assert_str_eq(seen, expected);
}

/* --- the world ------------------------------------------------------------------------------ */

static inline void setup(void)
{
    api_begin();
    trace = g_string_new(NULL);
    troubles = g_string_new(NULL);
}

static inline void teardown(void)
{
    g_clear_pointer(&running, reflector_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_end();
    g_string_free(trace, TRUE);
    g_string_free(troubles, TRUE);
}

static inline void start_with(enum feed feed, const struct reflector_options *options)
{
    running = reflector_start(client, NULL, feed, options, NULL);
    ck_assert(running);
}

static inline void start(enum feed feed)
{
    start_with(feed, &quick);
}

/* The first line of a request, which must have come or come soon. */
static inline char *request_line(unsigned index)
{
    expect_requests(index + 1);
    g_autofree char *request = fake_server_request(server, index);
    return g_strndup(request, strcspn(request, "\r\n"));
}

static inline void expect_request(unsigned index, const char *part)
{
    g_autofree char *line = request_line(index);
    ck_assert_msg(strstr(line, part), "request %u: \"%s\" is not in \"%s\"", index, part, line);
}

static inline void expect_no_part(unsigned index, const char *part)
{
    g_autofree char *line = request_line(index);
    ck_assert_msg(!strstr(line, part), "request %u: \"%s\" is in \"%s\"", index, part, line);
}

#define LIST_OF(version, items)                                                                    \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items   \
    "]}"
#define PAGE_OF(version, more, items)                                                              \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" more \
    "\"},\"items\":[" items "]}"
#define POD(uid, version, node)                                                                    \
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"" uid                            \
    "\",\"resourceVersion\":\"" version "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"
#define BOOKMARK(version)                                                                          \
    EVENT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define ERROR_EVENT(code)                                                                          \
    EVENT("ERROR", "{\"kind\":\"Status\",\"code\":" code ",\"message\":\"too old\"}")

/* An empty list at version 10. */
static inline void script_empty_list(void)
{
    script(&(struct fake_reply){.match = "limit=", .chunks = {LIST_OF("10", "")}});
}

/* A watch that stays. */
static inline void script_quiet_watch(void)
{
    script(&(struct fake_reply){.match = "watch=1", .end = FAKE_HANG});
}
