/* SPDX-License-Identifier: Apache-2.0 */
#include "http/doors.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <string.h>

#define JSON "application/json"
#define YAML "application/yaml"

/* What precedes the port, without the brackets of an IPv6 address. Free with g_free. */
static char *host_name(const char *host)
{
    if (host[0] == '[')
        return g_strndup(host + 1, strcspn(host + 1, "]%"));
    return g_strndup(host, strcspn(host, ":"));
}

static bool is_address(const char *name)
{
    struct in6_addr address;

    return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

/* Whether a Host, with or without its port, is an address, localhost, or among `hosts`. */
static bool knows_host(const char *host, const char *hosts)
{
    g_autofree char *name = host_name(host);
    g_auto(GStrv) known = g_strsplit(hosts, ",", -1);
    const size_t length = strlen(name);

    /* With the dot at its end it is the same name. */
    if (length > 0 && name[length - 1] == '.')
        name[length - 1] = '\0';
    if (is_address(name) || g_ascii_strcasecmp(name, "localhost") == 0)
        return true;
    for (char **each = known; *each; each++) {
        if (**each && g_ascii_strcasecmp(name, *each) == 0)
            return true;
    }
    return false;
}

static bool refuse(const struct http_request *request, struct http_response *response,
                   unsigned status, const char *why)
{
    http_response_fail(response, status, "%s", why);
    log_event_limited(LOG_LEVEL_WARN, "request refused", LOG_TEXT("path", request->path),
                      LOG_NUMBER("status", status), LOG_TEXT("why", why));
    return false;
}

bool door_passes(const struct http_request *request, const char *hosts, unsigned flags,
                 struct http_response *response)
{
    const char *host = http_request_header(request, MHD_HTTP_HEADER_HOST);

    if (flags & DOOR_NO_ORIGIN && http_request_header(request, MHD_HTTP_HEADER_ORIGIN))
        return refuse(request, response, MHD_HTTP_FORBIDDEN,
                      "a web page has sent this (there is an Origin), and none calls here");
    /* Without a Host it is HTTP/1.0, which no browser speaks. */
    if (!hosts || !host || knows_host(host, hosts))
        return true;
    return refuse(request, response, MHD_HTTP_FORBIDDEN,
                  "the name in Host is not known here; call by address, or name it in --ops-hosts");
}

static bool has_type(const char *header, const char *type)
{
    const size_t length = strlen(type);

    return header && g_ascii_strncasecmp(header, type, length) == 0 &&
           strchr(" \t;", header[length]);
}

bool door_takes_body(const struct http_request *request, unsigned flags,
                     struct http_response *response)
{
    const char *type = http_request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    const bool yaml = flags & DOOR_YAML;

    if (strcmp(request->method, MHD_HTTP_METHOD_POST) != 0 || has_type(type, JSON) ||
        (yaml && has_type(type, YAML)))
        return true;
    return refuse(request, response, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                  yaml ? "a POST has to have the header 'Content-Type: " JSON "', or " YAML
                       : "a POST has to have the header 'Content-Type: " JSON "'");
}
