/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the API server is and who we are to it: from kubeconfig files or from the environment of
 * a pod. Only reading and checking; nothing is sent. Source of the format: clientcmd.k8s.io/v1
 * Config (k8s.io/client-go tools/clientcmd/api/v1) and rest.InClusterConfig.
 *
 * Errors name the file, the entry, the field and the fix; they never show a secret.
 * Threads: a configuration is filled once and then only read.
 */
#include <glib.h>
#include <stdbool.h>

/* A program that hands out credentials (client.authentication.k8s.io). */
struct kube_exec {
    char *command; /* absolute, or without a slash to be looked up in PATH */
    char **args;   /* NULL-terminated, never NULL */
    char **env;    /* "NAME=value" beside our own environment; never NULL */
    char *api_version;
    bool provide_cluster_info;
    char *cluster_extension; /* JSON for spec.cluster.config, or NULL */
    char *install_hint;      /* or NULL */
};

/* Strings are owned; NULL where nothing was given. Of a pair "data or file" at most one is set. */
struct kube_config {
    char *source;  /* for messages: the file, or "in-cluster" */
    char *context; /* NULL in a cluster */
    char *ns;      /* "default" unless said otherwise */
    char *server;  /* "https://host:6443", without a slash at its end */
    char *tls_server_name;
    char *proxy_url;
    bool insecure; /* do not verify the server */
    char *ca_data; /* PEM */
    char *ca_file;
    char *cert_data; /* PEM */
    char *cert_file;
    char *key_data; /* PEM */
    char *key_file;
    char *token;
    char *token_file; /* preferred to `token` while it is readable */
    char *user;       /* basic authentication */
    char *password;
    struct kube_exec *exec;
};

/* The files of a colon list ("" entries are skipped, missing files too unless all are), or the
 * one file. For every name the first file that has it wins. `context` NULL or "": the
 * current-context. */
struct kube_config *kube_config_load(const char *paths, const char *context, GError **error);

/* What a pod is given: $KUBERNETES_SERVICE_HOST, _PORT and the service account's files in
 * `directory`, NULL for the usual place. */
struct kube_config *kube_config_load_in_cluster(const char *directory, GError **error);

/* The first that applies: `path` if not NULL or "", $KUBECONFIG, the pod's environment,
 * ~/.kube/config. */
struct kube_config *kube_config_load_default(const char *path, const char *context, GError **error);

void kube_config_free(struct kube_config *config);
typedef struct kube_config kube_config; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(kube_config, kube_config_free)

#define KUBECONFIG_SIZE_MAX ((size_t)4 << 20)
#define KUBECONFIG_FILES_MAX 64
