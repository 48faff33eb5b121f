/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include "client/forward.h"
#include "core/fail.h"
#include "base/version.h"
#include "kube/secret.h"
#include "base/small_file.h"
#include "json/json.h"
#include "options/client_section.h"

#include <curl/curl.h>
#include <string.h>

#define CONNECT_TIMEOUT_S 5L
#define ANSWER_TIMEOUT_S 30L
#define CA_MAX (1 << 20)
#define TOKEN_MAX ((size_t)8 << 10)

static size_t receive(char *data, size_t size, size_t n, void *user)
{
    GString *body = user;
    if (size * n > CLIENT_ANSWER_MAX - body->len)
        return 0;
    g_string_append_len(body, data, (gssize)(size * n));
    return size * n;
}

/* The server's own words for a refusal, or what came instead of them. Free with g_free. */
static char *refusal_text(const GString *body)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, body->str, body->len, NULL);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "error"));
    return text ? g_strdup(text) : g_strndup(body->str, strcspn(body->str, "\r\n"));
}

/* What the caller may have left out. */
static const char *hint_of(CURLcode code, long status)
{
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return "; --ca-file names the CA's certificate, ca.crt of 'gpuledger certs'";
    if (status == 401)
        return "; --token-file names the file with it, token of 'gpuledger certs'";
    return "";
}

static bool check_reply(CURL *curl, CURLcode code, const char *url, const GString *body,
                        GError **error)
{
    long status = 0;
    if (code == CURLE_WRITE_ERROR)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "'%s': the answer is larger than %zu MiB",
                         url, CLIENT_ANSWER_MAX >> 20);
    if (code != CURLE_OK)
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE, "'%s': %s%s", url,
                         curl_easy_strerror(code),
                         *hint_of(code, 0) ? hint_of(code, 0)
                                           : "; is 'gpuledger serve' running, and is --server its "
                                             "--ops-listen address?");
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 202) {
        g_autofree char *text = refusal_text(body);
        return fail_with(error, status == 404 ? GPULEDGER_ERROR_NOT_FOUND : GPULEDGER_ERROR_INVALID,
                         "'%s': status %ld%s%s%s", url, status, *text ? ": " : "", text,
                         hint_of(code, status));
    }
    return true;
}

/* --- whom to ask ---------------------------------------------------------------------------- */

struct client {
    const struct config *config;
    struct forward forward; /* url NULL: --server is asked */
};

/* libcurl would say of a file that it cannot use only what the handshake came to. */
static bool check_ca(const char *file, GError **error)
{
    if (!*file)
        return true;
    g_autofree char *text = small_file_read(file, CA_MAX, NULL, error);
    if (!text)
        return fail_within(error, "option '--ca-file': ");
    return strstr(text, "-----BEGIN ") ||
           fail_with(error, GPULEDGER_ERROR_INVALID,
                     "option '--ca-file': \"%s\" holds no certificate in PEM form", file);
}

struct client *client_open(const struct config *config, GError **error)
{
    const struct client_settings *client_options = config_section(config, client);
    const bool direct = !*client_options->service || (config_on_command_line(config, "server") &&
                                                      !config_on_command_line(config, "service"));
    const bool secret = !*client_options->token_file || !*client_options->ca_file;
    if (!check_ca(client_options->ca_file, error))
        return NULL;
    struct client *client = g_new0(struct client, 1);

    client->config = config;
    if (direct || forward_open(&client->forward, client_options->service, secret, error))
        return client;
    g_free(client);
    return NULL;
}

void client_close(struct client *client)
{
    if (!client)
        return;
    forward_close(&client->forward);
    g_free(client);
}

const char *client_name(const struct client *client)
{
    const struct client_settings *client_options = config_section(client->config, client);

    return client->forward.url ? client_options->service : client_options->server;
}

/* --- asking --------------------------------------------------------------------------------- */

static bool add_header(struct curl_slist **headers, const char *token, const char *from,
                       GError **error)
{
    char *header = g_strconcat("Authorization: Bearer ", token, NULL);
    const bool one_line = strcspn(header, "\r\n") == strlen(header);

    if (one_line)
        *headers = curl_slist_append(*headers, header);
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "%s has more than one line",
                    from);
    secret_free(header);
    return one_line;
}

/* What the token file holds, or else the Secret, if there is one. */
static bool add_token(const struct client *client, struct curl_slist **headers, GError **error)
{
    const char *file = config_section(client->config, client)->token_file;
    g_autofree char *from = g_strdup_printf("option '--token-file': \"%s\"", file);

    if (!*file)
        return !client->forward.token ||
               add_header(headers, g_strstrip(client->forward.token), "the Secret's token", error);
    char *token = small_file_read(file, TOKEN_MAX, NULL, error);
    if (!token)
        return fail_within(error, "option '--token-file': ");
    const bool blank = strspn(token, " \t\r\n") == strlen(token);
    const bool ok = blank ? fail_with(error, GPULEDGER_ERROR_INVALID, "%s holds no token", from)
                          : add_header(headers, g_strstrip(token), from, error);
    secret_free(token);
    return ok;
}

static void trust(const struct client *client, CURL *curl)
{
    const struct client_settings *client_options = config_section(client->config, client);
    const char *ca = client->forward.ca;

    if (*client_options->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, client_options->ca_file);
    else if (ca)
        curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB,
                         &((struct curl_blob){(void *)ca, strlen(ca), CURL_BLOB_COPY}));
}

static char *url_of(const struct client *client, const char *path)
{
    const char *server =
        client->forward.url ? client->forward.url : config_section(client->config, client)->server;
    size_t length = strlen(server);

    while (length > 0 && server[length - 1] == '/')
        length--;
    return g_strdup_printf("%.*s%s", (int)length, server, path);
}

bool client_get(struct client *client, const struct client_request *request, GString *ret_body,
                GError **error)
{
    g_autofree char *url = url_of(client, request->path);
    g_autofree char *accept_header = g_strconcat("Accept: ", request->accept, NULL);
    g_autofree char *agent = g_strconcat("gpuledger/", version_text, NULL);
    struct curl_slist *headers = curl_slist_append(NULL, accept_header);

    if (!add_token(client, &headers, error)) {
        curl_slist_free_all(headers);
        return false;
    }
    if (client->forward.url)
        forward_drain(&client->forward);
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_USERAGENT, agent);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, ANSWER_TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    trust(client, curl);
    if (request->post) {
        headers = curl_slist_append(headers, request->body ? "Content-Type: application/yaml"
                                                           : "Content-Type: application/json");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret_body);
    const CURLcode code = curl_easy_perform(curl);
    const bool ok = check_reply(curl, code, url, ret_body, error);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    return ok;
}
