/* SPDX-License-Identifier: Apache-2.0 */
#include "http/message.h"

#include "base/metrics.h"
#include "json/json.h"

#include <string.h>

/* --- requests ------------------------------------------------------------------------------- */

const char *http_request_query(const struct http_request *request, const char *name)
{
    const char *value = NULL;

    if (MHD_lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND, name,
                                      strlen(name), &value, NULL) != MHD_YES)
        return NULL;
    return value ? value : "";
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* --- responses ------------------------------------------------------------------------------ */

void http_response_add_header(struct http_response *response, const char *name, char *take_value)
{
    g_assert(response->n_headers < HTTP_HEADERS_MAX);
    response->headers[response->n_headers].name = name;
    response->headers[response->n_headers].value = take_value;
    response->n_headers++;
}

void http_response_fail(struct http_response *response, unsigned status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_free(response->error);
    response->error = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    response->status = status;
}

static void error_encode(struct http_response *response, bool with_body)
{
    struct json_writer writer;

    g_string_truncate(response->body, 0);
    if (!with_body)
        return;
    response->content_type = "application/json";
    json_writer_init(&writer, response->body);
    json_begin_object(&writer);
    json_key_string(&writer, "error", response->error);
    json_end_object(&writer);
}

static void headers_clear(struct http_response *response)
{
    for (size_t i = 0; i < response->n_headers; i++)
        g_free(response->headers[i].value);
    response->n_headers = 0;
}

enum MHD_Result response_send(struct http_response *response, struct MHD_Connection *connection,
                              unsigned flags)
{
    if (response->error)
        error_encode(response, flags & RESPONSE_ERROR_BODY);

    size_t length = response->body->len;
    char *text = g_string_free(response->body, FALSE);
    struct MHD_Response *reply =
        MHD_create_response_from_buffer_with_free_callback(length, text, g_free);

    g_free(response->error);
    if (!reply) {
        g_free(text);
        headers_clear(response);
        return MHD_NO;
    }
    if (length > 0 && response->content_type)
        MHD_add_response_header(reply, MHD_HTTP_HEADER_CONTENT_TYPE, response->content_type);
    for (size_t i = 0; i < response->n_headers; i++)
        MHD_add_response_header(reply, response->headers[i].name, response->headers[i].value);
    headers_clear(response);
    if (flags & RESPONSE_CLOSE)
        MHD_add_response_header(reply, MHD_HTTP_HEADER_CONNECTION, "close");

    enum MHD_Result result = MHD_queue_response(connection, response->status, reply);
    MHD_destroy_response(reply);
    metrics_count(COUNTER_HTTP_RESPONSES, response->status / 100);
    return result;
}
