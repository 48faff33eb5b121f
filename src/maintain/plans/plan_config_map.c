/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_config_map.h"

#include "core/fail.h"
#include "kube/clock.h"
#include "wire/kubernetes.h"

#define CALL_MS 10000
#define WRITES_MAX 5

static char *path_of(const struct plan_order *order)
{
    g_autofree char *ns = g_uri_escape_string(order->ns, NULL, FALSE);
    g_autofree char *name = g_uri_escape_string(order->name, NULL, FALSE);

    return g_strdup_printf("/api/v1/namespaces/%s/configmaps/%s", ns, name);
}

static struct plan_order *decode(const GString *reply, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, reply->str, reply->len, error);

    return object ? plan_order_decode(arena, object, error) : NULL;
}

enum outcome plan_config_map_read(struct api_client *client, const struct plan_order *order,
                                  struct plan_order **ret_now, GError **error)
{
    g_autofree char *path = path_of(order);
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(client, &call, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    *ret_now = decode(reply, error);
    return *ret_now ? OUTCOME_OK : OUTCOME_REFUSED;
}

static void take_version(struct plan_order *order, struct plan_order *from, char *take_status)
{
    g_free(order->version);
    order->version = g_steal_pointer(&from->version);
    g_free(order->status);
    order->status = take_status;
}

static enum outcome try_write(struct api_client *client, struct plan_order *order, const char *text,
                              GError **error)
{
    g_autofree char *path = path_of(order);
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, body);
    node_annotation_encode(&writer, &(struct node_annotation){.node = order->name,
                                                              .version = order->version,
                                                              .key = PLAN_STATUS_KEY,
                                                              .value = text});
    const enum outcome outcome = api_client_call(
        client,
        &(struct api_call){
            .method = "PATCH", .path = path, .body = body, .deadline_ms = clock_ms() + CALL_MS},
        reply, error);
    if (outcome != OUTCOME_OK)
        return outcome;
    g_autoptr(plan_order) now = decode(reply, error);
    if (!now)
        return OUTCOME_REFUSED;
    take_version(order, now, g_strdup(text));
    return OUTCOME_OK;
}

/* After a conflict: whether it may be written against what is there now. */
static bool look_again(struct api_client *client, struct plan_order *order, const char *text,
                       GError **error)
{
    g_autoptr(plan_order) now = NULL;

    if (plan_config_map_read(client, order, &now, error) != OUTCOME_OK)
        return false;
    /* Our own write, whose answer was lost, is as good. */
    if (g_strcmp0(now->status, order->status) != 0 && g_strcmp0(now->status, text) != 0)
        return fail_with(error, GPULEDGER_ERROR_CONFLICT,
                         "somebody else has written the plan's status");
    take_version(order, now, g_steal_pointer(&now->status));
    return true;
}

bool plan_config_map_write(struct api_client *client, struct plan_order *order,
                           const struct plan_status *status, GError **error)
{
    g_autofree char *text = plan_status_format(status);
    enum outcome outcome = OUTCOME_CONFLICT;

    for (int i = 0; i < WRITES_MAX && outcome == OUTCOME_CONFLICT; i++) {
        g_clear_error(error);
        outcome = try_write(client, order, text, error);
        if (outcome == OUTCOME_CONFLICT) {
            g_clear_error(error);
            if (!look_again(client, order, text, error))
                return false;
        }
    }
    return outcome == OUTCOME_OK;
}
