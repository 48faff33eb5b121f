/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options are set anew for every request: a handle that comes from a pool carries nothing over but
 * its connections, and libcurl matches those against certificate and server by itself.
 */
#include "kube/transport.h"

#include "base/version.h"
#include "base/no_proxy.h"
#include "kube/secret.h"
#include "wire/kubernetes.h"

#include <gpuledger/error.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

/* A watch notices a peer that is gone after 45 s, as client-go's do (apimachinery@v0.36.3:pkg/util/net/http.go:
 * 30 s of silence, and 15 s for an answer). */
#define KEEPALIVE_IDLE_S 30L
#define KEEPALIVE_INTERVAL_S 5L
#define KEEPALIVE_PROBES 3
/* Below the API server's own limit for idle connections, so that a Binding is not sent into one
 * that is being closed. */
#define CONNECTION_IDLE_S 60L
#define CA_CACHE_S 300L
#define BUFFER_SIZE 65536L
#define BODY_EXCERPT_MAX 160
#define RETRY_AFTER_MAX_S 600

struct transport {
    const struct kube_config *config;
    char *base; /* scheme, host as the certificate has it, port, path */
    char *user_agent;
    char *host_header;            /* "Host: ..." or NULL for what `base` says */
    struct curl_slist *addresses; /* where the host of `base` really is, or NULL */
    bool direct;                  /* and NO_PROXY names that place */
};

static void curl_start(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static const char *from_environment(const char *lower, const char *upper)
{
    const char *value = g_getenv(lower);

    return value ? value : g_getenv(upper);
}

/* With tls-server-name the URL names the certificate's host, and the connection goes elsewhere. */
static bool set_base(struct transport *transport, GError **error)
{
    const struct kube_config *config = transport->config;
    g_autoptr(GUri) uri = g_uri_parse(config->server, G_URI_FLAGS_NONE, error);

    if (!uri)
        return false;
    if (!config->tls_server_name || !g_str_equal(g_uri_get_scheme(uri), "https")) {
        transport->base = g_strdup(config->server);
        return true;
    }
    const char *host = g_uri_get_host(uri);
    const int port = g_uri_get_port(uri) > 0 ? g_uri_get_port(uri) : 443;
    const char *open = strchr(host, ':') ? "[" : "";
    const char *close = strchr(host, ':') ? "]" : "";
    g_autofree char *address =
        g_strdup_printf("%s:%d:%s%s%s:%d", config->tls_server_name, port, open, host, close, port);

    transport->base =
        g_strdup_printf("https://%s:%d%s", config->tls_server_name, port, g_uri_get_path(uri));
    transport->addresses = curl_slist_append(NULL, address);
    transport->direct = no_proxy_names(from_environment("no_proxy", "NO_PROXY"), host, port);
    transport->host_header = g_strdup_printf("Host: %s%s%s:%d", open, host, close, port);
    return true;
}

struct transport *transport_new(const struct kube_config *config, GError **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct transport *transport = g_new0(struct transport, 1);

    pthread_once(&once, curl_start);
    transport->config = config;
    transport->user_agent = g_strconcat("gpuledger/", version_text, NULL);
    if (set_base(transport, error))
        return transport;
    transport_free(transport);
    return NULL;
}

void transport_free(struct transport *transport)
{
    if (!transport)
        return;
    curl_slist_free_all(transport->addresses);
    g_free(transport->host_header);
    g_free(transport->user_agent);
    g_free(transport->base);
    g_free(transport);
}

const char *transport_server(const struct transport *transport)
{
    return transport->config->server;
}

/* --- preparing a handle --------------------------------------------------------------------- */

static void set_blob(CURL *handle, CURLoption option, const char *pem)
{
    struct curl_blob blob = {(void *)(uintptr_t)pem, strlen(pem), CURL_BLOB_COPY};
    curl_easy_setopt(handle, option, &blob);
}

static void set_trust(const struct kube_config *config, CURL *handle)
{
    if (config->insecure) {
        curl_easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!config->ca_data && !config->ca_file)
        return;
    /* Only this authority: the system's folder would be trusted beside it. */
    curl_easy_setopt(handle, CURLOPT_CAPATH, NULL);
    if (config->ca_data) {
        set_blob(handle, CURLOPT_CAINFO_BLOB, config->ca_data);
    } else {
        curl_easy_setopt(handle, CURLOPT_CAINFO, config->ca_file);
        curl_easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, CA_CACHE_S);
    }
}

/* As text, not as files: libcurl uses a kept connection only for a certificate with the same text. */
static void set_identity(CURL *handle, const struct credential *credential)
{
    if (credential->cert_pem)
        set_blob(handle, CURLOPT_SSLCERT_BLOB, credential->cert_pem);
    if (credential->key_pem)
        set_blob(handle, CURLOPT_SSLKEY_BLOB, credential->key_pem);
}

/* `data`: NULL, or anything for a connection that drops, see transport.h. */
static int set_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
    static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    static const int probes = KEEPALIVE_PROBES;

    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    if (data)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return CURL_SOCKOPT_OK;
}

