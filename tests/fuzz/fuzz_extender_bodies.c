/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any body is either refused with a message, or the answer to it is JSON that accounts for every
 * node once.
 */
#include "target.h"

#include "wire/admission.h"
#include "wire/extender.h"
#include "wire/preemption.h"

#include <string.h>

static size_t size_of(const cJSON *object, const char *key)
{
    return (size_t)cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(object, key));
}

static void check_filter_answer(const struct filter_args *args)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree enum reason *reasons = g_new0(enum reason, args->n_names + 1);
    GString *text = g_string_new(NULL);
    struct json_writer writer;
    size_t n_passing = 0;

    for (size_t i = 0; i < args->n_names; i++) {
        reasons[i] = (enum reason)(i % REASON_N);
        n_passing += reasons[i] == REASON_NONE;
    }
    json_writer_init(&writer, text);
    filter_result_encode(&writer, &(struct filter_result){.args = args, .reasons = reasons});

    const cJSON *answer = json_parse(arena, text->str, text->len, NULL);
    FUZZ_CHECK(answer);
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(answer, "Nodes");
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(answer, "NodeNames");
    FUZZ_CHECK(args->by_name ? cJSON_IsNull(nodes) && cJSON_IsArray(names)
                             : cJSON_IsObject(nodes) && cJSON_IsNull(names));
    FUZZ_CHECK((args->by_name ? size_of(answer, "NodeNames") : size_of(nodes, "items")) ==
               n_passing);
    FUZZ_CHECK(size_of(answer, "FailedNodes") + size_of(answer, "FailedAndUnresolvableNodes") ==
               args->n_names - n_passing);
    g_string_free(text, TRUE);
}

/* Every second name has a mark. */
static void check_prioritize_answer(const struct filter_args *args)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autofree int32_t *scores = g_new0(int32_t, args->n_names + 1);
    GString *text = g_string_new(NULL);
    struct json_writer writer;
    const cJSON *row;
    size_t i = 0;

    for (size_t j = 0; j < args->n_names; j += 2)
        scores[j] = 10;
    json_writer_init(&writer, text);
    prioritize_result_encode(&writer, args, scores);
    const cJSON *answer = json_parse(arena, text->str, text->len, NULL);
    FUZZ_CHECK(cJSON_IsArray(answer) &&
               (size_t)cJSON_GetArraySize(answer) == (args->n_names + 1) / 2);
    cJSON_ArrayForEach (row, answer) {
        const cJSON *host = cJSON_GetObjectItemCaseSensitive(row, "Host");
        FUZZ_CHECK(cJSON_IsString(host));
        /* What is not UTF-8 does not come back as it was. */
        FUZZ_CHECK(!g_utf8_validate(args->names[i], -1, NULL) ||
                   strcmp(host->valuestring, args->names[i]) == 0);
        i += 2;
        FUZZ_CHECK(cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(row, "Score")));
    }
    g_string_free(text, TRUE);
}

/* What was named goes back: a node as often as it stands there, and never a null. */
static void check_preemption(const cJSON *body)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    struct preemption_args args;
    struct json_writer writer;
    const cJSON *node, *victim;
    size_t i = 0;

    const bool decoded = preemption_args_decode(arena, body, &args, &error);
    FUZZ_CHECK(decoded == !error);
    if (!decoded)
        return;
    FUZZ_CHECK(*args.pod.uid);
    json_writer_init(&writer, text);
    preemption_result_encode(&writer, args.nodes, args.n_nodes);
    const cJSON *answer = json_parse(arena, text->str, text->len, NULL);
    FUZZ_CHECK(answer);
    cJSON_ArrayForEach (node, cJSON_GetObjectItemCaseSensitive(answer, "NodeNameToMetaVictims")) {
        const cJSON *pods = cJSON_GetObjectItemCaseSensitive(node, "Pods");
        FUZZ_CHECK(cJSON_IsArray(pods) &&
                   (size_t)cJSON_GetArraySize(pods) == args.nodes[i].n_uids);
        FUZZ_CHECK(args.nodes[i].violations >= 0);
        cJSON_ArrayForEach (victim, pods)
            FUZZ_CHECK(cJSON_GetObjectItemCaseSensitive(victim, "UID")->valuestring[0]);
        i++;
    }
    FUZZ_CHECK(i == args.n_nodes);
}

