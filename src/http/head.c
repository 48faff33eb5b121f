/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

struct counts {
    unsigned lengths, encodings, hosts;
    bool other_encoding; /* than chunked, alone */
    bool odd_name;
};

static enum MHD_Result count(void *data, enum MHD_ValueKind kind, const char *name,
                             const char *value)
{
    struct counts *counts = data;

    counts->odd_name |= strpbrk(name, " \t") != NULL;
    counts->lengths += g_ascii_strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    counts->hosts += g_ascii_strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    if (g_ascii_strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        counts->encodings++;
        counts->other_encoding |= !value || g_ascii_strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

unsigned head_fault(struct MHD_Connection *connection, const char *version, const char **ret_why)
{
    const bool is_new = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    struct counts counts = {0};

    MHD_get_connection_values(connection, MHD_HEADER_KIND, count, &counts);
    const struct {
        bool is_so;
        unsigned status;
        const char *why;
    } faults[] = {
        {counts.odd_name, MHD_HTTP_BAD_REQUEST, "the name of a header holds a space"},
        {counts.lengths > 1, MHD_HTTP_BAD_REQUEST, "there is more than one Content-Length"},
        {counts.lengths > 0 && counts.encodings > 0, MHD_HTTP_BAD_REQUEST,
         "there are Content-Length and Transfer-Encoding"},
        {counts.encodings > 0 && !is_new, MHD_HTTP_BAD_REQUEST,
         "HTTP/1.0 knows no Transfer-Encoding"},
        {counts.other_encoding || counts.encodings > 1, MHD_HTTP_NOT_IMPLEMENTED,
         "of transfer encodings only chunked is understood, once"},
        {counts.hosts > 1 || (counts.hosts == 0 && is_new), MHD_HTTP_BAD_REQUEST,
         "there has to be one Host"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        if (faults[i].is_so) {
            *ret_why = faults[i].why;
            return faults[i].status;
        }
    }
    return 0;
}

size_t head_unescape(void *data, struct MHD_Connection *connection, char *text)
{
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}
