/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A store that lives, what a record keeps of it, and the file that begins with that: whoever plays the
 * file knows what the store knew.
 */
#include "literals.h"
#include "objects.h"
#include "recorded_line.h"

#include "verbs/extender.h"
#include "base/log.h"
#include "record/record_state.h"
#include "record/replay.h"
#include "suite.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define COUNT "aliyun.com/gpu-count"

static struct store_options live_options;
static struct store *live;
static struct record_state *state;
static uint64_t number;
static struct replay *next_file; /* NULL until the next file has begun */

static inline bool configure(void *data, const cJSON *options, struct store_options *ret_options,
                             struct extender *ret_extender, GError **error)
{
    *ret_options = live_options;
    return true;
}

static inline void setup_with(struct store_options options)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    live_options = options;
    live = store_new(&live_options);
    state = record_state_new();
    number = 0;
    next_file = NULL;
}

static inline void setup(void)
{
    setup_with((struct store_options){.patience_ms = 60000});
}

static inline void teardown(void)
{
    if (next_file)
        replay_free(next_file);
    record_state_free(state);
    store_free(live);
}

static inline void play(const char *text)
{
    for (const char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
        g_autoptr(GError) error = NULL;
        ck_assert_msg(replay_line(next_file, at, (size_t)(end - at), &error), "%.*s: %s",
                      (int)(end - at), at, error ? error->message : "");
    }
}

/* What has happened to the live store. */
static inline void note(struct record *take_record)
{
    if (next_file) {
        end_line(take_record);
        play(take_record->text->str);
    } else {
        record_state_note(state, take_record);
    }
    record_free(take_record);
}

static inline void begin_file(void)
{
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(text,
                    "{\"kind\":\"header\",\"format\":4,\"before\":%" G_GUINT64_FORMAT
                    ",\"options\":{}}\n",
                    number);
    record_state_write(state, text);
    next_file = replay_new(&(struct replay_options){.configure = configure});
    play(text->str);
}

/* --- events --------------------------------------------------------------------------------- */

static inline void list(enum observed kind, enum feed feed)
{
    if (kind == OBSERVED_LIST_BEGIN)
        store_list_begin(live, feed);
    else
        store_list_end(live, feed);
    note(record_new(&(struct observation){.what = kind == OBSERVED_LIST_BEGIN ? OBSERVED_LIST_BEGIN
                                                                              : OBSERVED_LIST_END,
                                          .number = ++number,
                                          .feed = feed}));
}

static inline void add_node(const char *name)
{
    const struct node_view view = {.name = name, .capacity = PAIRS({MEM, "10"}, {COUNT, "1"})};

    store_apply_node(live, &view);
    note(record_new(
        &(struct observation){.what = OBSERVED_NODE, .number = ++number, .node = &view}));
}

static inline void add_pod(const char *uid, const char *mem, const char *nominated)
{
    const struct pod_view view = {.ns = "ml",
                                  .name = uid,
                                  .uid = uid,
                                  .priority = 5,
                                  .nominated_node = nominated,
                                  .phase = "Pending",
                                  CONTAINERS({.name = "c", .limits = PAIRS({MEM, mem})})};

    store_apply_pod(live, &view);
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &view, .trust = TRUST_ANNOTATIONS}));
}

static inline void add_running(const char *uid, const char *mem, const char *node)
{
    const struct pod_view view = {.ns = "ml",
                                  .name = uid,
                                  .uid = uid,
                                  .node_name = node,
                                  .phase = "Running",
                                  .annotations = PAIRS({"ALIYUN_COM_GPU_MEM_IDX", "0"}),
                                  CONTAINERS({.name = "c", .limits = PAIRS({MEM, mem})})};

    store_apply_pod(live, &view);
    note(record_new(&(struct observation){
        .what = OBSERVED_POD, .number = ++number, .pod = &view, .trust = TRUST_ANNOTATIONS}));
}

static inline void remove_pod(const char *uid)
{
    store_delete_pod(live, uid);
    note(record_new(
        &(struct observation){.what = OBSERVED_POD_ENDED, .number = ++number, .key = uid}));
}

static inline void add_budget(const char *name, int64_t allowed)
{
    const struct budget_view view = {.ns = "ml", .name = name, .allowed = allowed, .selects = true};

    store_put_budget(live, &view);
    note(record_new(&(struct observation){
        .what = OBSERVED_OBJECT, .number = ++number, .feed = FEED_BUDGETS, .view = &view}));
}

/* Nodes first, of which the other feeds know nothing. */
static inline void list_all(void)
{
    for (int feed = 0; feed < FEED_N; feed++) {
        list(OBSERVED_LIST_BEGIN, feed);
        if (feed == FEED_NODES) {
            add_node("n1");
            add_node("n2");
        }
        list(OBSERVED_LIST_END, feed);
    }
}

static inline void expect_same(const char *body)
{
    struct extender one = {.store = live}, other = {.store = replay_store(next_file)};
    g_autoptr(GString) expected = g_string_new(NULL), got = g_string_new(NULL);

    extender_filter(&one, body, strlen(body), expected);
    extender_filter(&other, body, strlen(body), got);
    ck_assert_str_eq(got->str, expected->str);
}

static inline char *ask_as(const char *uid, const char *mem, const char *annotations)
{
    return g_strdup_printf(
        "{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":"
        "\"%s\",\"annotations\":%s},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
        "\"limits\":{\"" MEM "\":\"%s\"}}}]}},\"Nodes\":null,\"NodeNames\":["
        "\"n1\",\"n2\"]}",
        uid, uid, annotations, mem);
}

static inline char *ask(const char *mem)
{
    return ask_as("p", mem, "{}");
}
