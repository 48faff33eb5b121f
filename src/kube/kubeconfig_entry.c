/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig_entry.h"

#include <gpuledger/error.h>
#include <string.h>

#define EXEC_GROUP "client.authentication.k8s.io/"

/* --- entries -------------------------------------------------------------------------------- */

const char *config_item_name(const cJSON *item)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
    return name ? name : "";
}

static void prefix_entry(const struct config_entry *entry, GError **error)
{
    g_prefix_error(error, "\"%s\": %s \"%s\": ", entry->path, entry->list, entry->name);
}

bool config_entry_decode(const struct config_entry *entry, const struct json_field *fields,
                         void *ret, GError **error)
{
    if (!entry->value || cJSON_IsNull(entry->value) ||
        json_decode(entry->arena, entry->value, fields, ret, error))
        return true;
    prefix_entry(entry, error);
    return false;
}

bool config_entry_refuse(const struct config_entry *entry, GError **error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "%s", text);
    prefix_entry(entry, error);
    return false;
}

static char *text_dup(const char *text)
{
    return text && *text ? g_strdup(text) : NULL;
}

static char *path_dup(const struct config_entry *entry, const char *path)
{
    return path && *path ? g_canonicalize_filename(path, entry->directory) : NULL;
}

/* Strict where g_base64_decode is not: foreign characters are an error. */
static bool base64_is_valid(const char *text)
{
    size_t n = 0, padding = 0;

    for (; *text; text++) {
        if (g_ascii_isspace(*text))
            continue;
        if (*text == '=')
            padding++;
        else if (padding || !(g_ascii_isalnum(*text) || *text == '+' || *text == '/'))
            return false;
        n++;
    }
    return padding <= 2 && n % 4 == 0;
}

/* "certificate-authority-data" and its like: base64 of PEM. Data beats a file. */
static bool take_pem(const struct config_entry *entry, const char *field, const char *data,
                     const char *path, char **ret_data, char **ret_file, GError **error)
{
    size_t length;

    if (!data || !*data) {
        *ret_file = path_dup(entry, path);
        return true;
    }
    if (!base64_is_valid(data))
        return config_entry_refuse(entry, error, "field '%s-data': is not base64", field);
    g_autofree char *pem = (char *)g_base64_decode(data, &length);
    *ret_data = g_strndup(pem, length);
    explicit_bzero(pem, length);
    if (!strstr(*ret_data, "-----BEGIN "))
        return config_entry_refuse(
            entry, error, "field '%s-data': holds no PEM block (\"-----BEGIN ...\")", field);
    return true;
}

/* --- cluster -------------------------------------------------------------------------------- */

struct cluster_fields {
    const char *server;
    const char *ca;
    const char *ca_data;
    const char *tls_server_name;
    const char *proxy_url;
    bool insecure;
    const cJSON *extensions;
};

#define CLUSTER(KIND, member, path, flags)                                                         \
    JSON_FIELD_##KIND(struct cluster_fields, member, path, flags)
static const struct json_field cluster_fields[] = {
    CLUSTER(STRING, server, "server", JSON_REQUIRED),
    CLUSTER(STRING, ca, "certificate-authority", 0),
    CLUSTER(STRING, ca_data, "certificate-authority-data", 0),
    CLUSTER(STRING, tls_server_name, "tls-server-name", 0),
    CLUSTER(STRING, proxy_url, "proxy-url", 0),
    CLUSTER(BOOL, insecure, "insecure-skip-tls-verify", 0),
    CLUSTER(ARRAY, extensions, "extensions", 0),
    JSON_FIELD_END,
};

/* A URL of one of these schemes that names a host and nothing beside its port and path. */
static bool url_is_plain(const char *url, const char *const *schemes)
{
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);

    return uri && g_strv_contains(schemes, g_uri_get_scheme(uri)) && g_uri_get_host(uri) &&
           *g_uri_get_host(uri) && !g_uri_get_query(uri) && !g_uri_get_fragment(uri);
}

