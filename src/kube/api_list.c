/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api_list.h"

#include "json/json.h"

#include <gpuledger/error.h>
#include <string.h>

void api_url_add(GString *url, const char *name, const char *value)
{
    g_string_append_printf(url, "%c%s=", strchr(url->str, '?') ? '&' : '?', name);
    g_string_append_uri_escaped(url, value, NULL, FALSE);
}

void api_url_add_number(GString *url, const char *name, int64_t value)
{
    g_string_append_printf(url, "%c%s=%" G_GINT64_FORMAT, strchr(url->str, '?') ? '&' : '?', name,
                           value);
}

struct list_envelope {
    const char *version;
    const char *more; /* asks for the next page; NULL or "": this was the last */
};

static const struct json_field list_fields[] = {
    JSON_FIELD_STRING(struct list_envelope, version, "metadata.resourceVersion", JSON_REQUIRED),
    JSON_FIELD_STRING(struct list_envelope, more, "metadata.continue", 0),
    JSON_FIELD_END,
};

static bool feed(const char *bytes, size_t length, void *data, GError **error)
{
    return framer_feed(data, bytes, length, error);
}

/* Sets the version with the first page, and always what asks for the next one (NULL: nothing). */
static bool read_envelope(struct framer *framer, char **version, char **ret_more, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct list_envelope envelope = {0};
    size_t length;

    *ret_more = NULL;
    if (!framer_is_complete(framer)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "the list ends in the middle");
        return false;
    }
    const char *text = framer_envelope(framer, &length);
    const cJSON *tree = json_parse(arena, text, length, error);
    if (!tree || !json_decode(arena, tree, list_fields, &envelope, error))
        return false;
    /* All pages are of one moment; the first one names it. */
    if (!*version)
        *version = g_strdup(envelope.version);
    if (envelope.more && *envelope.more)
        *ret_more = g_strdup(envelope.more);
    return true;
}

struct stream_result api_list_run(struct api_stream *stream, const struct api_list_call *call,
                                  char **ret_version, GError **error)
{
    g_autoptr(framer) framer = framer_new(FRAMER_LIST, 0, call->emit, call->data);
    g_autofree char *version = NULL;
    g_autofree char *page = NULL;
    struct stream_result result;

    do {
        g_autoptr(GString) url = g_string_new(call->path);
        char *more = NULL;

        if (call->field_selector)
            api_url_add(url, "fieldSelector", call->field_selector);
        if (call->page > 0)
            api_url_add_number(url, "limit", call->page);
        if (page)
            api_url_add(url, "continue", page);
        framer_clear(framer);
        result = api_stream_run(stream,
                                &(struct api_stream_call){.path = url->str,
                                                          .compressed = true,
                                                          .idle_ms = call->idle_ms,
                                                          .receive = feed,
                                                          .data = framer},
                                error);
        if (result.end == STREAM_COMPLETE && !read_envelope(framer, &version, &more, error))
            result.end = STREAM_ABORTED;
        g_free(page);
        page = more;
    } while (result.end == STREAM_COMPLETE && page);
    if (result.end == STREAM_COMPLETE)
        *ret_version = g_steal_pointer(&version);
    return result;
}
