/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are not merged into one: they are kept side by side and a name is looked up in the first
 * that has it, because relative paths count from the file that they stand in.
 */
#include "kube/kubeconfig.h"

#include "core/fail.h"
#include "kube/kubeconfig_entry.h"
#include "kube/secret.h"
#include "base/small_file.h"
#include "kube/yaml_document.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define CA_SIZE_MAX ((size_t)4 << 20)

enum list { LIST_CONTEXT, LIST_CLUSTER, LIST_USER, LIST_N };

/* What an entry of each list is called, in messages and by its own key. */
static const char *const list_names[LIST_N] = {"context", "cluster", "user"};

struct config_file {
    char *path;
    char *directory;
    cJSON *tree;
    const char *current_context;
    const cJSON *lists[LIST_N];
};

struct config_files {
    struct json_arena *arena;
    GPtrArray *files; /* struct config_file * */
    const char *paths;
};

static void config_file_free(void *data)
{
    struct config_file *file = data;

    cJSON_Delete(file->tree);
    g_free(file->directory);
    g_free(file->path);
    g_free(file);
}

static void config_files_clear(struct config_files *files)
{
    g_clear_pointer(&files->files, g_ptr_array_unref);
    g_clear_pointer(&files->arena, json_arena_free);
}

void kube_config_free(struct kube_config *config)
{
    if (!config)
        return;
    if (config->exec) {
        g_free(config->exec->command);
        g_strfreev(config->exec->args);
        g_strfreev(config->exec->env);
        g_free(config->exec->api_version);
        g_free(config->exec->cluster_extension);
        g_free(config->exec->install_hint);
        g_free(config->exec);
    }
    g_free(config->source);
    g_free(config->context);
    g_free(config->ns);
    g_free(config->server);
    g_free(config->tls_server_name);
    g_free(config->proxy_url);
    g_free(config->ca_data);
    g_free(config->ca_file);
    g_free(config->cert_data);
    g_free(config->cert_file);
    secret_free(config->key_data);
    g_free(config->key_file);
    secret_free(config->token);
    g_free(config->token_file);
    g_free(config->user);
    secret_free(config->password);
    g_free(config);
}

/* --- files ---------------------------------------------------------------------------------- */

#define FILE_FIELD(KIND, member, path) JSON_FIELD_##KIND(struct config_file, member, path, 0)
static const struct json_field file_fields[] = {
    FILE_FIELD(STRING, current_context, "current-context"),
    FILE_FIELD(ARRAY, lists[LIST_CONTEXT], "contexts"),
    FILE_FIELD(ARRAY, lists[LIST_CLUSTER], "clusters"),
    FILE_FIELD(ARRAY, lists[LIST_USER], "users"),
    JSON_FIELD_END,
};

static bool load_file(struct config_files *files, const char *path, GError **error)
{
    size_t length;
    g_autofree char *text = small_file_read(path, KUBECONFIG_SIZE_MAX, &length, error);
    if (!text)
        return false;

    struct config_file *file = g_new0(struct config_file, 1);
    g_ptr_array_add(files->files, file);
    file->path = g_strdup(path);
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    file->directory = g_path_get_dirname(absolute);
    file->tree = yaml_load(text, length, error);
    explicit_bzero(text, length);
    if (file->tree && cJSON_IsNull(file->tree))
        return true; /* an empty file, as a process that sets up others may leave it */
    if (!file->tree || !json_decode(files->arena, file->tree, file_fields, file, error))
        return fail_within(error, "\"%s\": ", path);
    return true;
}

static bool load_files(struct config_files *files, const char *paths, GError **error)
{
    g_auto(GStrv) list = g_strsplit(paths, ":", KUBECONFIG_FILES_MAX);
    g_autoptr(GError) missing = NULL;

    for (char **path = list; *path; path++) {
        if (!**path)
            continue;
        if (access(*path, F_OK) != 0 && errno == ENOENT) {
            if (!missing)
                g_set_error(&missing, GPULEDGER_ERROR, GPULEDGER_ERROR_IO,
                            "there is no file \"%s\"", *path);
            continue;
        }
        if (!load_file(files, *path, error))
            return false;
    }
    if (files->files->len > 0)
        return true;
    if (missing)
        g_propagate_error(error, g_steal_pointer(&missing));
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "\"%s\" names no kubeconfig file",
                    paths);
    return false;
}

/* --- entries -------------------------------------------------------------------------------- */

static char *names_of(const struct config_files *files, enum list list)
{
    g_autoptr(GString) names = g_string_new(NULL);
    const cJSON *item;

    for (guint i = 0; i < files->files->len; i++) {
        const struct config_file *file = files->files->pdata[i];

        cJSON_ArrayForEach (item, file->lists[list])
            g_string_append_printf(names, "%s%s", names->len ? ", " : "", config_item_name(item));
    }
    if (!names->len)
        g_string_assign(names, "none");
    return g_string_free(g_steal_pointer(&names), FALSE);
}

static bool find_entry(const struct config_files *files, enum list list, const char *name,
                       struct config_entry *ret_entry, GError **error)
{
    const cJSON *item;

