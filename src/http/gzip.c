/* SPDX-License-Identifier: Apache-2.0 */
#include "http/gzip.h"

#include <microhttpd.h>
#include <string.h>
#include <zlib.h>

#define WORTH_IT 1400     /* bytes; a smaller answer is one packet either way */
#define WITH_GZIP_HEAD 16 /* of deflateInit2, added to the bits of the window */
#define MEMORY_LEVEL 8    /* zlib's default: 256 KiB with a window of 15 bits */

/* "q=0", "q=0.000": the client does not want it. */
static bool is_refused(const char *parameters)
{
    for (const char *at = parameters; at && *at; at = strchr(at, ';')) {
        at += strspn(at, "; \t");
        if (g_ascii_tolower(at[0]) == 'q' && at[1] == '=')
            return strspn(at + 2, "0.") == strcspn(at + 2, "; \t");
    }
    return false;
}

bool gzip_is_taken(const char *accepted)
{
    g_auto(GStrv) items = g_strsplit(accepted ? accepted : "", ",", -1);
    bool any = false;

    for (char **item = items; *item; item++) {
        const char *name = g_strstrip(*item);
        const size_t length = strcspn(name, "; \t");
        if ((length == 4 && g_ascii_strncasecmp(name, "gzip", 4) == 0) ||
            (length == 6 && g_ascii_strncasecmp(name, "x-gzip", 6) == 0))
            return !is_refused(name + length);
        if (length == 1 && *name == '*')
            any = !is_refused(name + length);
    }
    return any;
}

/* NULL: it did not become smaller. */
static GString *compress_body(const GString *body)
{
    z_stream stream = {.next_in = (Bytef *)body->str, .avail_in = (uInt)body->len};

    if (body->len > G_MAXUINT / 2 ||
        deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + WITH_GZIP_HEAD, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    g_autofree char *buffer = g_malloc(body->len);
    stream.next_out = (Bytef *)buffer;
    stream.avail_out = (uInt)body->len; /* where it is not enough, it is not worth it */
    const int outcome = deflate(&stream, Z_FINISH);
    const gsize length = stream.total_out;
    deflateEnd(&stream);
    return outcome == Z_STREAM_END ? g_string_new_len(buffer, (gssize)length) : NULL;
}

/* "abc" becomes "abc-gzip", with the quotes. */
static void mark_tag(struct http_response *response)
{
    for (size_t i = 0; i < response->n_headers; i++) {
        char *tag = response->headers[i].value;
        if (strcmp(response->headers[i].name, MHD_HTTP_HEADER_ETAG) != 0 ||
            !g_str_has_suffix(tag, "\""))
            continue;
        tag[strlen(tag) - 1] = '\0';
        response->headers[i].value = g_strconcat(tag, GZIP_TAG_SUFFIX "\"", NULL);
        g_free(tag);
    }
}

/* The page's files are there in both forms, and say so themselves. */
static bool is_settled(const struct http_response *response)
{
    for (size_t i = 0; i < response->n_headers; i++) {
        if (strcmp(response->headers[i].name, MHD_HTTP_HEADER_VARY) == 0)
            return true;
    }
    return false;
}

void gzip_settle(const struct http_request *request, struct http_response *response)
{
    if (response->error || response->status != MHD_HTTP_OK || response->body->len < WORTH_IT ||
        is_settled(response))
        return;
    http_response_add_header(response, MHD_HTTP_HEADER_VARY, g_strdup("Accept-Encoding"));
    if (!gzip_is_taken(http_request_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING)))
        return;
    GString *smaller = compress_body(response->body);
    if (!smaller)
        return;
    g_string_free(response->body, TRUE);
    response->body = smaller;
    mark_tag(response);
    http_response_add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, g_strdup("gzip"));
}
