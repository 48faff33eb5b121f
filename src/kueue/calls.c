/* SPDX-License-Identifier: Apache-2.0 */
#include "kueue/controller_state.h"

#include "kube/clock.h"

#define CALL_MS 5000

int64_t kueue_now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

enum outcome kueue_get(struct kueue *kueue, const char *path, struct json_arena *arena,
                       const cJSON **ret_object, GError **error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "GET", .path = path, .deadline_ms = clock_ms() + CALL_MS};
    const enum outcome outcome = api_client_call(kueue->client, &call, reply, error);

    if (outcome != OUTCOME_OK)
        return outcome;
    *ret_object = json_parse(arena, reply->str, reply->len, error);
    return *ret_object ? OUTCOME_OK : OUTCOME_UNKNOWN;
}

enum outcome kueue_apply(struct kueue *kueue, const char *path, const GString *body, GError **error)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    const struct api_call call = {
        .method = "PATCH",
        .path = path,
        .body = body,
        .apply = true,
        .timely = true,
        .deadline_ms = leadership_cut(kueue->leadership, kueue->term, clock_ms() + CALL_MS),
    };

    return api_client_call(kueue->client, &call, reply, error);
}
