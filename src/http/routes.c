/* SPDX-License-Identifier: Apache-2.0 */
#include "http/routes.h"

#include "http/bearer.h"
#include "http/doors.h"
#include "http/etag.h"
#include "http/gzip.h"
#include "http/outgoing.h"

#include <gpuledger/error.h>
#include <microhttpd.h>
#include <string.h>

#define PARTS_MAX 16

const char *http_request_param(const struct http_request *request, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < request->n_params; i++) {
        if (strncmp(request->params[i].name, name, length) == 0 &&
            request->params[i].name[length] == '}')
            return request->params[i].value;
    }
    g_assert_not_reached();
}

unsigned http_error_status(const GError *error)
{
    static const unsigned statuses[] = {
        [GPULEDGER_ERROR_INVALID] = MHD_HTTP_BAD_REQUEST,
        [GPULEDGER_ERROR_RANGE] = MHD_HTTP_BAD_REQUEST,
        [GPULEDGER_ERROR_LIMIT] = MHD_HTTP_CONTENT_TOO_LARGE,
        [GPULEDGER_ERROR_NOT_FOUND] = MHD_HTTP_NOT_FOUND,
        [GPULEDGER_ERROR_CONFLICT] = MHD_HTTP_CONFLICT,
        [GPULEDGER_ERROR_DENIED] = MHD_HTTP_FORBIDDEN,
        [GPULEDGER_ERROR_UNAVAILABLE] = MHD_HTTP_SERVICE_UNAVAILABLE,
        [GPULEDGER_ERROR_UNKNOWN] = MHD_HTTP_INTERNAL_SERVER_ERROR,
        [GPULEDGER_ERROR_IO] = MHD_HTTP_INTERNAL_SERVER_ERROR,
        [GPULEDGER_ERROR_CREDENTIALS] = MHD_HTTP_FORBIDDEN,
    };

    return error->domain == GPULEDGER_ERROR && (size_t)error->code < G_N_ELEMENTS(statuses)
               ? statuses[error->code]
               : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

/* Splits a path in place; false: it has more parts than any pattern. */
static bool path_split(char *path, const char *parts[PARTS_MAX], size_t *ret_n)
{
    size_t n = 0;

    for (char *at = path; *at;) {
        size_t length = strcspn(at, "/");

        if (length > 0 && n == PARTS_MAX)
            return false;
        if (length > 0)
            parts[n++] = at;
        at += length;
        if (*at)
            *at++ = '\0';
    }
    *ret_n = n;
    return true;
}

/* Fills the request's parameters; they mean something only if the pattern matches. */
static bool pattern_matches(const char *pattern, const char *const *parts, size_t n_parts,
                            struct http_request *request)
{
    size_t n = 0;

    request->n_params = 0;
    for (const char *at = pattern; *at;) {
        size_t length = strcspn(at, "/");

        if (length > 0) {
            if (n == n_parts)
                return false;
            if (*at == '{') {
                g_assert(request->n_params < HTTP_PARAMS_MAX);
                request->params[request->n_params].name = at + 1;
                request->params[request->n_params].value = parts[n];
                request->n_params++;
            } else if (strlen(parts[n]) != length || memcmp(at, parts[n], length) != 0) {
                return false;
            }
            n++;
        }
        at += length;
        if (*at)
            at++;
    }
    return n == n_parts;
}

static bool method_matches(const char *route_method, const char *method)
{
    return strcmp(route_method, method) == 0 || (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 &&
                                                 strcmp(route_method, MHD_HTTP_METHOD_GET) == 0);
}

static void allow_append(GString *allow, const char *method)
{
    g_string_append_printf(allow, "%s%s", allow->len ? ", " : "", method);
    if (strcmp(method, MHD_HTTP_METHOD_GET) == 0)
        g_string_append(allow, ", " MHD_HTTP_METHOD_HEAD);
}

static bool may_call(const struct routes *routes, const struct route *route,
                     struct http_request *request)
{
    request->trusted =
        !routes->bearer ||
        bearer_accepts(routes->bearer, http_request_header(request, MHD_HTTP_HEADER_AUTHORIZATION));
    return request->trusted || (route && (route->flags & ROUTE_OPEN));
}

/* What was shown is not repeated: it may be the right token with a slip. */
static void refuse_caller(const struct http_request *request, struct http_response *response)
{
    bool shown = http_request_header(request, MHD_HTTP_HEADER_AUTHORIZATION) != NULL;

    http_response_fail(response, MHD_HTTP_UNAUTHORIZED,
                       shown ? "the token is not the one of --ops-token-file"
                             : "a token is needed: 'Authorization: Bearer TOKEN'");
    http_response_add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                             g_strdup(shown ? "Bearer realm=\"gpuledger\", error=\"invalid_token\""
                                            : "Bearer realm=\"gpuledger\""));
}

