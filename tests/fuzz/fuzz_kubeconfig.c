/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text is refused as YAML with a message, or gives a tree that can be written as JSON and
 * read again; and any file is refused as a kubeconfig, or gives an address and whole pairs.
 */
#include "target.h"

#include "kube/kubeconfig.h"
#include "kube/yaml_document.h"
#include "json/json.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_yaml(const char *text, size_t size)
{
    g_autoptr(GError) error = NULL;
    cJSON *tree = yaml_load_all(text, size, &error);

    FUZZ_CHECK(!tree == !!error);
    if (!tree)
        return;
    FUZZ_CHECK(cJSON_IsArray(tree));

    g_autoptr(json_arena) arena = json_arena_new();
    GString *json = g_string_new(NULL);
    struct json_writer writer;
    json_writer_init(&writer, json);
    json_value(&writer, tree);
    FUZZ_CHECK(json_parse(arena, json->str, json->len, NULL));
    g_string_free(json, TRUE);
    cJSON_Delete(tree);
}

static void check_config(const struct kube_config *config)
{
    FUZZ_CHECK(g_ascii_strncasecmp(config->server, "http", 4) == 0);
    FUZZ_CHECK(config->source && config->context);
    FUZZ_CHECK(!(config->ca_data && config->ca_file));
    FUZZ_CHECK(!(config->insecure && (config->ca_data || config->ca_file)));
    FUZZ_CHECK((config->cert_data || config->cert_file) == (config->key_data || config->key_file));
    FUZZ_CHECK(!(config->user && (config->token || config->token_file)));
    FUZZ_CHECK(!config->exec || (config->exec->command && config->exec->args && config->exec->env));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    const int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);

    check_yaml((const char *)data, size);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    struct kube_config *config = kube_config_load(path, NULL, &error);
    FUZZ_CHECK(!config == !!error);
    if (config)
        check_config(config);
    kube_config_free(config);
    close(fd);
    return 0;
}
