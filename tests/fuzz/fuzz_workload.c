/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever stands in a Workload of Kueue: it is refused with a message, or it is answered with one, and
 * what is written about it is JSON that names it. The cards are afterwards what they were before.
 */
#include "target.h"

#include "base/log.h"
#include "inspect/views.h"
#include "kueue/joint_fit.h"

#include <string.h>

#define PODS 50 /* more of the same tell nothing new */

static struct store *known;

static void open_store(void)
{
    static const struct string_pair amounts[] = {{"aliyun.com/gpu-mem", "20"},
                                                 {"aliyun.com/gpu-count", "2"}};
    static const struct string_pair labels[] = {{"pool", "shared"}};
    const struct store_options options = {.policy = policies, .silent = true};
    const struct node_view node = {
        .name = "n1", .labels = {labels, 1}, .capacity = {amounts, 2}, .allocatable = {amounts, 2}};

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    known = store_new(&options);
    store_apply_node(known, &node);
}

static bool is_ours(const char *check, void *data)
{
    return check[0] != 'x';
}

static void check_body(struct json_arena *arena, const struct workload_view *workload,
                       const struct answer *answer)
{
    g_autoptr(GString) body = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    answer_encode(&writer, &(struct told_workload){workload, answer, is_ours, NULL, 1795600800});
    const cJSON *object = json_parse(arena, body->str, body->len, NULL);
    FUZZ_CHECK(object);
    const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
    const char *uid = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, "uid"));
    FUZZ_CHECK(g_strcmp0(uid, workload->uid) == 0 || !g_utf8_validate(workload->uid, -1, NULL));
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(object, "status");
    FUZZ_CHECK(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(status, "admissionChecks")) <=
               WORKLOAD_CHECKS_MAX);
}

/* On a copy; it must be possible to ask again, with the same answer. */
static void ask(struct json_arena *arena, const struct workload_view *workload,
                const struct pod_sets *pods)
{
    g_autoptr(joint_fit) joint = joint_fit_new(known);
    const struct answer answer = joint_fit_ask(joint, pods);

    FUZZ_CHECK(answer.message && *answer.message && strlen(answer.message) <= ANSWER_MESSAGE_MAX);
    check_body(arena, workload, &answer);
    if (!answer_lets_in(&answer)) {
        const struct answer again = joint_fit_ask(joint, pods);
        FUZZ_CHECK(again.result == answer.result);
        FUZZ_CHECK(g_str_equal(again.message, answer.message));
        g_free(again.message);
    }
    g_free(answer.message);
}

static void read_pods(struct json_arena *arena, const struct workload_view *workload,
                      const cJSON *object)
{
    static const struct dialect_options dialects;
    g_autoptr(GPtrArray) names = pod_sets_flavors(workload);
    g_autoptr(GArray) flavors = g_array_new(FALSE, FALSE, sizeof(struct named_flavor));
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < names->len; i++) {
        struct named_flavor flavor = {names->pdata[i], {{0}}};
        /* Its own text is as good a flavor as any. */
        if (flavor_view_decode(arena, object, &flavor.view, NULL))
            g_array_append_val(flavors, flavor);
    }
    g_autoptr(pod_sets) pods = pod_sets_new(workload, flavors, &dialects, &error);
    FUZZ_CHECK(!pods == !!error);
    if (pods && pods->n_pods <= PODS)
        ask(arena, workload, pods);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) before = g_string_new(NULL), after = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    struct workload_view workload;
    struct check_view check;

    if (!known)
        open_store();
    const cJSON *object = json_parse(arena, (const char *)data, size, NULL);
    if (!object)
        return 0;
    check_view_decode(arena, object, &check, NULL);
    const bool ok = workload_view_decode(arena, object, &workload, &error);
    FUZZ_CHECK(ok == !error);
    if (!ok)
        return 0;
    workload_view_waits(&workload);
    FUZZ_CHECK(kueue_time(workload.reserved_at, 1795600800) <= 1795600800);
    view_nodes(known, NULL, before);
    read_pods(arena, &workload, object);
    view_nodes(known, NULL, after);
    FUZZ_CHECK(g_string_equal(before, after));
    return 0;
}