char *config_server_dup(const char *server)
{
    static const char *const schemes[] = {"https", "http", NULL};

    if (!url_is_plain(server, schemes) || strchr(server, '@'))
        return NULL;
    char *copy = g_strdup(server);
    for (size_t n = strlen(copy); n > 0 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    return copy;
}

bool config_entry_take_cluster(const struct config_entry *entry, struct kube_config *config,
                               GError **error)
{
    static const char *const proxy_schemes[] = {"http", "https", "socks5", "socks5h", NULL};
    struct cluster_fields fields = {0};
    const cJSON *item;

    if (!cJSON_IsObject(entry->value))
        return config_entry_refuse(entry, error, "field 'cluster': expected an object");
    if (!config_entry_decode(entry, cluster_fields, &fields, error))
        return false;
    config->server = config_server_dup(fields.server);
    if (!config->server)
        return config_entry_refuse(entry, error,
                                   "field 'server': \"%s\" is not of the form https://HOST:PORT",
                                   fields.server);
    config->tls_server_name = text_dup(fields.tls_server_name);
    config->proxy_url = text_dup(fields.proxy_url);
    /* Its text may hold a password. */
    if (config->proxy_url && !url_is_plain(config->proxy_url, proxy_schemes))
        return config_entry_refuse(entry, error,
                                   "field 'proxy-url': is not of the form http://HOST:PORT, "
                                   "https:// or socks5://");
    config->insecure = fields.insecure;
    if (!take_pem(entry, "certificate-authority", fields.ca_data, fields.ca, &config->ca_data,
                  &config->ca_file, error))
        return false;
    if (config->insecure && (config->ca_data || config->ca_file))
        return config_entry_refuse(
            entry, error,
            "fields 'certificate-authority' and 'insecure-skip-tls-verify' contradict "
            "each other; remove one");
    cJSON_ArrayForEach (item, fields.extensions) {
        const cJSON *extension = cJSON_GetObjectItemCaseSensitive(item, "extension");

        if (extension && config->exec && g_str_equal(config_item_name(item), EXEC_GROUP "exec")) {
            struct json_writer writer;
            GString *text = g_string_new(NULL);

            json_writer_init(&writer, text);
            json_value(&writer, extension);
            config->exec->cluster_extension = g_string_free(text, FALSE);
            break;
        }
    }
    return true;
}

/* --- user ----------------------------------------------------------------------------------- */

struct user_fields {
    const char *cert;
    const char *cert_data;
    const char *key;
    const char *key_data;
    const char *token;
    const char *token_file;
    const char *user;
    const char *password;
    bool impersonate;
    bool auth_provider;
    const cJSON *exec;
};

#define USER(KIND, member, path) JSON_FIELD_##KIND(struct user_fields, member, path, 0)
static const struct json_field user_fields[] = {
    USER(STRING, cert, "client-certificate"),
    USER(STRING, cert_data, "client-certificate-data"),
    USER(STRING, key, "client-key"),
    USER(STRING, key_data, "client-key-data"),
    USER(STRING, token, "token"),
    USER(STRING, token_file, "tokenFile"),
    USER(STRING, user, "username"),
    USER(STRING, password, "password"),
    USER(PRESENT, impersonate, "as"),
    USER(PRESENT, auth_provider, "auth-provider"),
    USER(OBJECT, exec, "exec"),
    JSON_FIELD_END,
};

struct exec_fields {
    const char *command;
    const char *api_version;
    const char *interactive_mode;
    const char *install_hint;
    bool provide_cluster_info;
    const cJSON *args;
    const cJSON *env;
};

#define EXEC(KIND, member, path, flags) JSON_FIELD_##KIND(struct exec_fields, member, path, flags)
static const struct json_field exec_fields[] = {
    EXEC(STRING, command, "exec.command", JSON_REQUIRED),
    EXEC(STRING, api_version, "exec.apiVersion", JSON_REQUIRED),
    EXEC(STRING, interactive_mode, "exec.interactiveMode", 0),
    EXEC(STRING, install_hint, "exec.installHint", 0),
    EXEC(BOOL, provide_cluster_info, "exec.provideClusterInfo", 0),
    EXEC(ARRAY, args, "exec.args", 0),
    EXEC(ARRAY, env, "exec.env", 0),
    JSON_FIELD_END,
};

struct env_fields {
    const char *name;
    const char *value;
};

static const struct json_field env_fields[] = {
    JSON_FIELD_STRING(struct env_fields, name, "name", JSON_REQUIRED),
    JSON_FIELD_STRING(struct env_fields, value, "value", 0),
    JSON_FIELD_END,
};

static bool take_exec(const struct config_entry *entry, struct kube_config *config, GError **error)
{
    struct exec_fields fields = {0};
    g_autoptr(GPtrArray) args = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) env = g_ptr_array_new_with_free_func(g_free);
    const cJSON *item;

    if (!config_entry_decode(entry, exec_fields, &fields, error))
        return false;
    if (!g_str_equal(fields.api_version, EXEC_GROUP "v1") &&
        !g_str_equal(fields.api_version, EXEC_GROUP "v1beta1"))
        return config_entry_refuse(
            entry, error, "field 'exec.apiVersion': \"%s\" is not supported; use " EXEC_GROUP "v1",
            fields.api_version);
    if (g_strcmp0(fields.interactive_mode, "Always") == 0)
        return config_entry_refuse(
            entry, error,
            "field 'exec.interactiveMode': \"Always\" needs a terminal; use a command "
            "that works without one and say IfAvailable or Never");
    cJSON_ArrayForEach (item, fields.args) {
        if (!cJSON_IsString(item))
            return config_entry_refuse(entry, error, "field 'exec.args': expected strings");
        g_ptr_array_add(args, g_strdup(item->valuestring));
    }
    cJSON_ArrayForEach (item, fields.env) {
        struct env_fields variable = {.value = ""};

        if (!json_decode(entry->arena, item, env_fields, &variable, error)) {
            g_prefix_error(error, "field 'exec.env': ");
            prefix_entry(entry, error);
            return false;
        }
        g_ptr_array_add(env, g_strconcat(variable.name, "=", variable.value, NULL));
    }
    g_ptr_array_add(args, NULL);
    g_ptr_array_add(env, NULL);

    config->exec = g_new0(struct kube_exec, 1);
    config->exec->command =
        strchr(fields.command, '/') ? path_dup(entry, fields.command) : g_strdup(fields.command);
    config->exec->args = (char **)g_ptr_array_free(g_steal_pointer(&args), FALSE);
    config->exec->env = (char **)g_ptr_array_free(g_steal_pointer(&env), FALSE);
    config->exec->api_version = g_strdup(fields.api_version);
    config->exec->install_hint = text_dup(fields.install_hint);
    config->exec->provide_cluster_info = fields.provide_cluster_info;
    return true;
}