    for (guint i = 0; i < files->files->len; i++) {
        const struct config_file *file = files->files->pdata[i];

        cJSON_ArrayForEach (item, file->lists[list]) {
            if (!g_str_equal(config_item_name(item), name))
                continue;
            *ret_entry = (struct config_entry){
                .arena = files->arena,
                .path = file->path,
                .directory = file->directory,
                .list = list_names[list],
                .name = config_item_name(item),
                .value = cJSON_GetObjectItemCaseSensitive(item, list_names[list]),
            };
            return true;
        }
    }
    g_autofree char *names = names_of(files, list);
    return fail_with(error, GPULEDGER_ERROR_NOT_FOUND,
                     "\"%s\": %s \"%s\" is not in the file; it has: %s", files->paths,
                     list_names[list], name, names);
}

/* --- context -------------------------------------------------------------------------------- */

struct context_fields {
    const char *cluster;
    const char *user;
    const char *ns;
};

static const struct json_field context_fields[] = {
    JSON_FIELD_STRING(struct context_fields, cluster, "cluster", JSON_REQUIRED),
    JSON_FIELD_STRING(struct context_fields, user, "user", 0),
    JSON_FIELD_STRING(struct context_fields, ns, "namespace", 0),
    JSON_FIELD_END,
};

static const char *current_context(const struct config_files *files)
{
    for (guint i = 0; i < files->files->len; i++) {
        const struct config_file *file = files->files->pdata[i];

        if (file->current_context && *file->current_context)
            return file->current_context;
    }
    return NULL;
}

static bool take_context(const struct config_files *files, const char *name,
                         struct kube_config *config, GError **error)
{
    struct context_fields fields = {0};
    struct config_entry context, cluster, user;

    if (!name || !*name)
        name = current_context(files);
    if (!name) {
        g_autofree char *names = names_of(files, LIST_CONTEXT);
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "\"%s\": no current-context is set; name a context, the file has: %s",
                         files->paths, names);
    }
    if (!find_entry(files, LIST_CONTEXT, name, &context, error))
        return false;
    if (!cJSON_IsObject(context.value))
        return config_entry_refuse(&context, error, "field 'context': expected an object");
    if (!config_entry_decode(&context, context_fields, &fields, error))
        return false;
    config->source = g_strdup(context.path);
    config->context = g_strdup(name);
    config->ns = g_strdup(fields.ns && *fields.ns ? fields.ns : "default");

    if (fields.user && *fields.user &&
        (!find_entry(files, LIST_USER, fields.user, &user, error) ||
         !config_entry_take_user(&user, config, error)))
        return false;
    return find_entry(files, LIST_CLUSTER, fields.cluster, &cluster, error) &&
           config_entry_take_cluster(&cluster, config, error);
}

struct kube_config *kube_config_load(const char *paths, const char *context, GError **error)
{
    g_autoptr(kube_config) config = g_new0(struct kube_config, 1);
    struct config_files files = {
        .arena = json_arena_new(),
        .files = g_ptr_array_new_with_free_func(config_file_free),
        .paths = paths,
    };

    const bool ok =
        load_files(&files, paths, error) && take_context(&files, context, config, error);
    config_files_clear(&files);
    return ok ? g_steal_pointer(&config) : NULL;
}

/* --- in a pod ------------------------------------------------------------------------------- */

struct kube_config *kube_config_load_in_cluster(const char *directory, GError **error)
{
    const char *host = g_getenv("KUBERNETES_SERVICE_HOST");
    const char *port = g_getenv("KUBERNETES_SERVICE_PORT");

    if (!host || !*host || !port || !*port) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                    "not set; give a kubeconfig");
        return NULL;
    }
    if (!directory)
        directory = SERVICE_ACCOUNT;

    g_autoptr(kube_config) config = g_new0(struct kube_config, 1);
    const bool bare_ipv6 = strchr(host, ':') && *host != '[';
    g_autofree char *server = g_strdup_printf("https://%s%s%s:%s", bare_ipv6 ? "[" : "", host,
                                              bare_ipv6 ? "]" : "", port);
    config->server = config_server_dup(server);
    if (!config->server) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "KUBERNETES_SERVICE_HOST and _PORT make no address: \"%s\"", server);
        return NULL;
    }
    config->source = g_strdup("in-cluster");
    config->ca_file = g_build_filename(directory, "ca.crt", NULL);
    config->token_file = g_build_filename(directory, "token", NULL);

    /* Read once now, so that a pod without a service account fails at its start. */
    g_autofree char *ca = small_file_read(config->ca_file, CA_SIZE_MAX, NULL, error);
    g_autofree char *token =
        ca ? small_file_read(config->token_file, KUBECONFIG_SIZE_MAX, NULL, error) : NULL;
    if (!token) {
        g_prefix_error(error, "in-cluster: is automountServiceAccountToken off? ");
        return NULL;
    }
    explicit_bzero(token, strlen(token));

    g_autofree char *ns_file = g_build_filename(directory, "namespace", NULL);
    config->ns = small_file_read(ns_file, KUBECONFIG_SIZE_MAX, NULL, NULL);
    if (config->ns)
        g_strstrip(config->ns);
    if (!config->ns || !*config->ns) {
        g_free(config->ns);
        config->ns = g_strdup("default");
    }
    return g_steal_pointer(&config);
}

struct kube_config *kube_config_load_default(const char *path, const char *context, GError **error)
{
    const char *environment = g_getenv("KUBECONFIG");

    if (path && *path)
        return kube_config_load(path, context, error);
    if (environment && *environment)
        return kube_config_load(environment, context, error);
    if (g_getenv("KUBERNETES_SERVICE_HOST"))
        return kube_config_load_in_cluster(NULL, error);
    g_autofree char *home = g_build_filename(g_get_home_dir(), ".kube", "config", NULL);
    return kube_config_load(home, context, error);
}
