/* SPDX-License-Identifier: Apache-2.0 */
#include "http/etag.h"

#include "http/gzip.h"

#include <microhttpd.h>
#include <string.h>

/* Of a list of tags, weak ones too, whether one is ours. A tag of ours is no part of another one. */
static bool has_tag(const char *list, const char *tag)
{
    return list && (strcmp(list, "*") == 0 || strstr(list, tag));
}

void etag_settle(const struct http_request *request, struct http_response *response)
{
    if (response->status != MHD_HTTP_OK || response->error)
        return;
    g_autofree char *sum = g_compute_checksum_for_data(
        G_CHECKSUM_SHA256, (const guchar *)response->body->str, response->body->len);
    char *tag = g_strdup_printf("\"%.32s\"", sum);

    const char *known = http_request_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    g_autofree char *compressed = g_strdup_printf("\"%.32s" GZIP_TAG_SUFFIX "\"", sum);
    if (known && strstr(known, compressed)) {
        g_free(tag);
        tag = g_steal_pointer(&compressed);
    }
    if (has_tag(known, tag)) {
        response->status = MHD_HTTP_NOT_MODIFIED;
        g_string_truncate(response->body, 0);
    }
    http_response_add_header(response, MHD_HTTP_HEADER_ETAG, tag);
    http_response_add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, g_strdup("no-cache"));
}