bool config_entry_take_user(const struct config_entry *entry, struct kube_config *config,
                            GError **error)
{
    struct user_fields fields = {0};

    if (!config_entry_decode(entry, user_fields, &fields, error))
        return false;
    if (fields.impersonate)
        return config_entry_refuse(entry, error,
                                   "field 'as': impersonation is not supported; use credentials "
                                   "of the user that is meant");
    if (fields.auth_provider)
        return config_entry_refuse(entry, error,
                                   "field 'auth-provider': was removed from Kubernetes; use "
                                   "'exec' with the provider's credential command");
    if (!take_pem(entry, "client-certificate", fields.cert_data, fields.cert, &config->cert_data,
                  &config->cert_file, error) ||
        !take_pem(entry, "client-key", fields.key_data, fields.key, &config->key_data,
                  &config->key_file, error))
        return false;
    if ((config->cert_data || config->cert_file) != (config->key_data || config->key_file))
        return config_entry_refuse(
            entry, error,
            "fields 'client-certificate' and 'client-key' go together; one is missing");
    config->token = text_dup(fields.token);
    config->token_file = path_dup(entry, fields.token_file);
    config->user = text_dup(fields.user);
    config->password = text_dup(fields.password);
    if (config->user && (config->token || config->token_file))
        return config_entry_refuse(
            entry, error, "fields 'token' and 'username' contradict each other; remove one");
    return !fields.exec || take_exec(entry, config, error);
}