static void set_connection(const struct transport *transport, CURL *handle,
                           const struct transport_request *request)
{
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(handle, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, BUFFER_SIZE);
    curl_easy_setopt(handle, CURLOPT_MAXCONNECTS, 2L);
    curl_easy_setopt(handle, CURLOPT_MAXAGE_CONN, CONNECTION_IDLE_S);
    curl_easy_setopt(handle, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, set_socket);
    curl_easy_setopt(handle, CURLOPT_SOCKOPTDATA, request->drops ? (void *)handle : NULL);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
    if (transport->addresses)
        curl_easy_setopt(handle, CURLOPT_CONNECT_TO, transport->addresses);
    if (transport->config->proxy_url) {
        /* The kubeconfig's word is final; the environment's exceptions are not for it. */
        curl_easy_setopt(handle, CURLOPT_PROXY, transport->config->proxy_url);
        curl_easy_setopt(handle, CURLOPT_NOPROXY, "");
    } else if (transport->direct) {
        curl_easy_setopt(handle, CURLOPT_PROXY, "");
    } else if (transport->addresses) {
        /* libcurl would look for the certificate's name. */
        curl_easy_setopt(handle, CURLOPT_NOPROXY, "");
    }
}

static struct curl_slist *set_headers(const struct transport *transport, CURL *handle,
                                      const struct transport_request *request,
                                      const struct credential *credential)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: application/json");

    if (transport->host_header)
        headers = curl_slist_append(headers, transport->host_header);
    if (request->body) {
        /* Every JSON document is a YAML document, and no older API server knows apply-patch+json. */
        headers = curl_slist_append(
            headers, strcmp(request->method, "PATCH") != 0 ? "Content-Type: application/json"
                     : request->apply ? "Content-Type: application/apply-patch+yaml"
                                      : "Content-Type: application/merge-patch+json");
        headers = curl_slist_append(headers, "Expect:");
    }
    if (credential->authorization) {
        char *line = g_strconcat("Authorization: ", credential->authorization, NULL);
        headers = curl_slist_append(headers, line);
        secret_free(line);
    }
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    return headers;
}

struct curl_slist *transport_prepare(const struct transport *transport, CURL *handle,
                                     const struct transport_request *request,
                                     const struct credential *credential)
{
    g_autoptr(GString) url = g_string_new(transport->base);

    g_string_append(url, request->path);
    if (request->server_timeout_ms > 0)
        g_string_append_printf(url, "%ctimeout=%" G_GINT64_FORMAT "ms",
                               strchr(request->path, '?') ? '&' : '?', request->server_timeout_ms);
    request->message[0] = '\0';
    curl_easy_reset(handle);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, request->message);
    curl_easy_setopt(handle, CURLOPT_URL, url->str);
    curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, transport->user_agent);
    set_connection(transport, handle, request);
    set_trust(transport->config, handle);
    set_identity(handle, credential);
    if (request->compressed)
        curl_easy_setopt(handle, CURLOPT_ACCEPT_ENCODING, "gzip");
    if (request->body) {
        curl_easy_setopt(handle, CURLOPT_POST, 1L);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request->body);
        curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    }
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request->method);
    return set_headers(transport, handle, request, credential);
}

/* --- replies -------------------------------------------------------------------------------- */

int64_t transport_retry_after_ms(CURL *handle)
{
    curl_off_t seconds = 0;

    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &seconds);
    return CLAMP(seconds, 0, RETRY_AFTER_MAX_S) * 1000;
}

static enum gpuledger_error error_code(long status)
{
    static const struct {
        long status;
        enum gpuledger_error code;
    } codes[] = {
        {401, GPULEDGER_ERROR_CREDENTIALS}, {403, GPULEDGER_ERROR_DENIED},
        {404, GPULEDGER_ERROR_NOT_FOUND},   {409, GPULEDGER_ERROR_CONFLICT},
        {413, GPULEDGER_ERROR_LIMIT},       {429, GPULEDGER_ERROR_UNAVAILABLE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
        if (codes[i].status == status)
            return codes[i].code;
    }
    return status >= 500 ? GPULEDGER_ERROR_UNAVAILABLE : GPULEDGER_ERROR_INVALID;
}

int64_t transport_status_error(const struct transport_request *request, long status,
                               const char *body, size_t length, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct status_view view = {0};
    const cJSON *object = json_parse(arena, body, length, NULL);

    /* Not that they lack rights: that is a 403. */
    const char *before = status == 401 ? "our credentials are not accepted: " : "";
    if (object && status_view_decode(arena, object, &view, NULL) && view.message && *view.message) {
        g_set_error(error, GPULEDGER_ERROR, error_code(status), "%s%s", before, view.message);
        return CLAMP(view.retry_after_s, 0, RETRY_AFTER_MAX_S) * 1000;
    }
    /* Some proxy's words, or none. */
    g_autoptr(GString) excerpt = g_string_new(NULL);
    for (size_t i = 0; i < MIN(length, BODY_EXCERPT_MAX); i++)
        g_string_append_c(excerpt, g_ascii_isprint(body[i]) ? body[i] : ' ');
    g_strstrip(excerpt->str);
    g_set_error(error, GPULEDGER_ERROR, error_code(status), "%s%s %s was answered with %ld%s%s",
                before, request->method, request->path, status, *excerpt->str ? ": " : "",
                excerpt->str);
    return 0;
}

char *transport_escape(const char *name, const char *what, GError **error)
{
    if (!name || !*name || g_str_equal(name, ".") || g_str_equal(name, "..") ||
        strpbrk(name, "/%")) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "\"%.253s\" cannot be the name of a %s", name ? name : "", what);
        return NULL;
    }
    return g_uri_escape_string(name, NULL, FALSE);
}
