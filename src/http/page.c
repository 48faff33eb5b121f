/* SPDX-License-Identifier: Apache-2.0 */
#include "http/gzip.h"
#include "http/page.h"

#include "http/resources.h"

#include <microhttpd.h>
#include <string.h>

/* Nothing but its own files may run or be loaded, nobody may put it in a frame, and text never
 * becomes markup (Trusted Types). */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "                \
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "          \
    "require-trusted-types-for 'script'; trusted-types 'none'"

static const struct page_file *find(const char *name)
{
    for (const struct page_file *file = page_files; file->name; file++) {
        if (strcmp(file->name, name) == 0)
            return file;
    }
    return NULL;
}

bool page_answer(const struct http_request *request, const char *name,
                 struct http_response *response)
{
    const struct page_file *file = find(name);
    const char *encodings = http_request_header(request, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    const bool packed = gzip_is_taken(encodings);

    if (!file)
        return false;
    response->content_type = file->type;
    if (packed)
        g_string_append_len(response->body, file->packed, (gssize)file->packed_length);
    else
        g_string_append_len(response->body, file->data, (gssize)file->length);
    if (packed)
        http_response_add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, g_strdup("gzip"));
    http_response_add_header(response, MHD_HTTP_HEADER_VARY, g_strdup("Accept, Accept-Encoding"));
    http_response_add_header(response, "Content-Security-Policy", g_strdup(POLICY));
    http_response_add_header(response, "X-Content-Type-Options", g_strdup("nosniff"));
    http_response_add_header(response, "Referrer-Policy", g_strdup("no-referrer"));
    return true;
}