/* However the names were read, the tree of the whole body has the same. */
static void check_names(const cJSON *body, const struct filter_args *args)
{
    const cJSON *names = cJSON_GetObjectItem(body, "NodeNames"), *name;
    size_t i = 0;

    if (!args->by_name)
        return;
    cJSON_ArrayForEach (name, names) {
        FUZZ_CHECK(i < args->n_names && strcmp(name->valuestring, args->names[i]) == 0);
        i++;
    }
    FUZZ_CHECK(i == args->n_names);
}

/* Whatever a review is about, its answer carries its UID, and its patch is an array of operations. */
static void check_review(const char *body, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    struct admission_review review;
    struct json_writer writer;
    gsize length;

    const bool parsed = admission_review_parse(arena, body, size, &review, &error);
    FUZZ_CHECK(parsed == !error);
    if (!parsed)
        return;
    for (size_t i = 0; i < review.n_containers; i++)
        review.containers[i].resource = i % 3 ? "nvidia.com/mig-1g.5gb" : NULL;
    json_writer_init(&writer, text);
    admission_answer_encode(&writer, &review);
    const cJSON *answer = json_parse(arena, text->str, text->len, NULL);
    const cJSON *response = cJSON_GetObjectItem(answer, "response");
    FUZZ_CHECK(cJSON_GetObjectItem(response, "uid")->valuestring[0]);
    const cJSON *patch = cJSON_GetObjectItem(response, "patch");
    FUZZ_CHECK((patch != NULL) == (review.n_containers > 1));
    if (!patch)
        return;
    g_autofree guchar *operations = g_base64_decode(patch->valuestring, &length);
    FUZZ_CHECK(cJSON_GetArraySize(json_parse(arena, (char *)operations, length, NULL)) > 1);
}

static void check_error_answer(const char *message)
{
    g_autoptr(json_arena) arena = json_arena_new();
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    filter_error_encode(&writer, message);
    const cJSON *answer = json_parse(arena, text->str, text->len, NULL);
    FUZZ_CHECK(answer);
    FUZZ_CHECK(cJSON_GetObjectItemCaseSensitive(answer, "Error")->valuestring[0]);
    g_string_free(text, TRUE);
}

static void check_dry_run(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct dry_run_args args;

    if (!dry_run_args_parse(arena, (const char *)data, size, &args, &error)) {
        check_error_answer(error->message);
        return;
    }
    FUZZ_CHECK(args.pods ? args.n_pods > 0 && args.n_pods <= EXTENDER_PODS_MAX
                         : args.n_pods == 0 && *args.filter.pod.name);
    for (size_t i = 0; i < args.n_pods; i++)
        FUZZ_CHECK(*args.pods[i].name && *args.pods[i].ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct filter_args filter;
    struct bind_args bind;
    const cJSON *body = json_parse(arena, (const char *)data, size, NULL);
    const bool filtered =
        filter_args_parse(arena, (const char *)data, size, &filter, &error);

    if (!body) {
        FUZZ_CHECK(!filtered);
        g_clear_error(&error);
        return 0;
    }
    if (filtered) {
        check_names(body, &filter);
        FUZZ_CHECK(!error);
        FUZZ_CHECK(*filter.pod.name && *filter.pod.ns);
        for (size_t i = 0; i < filter.n_names; i++)
            FUZZ_CHECK(*filter.names[i]);
        check_filter_answer(&filter);
        check_prioritize_answer(&filter);
    } else {
        check_error_answer(error->message);
        g_clear_error(&error);
    }
    check_dry_run(data, size);
    check_preemption(body);
    check_review((const char *)data, size);
    const bool decoded = bind_args_decode(arena, body, &bind, &error);
    FUZZ_CHECK(decoded == !error);
    if (decoded)
        FUZZ_CHECK(*bind.pod_name && *bind.pod_namespace && *bind.pod_uid && *bind.node);
    return 0;
}