/* Whether the handler has to wait in line, and in which. A view that nobody has asked for yet is
 * taken for a large one. */
static bool has_line(const struct routes *routes, const struct route *route,
                     const struct http_request *request, enum line *ret_line)
{
    const gint last = g_atomic_int_get(&routes->sizes[route - routes->rows]);
    const bool is_large = last == 0 || (size_t)last >= ANSWER_SMALL;

    *ret_line = route->flags & ROUTE_VIEW ? LINE_VIEWS : LINE_QUESTIONS;
    return request->outgoing &&
           (route->flags & ROUTE_QUESTION || (route->flags & ROUTE_VIEW && is_large));
}

static void run_route(struct routes *routes, const struct route *route,
                      struct http_request *request, struct http_response *response)
{
    const bool waits = route->flags & ROUTE_WAITS;
    enum line line;
    const bool in_line = has_line(routes, route, request, &line);

    if (in_line && !outgoing_enter(request->outgoing, line)) {
        http_response_fail(response, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "too many of these are being answered; try again");
        http_response_add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, g_strdup("1"));
        return;
    }
    if (waits)
        request->crowded = (unsigned)g_atomic_int_add(&routes->waits, 1) >= routes->waits_max &&
                           routes->waits_max > 0;
    response->content_type = route->content_type;
    response->is_view = route->flags & (ROUTE_VIEW | ROUTE_QUESTION);
    route->handler(routes->context, request, response);
    if (waits)
        g_atomic_int_add(&routes->waits, -1);
    /* Before the tag: it is the making of a view that takes long, whether it is sent or not. */
    g_atomic_int_set(&routes->sizes[route - routes->rows],
                     (gint)MIN(response->body->len + 1, (gsize)G_MAXINT));
    if (route->flags & ROUTE_TAGGED)
        etag_settle(request, response);
    if (routes->compresses) /* a large view still waits in line, so few at a time are compressed */
        gzip_settle(request, response);
    if (in_line)
        outgoing_leave(request->outgoing, line);
}

void routes_handle(void *data, struct http_request *request, struct http_response *response)
{
    struct routes *routes = data;
    g_autofree char *path = g_strdup(request->path);
    g_autoptr(GString) allow = g_string_new(NULL);
    const char *parts[PARTS_MAX];
    size_t n_parts = 0;
    bool short_enough = path_split(path, parts, &n_parts);

    /* A page of another site has no token. */
    if (!door_passes(request, routes->bearer ? NULL : routes->hosts,
                     routes->no_browser ? DOOR_NO_ORIGIN : 0, response))
        return;
    for (const struct route *route = routes->rows; short_enough && route->method; route++) {
        if (!pattern_matches(route->pattern, parts, n_parts, request))
            continue;
        if (method_matches(route->method, request->method)) {
            if (!may_call(routes, route, request)) {
                refuse_caller(request, response);
                return;
            }
            if (door_takes_body(request, route->flags & ROUTE_MANIFEST ? DOOR_YAML : 0, response))
                run_route(routes, route, request, response);
            return;
        }
        allow_append(allow, route->method);
    }
    if (!may_call(routes, NULL, request)) {
        refuse_caller(request, response);
        return;
    }
    if (allow->len == 0) {
        http_response_fail(response, MHD_HTTP_NOT_FOUND, "there is no '%s' here", request->path);
        return;
    }
    http_response_fail(response, MHD_HTTP_METHOD_NOT_ALLOWED, "'%s' takes %s, not %s",
                       request->path, allow->str, request->method);
    http_response_add_header(response, MHD_HTTP_HEADER_ALLOW,
                             g_string_free(g_steal_pointer(&allow), FALSE));
}
