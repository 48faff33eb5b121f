/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api_list.h"

#include "core/fail.h"
#include "json/json.h"

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
    const char *kind;
    const char *version;
    const char *more; /* asks for the next page; NULL or "": this was the last */
};

static const struct json_field list_fields[] = {
    JSON_FIELD_STRING(struct list_envelope, kind, "kind", 0),
    JSON_FIELD_STRING(struct list_envelope, version, "metadata.resourceVersion", JSON_REQUIRED),
    JSON_FIELD_STRING(struct list_envelope, more, "metadata.continue", 0),
    JSON_FIELD_END,
};

struct listing {
    struct api_stream *stream;
    const struct api_list_call *call;
    char *version;    /* all pages are of one moment; the first one names it */
    char *more;       /* what was asked with for the latest page; NULL for the first */
    unsigned asked;   /* pages */
    GPtrArray *pages; /* struct page * */
};

struct page {
    struct listing *listing;
    struct framer *framer;
    bool begun;    /* an item of it has been seen */
    bool asked_on; /* for the page after it */
};

static void page_free(void *data)
{
    struct page *page = data;

    framer_free(page->framer);
    g_free(page);
}

static void ask(struct listing *listing, const char *more);

/* A list that does not end would be followed without a pause, and never be complete. */
static bool check_goes_on(const struct listing *listing, const char *more, GError **error)
{
    if (g_strcmp0(more, listing->more) != 0 && listing->asked < API_LIST_PAGES_MAX)
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "the list has no end: page %u is followed by %s", listing->asked,
                     listing->asked < API_LIST_PAGES_MAX ? "itself" : "another one");
}

/* What is no list has no objects, and would take all that are known for gone. */
static bool check_kind(const char *kind, const cJSON *tree, GError **error)
{
    if (kind ? g_str_has_suffix(kind, "List") : cJSON_HasObjectItem(tree, "items"))
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID, "a list was asked for, but it is %s",
                     kind ? kind : "none");
}

/* Reads what the page has beside its items, which `tail` makes complete, and asks for the page
 * after it. */
static bool read_envelope(struct page *page, const char *tail, GError **error)
{
    struct listing *listing = page->listing;
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    struct list_envelope envelope = {0};
    size_t length;
    const char *head = framer_envelope(page->framer, &length);

    g_string_append_len(text, head, (gssize)length);
    g_string_append(text, tail);
    const cJSON *tree = json_parse(arena, text->str, text->len, error);
    if (!tree || !json_decode(arena, tree, list_fields, &envelope, error) ||
        !check_kind(envelope.kind, tree, error))
        return false;
    if (!listing->version)
        listing->version = g_strdup(envelope.version);
    if (envelope.more && *envelope.more && !page->asked_on) {
        if (!check_goes_on(listing, envelope.more, error))
            return false;
        page->asked_on = true;
        ask(listing, envelope.more);
    }
    return true;
}

/* The API server says what comes before what it consists of, so that it can write the next page
 * while we read this one. From another order no harm comes: the end of the page tells, too. */
static bool on_item(const char *text, size_t length, void *data, GError **error)
{
    struct page *page = data;
    const struct api_list_call *call = page->listing->call;

    if (!page->begun)
        read_envelope(page, "]}", NULL);
    page->begun = true;
    return call->emit(text, length, call->data, error);
}

static bool on_bytes(const char *bytes, size_t length, void *data, GError **error)
{
    const struct page *page = data;
    return framer_feed(page->framer, bytes, length, error);
}

static bool on_end(void *data, GError **error)
{
    struct page *page = data;

    if (!framer_is_complete(page->framer))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "the list ends in the middle");
    if (!read_envelope(page, "", error))
        return false;
    g_ptr_array_remove_fast(page->listing->pages, page);
    return true;
}

/* `more`: as the page before says; NULL: for the first one. */
static void ask(struct listing *listing, const char *more)
{
    const struct api_list_call *call = listing->call;
    struct page *page = g_new0(struct page, 1);
    g_autoptr(GString) url = g_string_new(call->path);

    listing->asked++;
    g_free(listing->more);
    listing->more = g_strdup(more);
    page->listing = listing;
    page->framer = framer_new(FRAMER_LIST, 0, on_item, page);
    framer_skip(page->framer, API_LIST_UNREAD);
    g_ptr_array_add(listing->pages, page);
    if (call->page > 0)
        api_url_add_number(url, "limit", call->page);
    if (more)
        api_url_add(url, "continue", more);
    api_stream_add(listing->stream, &(struct api_stream_call){.path = url->str,
                                                              .compressed = true,
                                                              .idle_ms = call->idle_ms,
                                                              .receive = on_bytes,
                                                              .complete = on_end,
                                                              .data = page});
}

struct stream_result api_list_run(struct api_stream *stream, const struct api_list_call *call,
                                  char **ret_version, GError **error)
{
    struct listing listing = {
        .stream = stream,
        .call = call,
        .pages = g_ptr_array_new_with_free_func(page_free),
    };

    ask(&listing, NULL);
    const struct stream_result result = api_stream_run(stream, error);
    if (result.end == STREAM_COMPLETE)
        *ret_version = g_steal_pointer(&listing.version);
    g_free(listing.version);
    g_free(listing.more);
    g_ptr_array_unref(listing.pages);
    return result;
}
