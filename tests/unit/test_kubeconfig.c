/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/kubeconfig.h"

#include "suite.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <string.h>
#include <unistd.h>

#define PEM "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
#define PEM64 "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFiYwotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg=="

static char *directory;

static void setup(void)
{
    directory = g_dir_make_tmp("kubeconfig-XXXXXX", NULL);
    ck_assert(directory);
}

static void remove_all(const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir && (name = g_dir_read_name(dir))) {
        g_autofree char *child = g_build_filename(path, name, NULL);
        if (g_file_test(child, G_FILE_TEST_IS_DIR))
            remove_all(child);
        else
            g_unlink(child);
    }
    g_rmdir(path);
}

static void teardown(void)
{
    remove_all(directory);
    g_free(directory);
}

static char *write_file(const char *name, const char *text)
{
    char *path = g_build_filename(directory, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);

    ck_assert_int_eq(g_mkdir_with_parents(parent, 0700), 0);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
    return path;
}

/* Two contexts, "a" is current; `cluster` and `user` are what stands in those of "a". */
static char *config_text(const char *cluster, const char *user)
{
    return g_strdup_printf("apiVersion: v1\n"
                           "kind: Config\n"
                           "current-context: a\n"
                           "contexts:\n"
                           "- name: a\n"
                           "  context: {cluster: ca, user: ua}\n"
                           "- name: b\n"
                           "  context: {cluster: cb, user: ub, namespace: nb}\n"
                           "clusters:\n"
                           "- name: ca\n"
                           "  cluster: {%s}\n"
                           "- name: cb\n"
                           "  cluster: {server: \"https://b:1\"}\n"
                           "users:\n"
                           "- name: ua\n"
                           "  user: {%s}\n"
                           "- name: ub\n"
                           "  user: {token: tb}\n",
                           cluster, user);
}

static struct kube_config *load_text(const char *text, const char *context, GError **error)
{
    g_autofree char *path = write_file("config", text);
    return kube_config_load(path, context, error);
}

static struct kube_config *load_parts(const char *cluster, const char *user, GError **error)
{
    g_autofree char *text = config_text(cluster, user);
    return load_text(text, NULL, error);
}

static struct kube_config *expect_loaded(struct kube_config *config, GError **error)
{
    ck_assert_msg(config, "%s", *error ? (*error)->message : "no error");
    return config;
}

#define SERVER "server: \"https://a:6443\""

/* --- what is accepted ----------------------------------------------------------------------- */

START_TEST(reads_the_current_context)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(kube_config) config =
        expect_loaded(load_parts("server: \"https://a:6443/\"", "token: ta", &error), &error);

    ck_assert_str_eq(config->context, "a");
    ck_assert_str_eq(config->server, "https://a:6443");
    ck_assert_str_eq(config->ns, "default");
    ck_assert_str_eq(config->token, "ta");
    ck_assert(!config->insecure && !config->exec && !config->ca_data && !config->ca_file);
}
END_TEST

START_TEST(reads_the_context_asked_for)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = config_text(SERVER, "token: ta");
    g_autoptr(kube_config) config = expect_loaded(load_text(text, "b", &error), &error);

    ck_assert_str_eq(config->context, "b");
    ck_assert_str_eq(config->server, "https://b:1");
    ck_assert_str_eq(config->ns, "nb");
    ck_assert_str_eq(config->token, "tb");
}
END_TEST

START_TEST(reads_every_field)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(kube_config) config = expect_loaded(
        load_parts("server: \"https://[::1]:6443/prefix/\", certificate-authority: pki/ca.pem, "
                   "tls-server-name: kubernetes, proxy-url: \"http://proxy:3128\"",
                   "username: u, password: p, client-certificate: /pki/c.pem, "
                   "client-key-data: " PEM64,
                   &error),
        &error);
    g_autofree char *ca = g_build_filename(directory, "pki", "ca.pem", NULL);

    ck_assert_str_eq(config->server, "https://[::1]:6443/prefix");
    ck_assert_str_eq(config->ca_file, ca);
    ck_assert_str_eq(config->tls_server_name, "kubernetes");
    ck_assert_str_eq(config->proxy_url, "http://proxy:3128");
    ck_assert_str_eq(config->user, "u");
    ck_assert_str_eq(config->password, "p");
    ck_assert_str_eq(config->cert_file, "/pki/c.pem");
    ck_assert_str_eq(config->key_data, PEM);
}
END_TEST

START_TEST(data_beats_a_file)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(kube_config) config = expect_loaded(
        load_parts(SERVER ", certificate-authority: x.pem, certificate-authority-data: " PEM64, "",
                   &error),
        &error);

    ck_assert_str_eq(config->ca_data, PEM);
    ck_assert_ptr_null(config->ca_file);
}
END_TEST

START_TEST(reads_an_exec_entry)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(kube_config) config = expect_loaded(
        load_parts(SERVER ", extensions: [{name: client.authentication.k8s.io/exec, "
                          "extension: {audience: x}}]",
                   "exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/get-token, "
                   "args: [--cluster, \"a b\"], env: [{name: X, value: y}, {name: E}], "
                   "provideClusterInfo: true, interactiveMode: IfAvailable, "
                   "installHint: get it}",
                   &error),
        &error);
    g_autofree char *command = g_build_filename(directory, "bin", "get-token", NULL);

    ck_assert_str_eq(config->exec->command, command);
    ck_assert_str_eq(config->exec->args[0], "--cluster");
    ck_assert_str_eq(config->exec->args[1], "a b");
    ck_assert_ptr_null(config->exec->args[2]);
    ck_assert_str_eq(config->exec->env[0], "X=y");
    ck_assert_str_eq(config->exec->env[1], "E=");
    ck_assert(config->exec->provide_cluster_info);
    ck_assert_str_eq(config->exec->cluster_extension, "{\"audience\":\"x\"}");
    ck_assert_str_eq(config->exec->install_hint, "get it");
}
END_TEST

START_TEST(a_context_without_a_user_is_anonymous)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(kube_config) config = expect_loaded(
        load_text("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
                  "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:8001\"}}]\n",
                  NULL, &error),
        &error);

    ck_assert(!config->token && !config->user && !config->exec);
}
END_TEST

/* --- several files -------------------------------------------------------------------------- */

START_TEST(the_first_file_with_a_name_wins)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *one =
        write_file("one/config", "contexts: [{name: a, context: {cluster: shared, user: u}}]\n"
                                 "clusters: [{name: shared, cluster: {server: \"https://one\", "
                                 "certificate-authority: ca}}]\n");
    g_autofree char *two =
        write_file("two/config", "current-context: a\n"
                                 "contexts: [{name: a, context: {cluster: other, user: u}}]\n"
                                 "clusters: [{name: shared, cluster: {server: \"https://two\"}}]\n"
                                 "users: [{name: u, user: {tokenFile: token}}]\n");
    g_autofree char *empty = write_file("empty", "");
    g_autofree char *paths = g_strdup_printf("%s:%s/missing::%s:%s", empty, directory, one, two);
    g_autoptr(kube_config) config = expect_loaded(kube_config_load(paths, NULL, &error), &error);
    g_autofree char *ca = g_build_filename(directory, "one", "ca", NULL);
    g_autofree char *token = g_build_filename(directory, "two", "token", NULL);

    /* Each path counts from the file that it stands in. */
    ck_assert_str_eq(config->server, "https://one");
    ck_assert_str_eq(config->ca_file, ca);
    ck_assert_str_eq(config->token_file, token);
}
END_TEST

START_TEST(all_files_missing_is_an_error)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *paths = g_strdup_printf("%s/x:%s/y", directory, directory);

    ck_assert(!kube_config_load(paths, NULL, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO));
    ck_assert_msg(strstr(error->message, "/x\""), "%s", error->message);
    g_clear_error(&error);
    ck_assert(!kube_config_load(":", NULL, &error));
    ck_assert_msg(strstr(error->message, "names no kubeconfig"), "%s", error->message);
}
END_TEST

/* --- what is refused ------------------------------------------------------------------------ */

struct refused {
    const char *cluster;
    const char *user;
    const char *message;
};

static const struct refused refused[] = {
    {"", "", "cluster \"ca\": field 'server': missing"},
    {"server: \"\"", "", "field 'server': must not be empty"},
    {"server: 12", "", "cluster \"ca\": field 'server': expected a string"},
    {"server: \"a:6443\"", "", "\"a:6443\" is not of the form https://HOST:PORT"},
    {"server: \"1.2.3.4:6443\"", "", "is not of the form https://HOST:PORT"},
    {"server: \"ftp://a\"", "", "is not of the form https://HOST:PORT"},
    {"server: \"https://\"", "", "is not of the form https://HOST:PORT"},
    {"server: \"https://u:p@a\"", "", "is not of the form https://HOST:PORT"},
    {"server: \"https://a?b=c\"", "", "is not of the form https://HOST:PORT"},
    {SERVER ", proxy-url: \"not a proxy\"", "", "field 'proxy-url': is not of the form"},
    {SERVER ", proxy-url: \"proxy:3128\"", "", "field 'proxy-url': is not of the form"},
    {SERVER ", insecure-skip-tls-verify: \"yes\"", "", "expected true or false"},
    {SERVER ", insecure-skip-tls-verify: true, certificate-authority: x", "",
     "contradict each other"},
    {SERVER ", certificate-authority-data: \"%%%\"", "",
     "field 'certificate-authority-data': is not base64"},
    {SERVER ", certificate-authority-data: aGVsbG8=", "",
     "field 'certificate-authority-data': holds no PEM block"},
    {SERVER, "client-certificate: x", "one is missing"},
    {SERVER, "client-key-data: " PEM64, "one is missing"},
    {SERVER, "token: 12", "user \"ua\": field 'token': expected a string"},
    {SERVER, "token: t, username: u", "contradict each other"},
    {SERVER, "as: root", "impersonation is not supported"},
    {SERVER, "auth-provider: {name: gcp}", "use 'exec'"},
    {SERVER, "exec: {command: x}", "field 'exec.apiVersion': missing"},
    {SERVER, "exec: {apiVersion: client.authentication.k8s.io/v1}",
     "field 'exec.command': missing"},
    {SERVER, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}",
     "is not supported; use client.authentication.k8s.io/v1"},
    {SERVER,
     "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Always}",
     "needs a terminal"},
    {SERVER, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, args: [1]}",
     "field 'exec.args': expected strings"},
    {SERVER, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1, env: [{value: 1}]}",
     "field 'exec.env': field 'name': missing"},
};

START_TEST(names_the_entry_and_the_field_that_is_wrong)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!load_parts(refused[_i].cluster, refused[_i].user, &error));
    ck_assert_msg(strstr(error->message, refused[_i].message), "%s", error->message);
    ck_assert_msg(strstr(error->message, directory), "%s", error->message);
}
END_TEST

struct broken {
    const char *text;
    const char *context;
    int code;
    const char *message;
};

static const struct broken broken[] = {
    {"a: [", NULL, GPULEDGER_ERROR_INVALID, "/config\": line 2, column 1: invalid YAML"},
    {"- a\n", NULL, GPULEDGER_ERROR_INVALID, "expected a JSON object"},
    {"contexts: {a: b}\n", NULL, GPULEDGER_ERROR_INVALID, "field 'contexts': expected an array"},
    {"contexts: [{name: x}, {name: y}]\n", NULL, GPULEDGER_ERROR_INVALID,
     "no current-context is set; name a context, the file has: x, y"},
    {"contexts: [{name: x}, {name: y}]\n", "z", GPULEDGER_ERROR_NOT_FOUND,
     "context \"z\" is not in the file; it has: x, y"},
    {"", "z", GPULEDGER_ERROR_NOT_FOUND, "context \"z\" is not in the file; it has: none"},
    {"contexts: [{name: x}]\n", "x", GPULEDGER_ERROR_INVALID,
     "context \"x\": field 'context': expected an object"},
    {"contexts: [{name: x, context: {user: u}}]\n", "x", GPULEDGER_ERROR_INVALID,
     "context \"x\": field 'cluster': missing"},
    {"contexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: d}]\n", "x",
     GPULEDGER_ERROR_NOT_FOUND, "cluster \"c\" is not in the file; it has: d"},
    {"contexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c}]\n", "x",
     GPULEDGER_ERROR_INVALID, "cluster \"c\": field 'cluster': expected an object"},
    {"contexts: [{name: x, context: {cluster: c, user: u}}]\n", "x", GPULEDGER_ERROR_NOT_FOUND,
     "user \"u\" is not in the file; it has: none"},
    {"contexts: [1, null, [], {name: 5}]\n", "x", GPULEDGER_ERROR_NOT_FOUND,
     "context \"x\" is not in the file"},
};

START_TEST(says_what_a_file_lacks)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!load_text(broken[_i].text, broken[_i].context, &error));
    ck_assert_msg(strstr(error->message, broken[_i].message), "%s", error->message);
    ck_assert_int_eq(error->code, broken[_i].code);
}
END_TEST

START_TEST(an_error_shows_no_secret)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!load_parts(SERVER, "token: hunter2, password: hunter2, username: u", &error));
    ck_assert_ptr_null(strstr(error->message, "hunter2"));
    g_clear_error(&error);
    ck_assert(!load_parts(SERVER, "client-certificate: c, client-key-data: hunter2", &error));
    ck_assert_ptr_null(strstr(error->message, "hunter2"));
}
END_TEST

/* --- in a pod ------------------------------------------------------------------------------- */

static void set_service(const char *host, const char *port)
{
    g_setenv("KUBERNETES_SERVICE_HOST", host, TRUE);
    g_setenv("KUBERNETES_SERVICE_PORT", port, TRUE);
}

START_TEST(reads_what_a_pod_is_given)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *ca = write_file("ca.crt", PEM);
    g_autofree char *token = write_file("token", "t\n");
    g_autofree char *ns G_GNUC_UNUSED = write_file("namespace", "gpu-system\n");

    set_service("fd00::1", "443");
    g_autoptr(kube_config) config =
        expect_loaded(kube_config_load_in_cluster(directory, &error), &error);
    ck_assert_str_eq(config->server, "https://[fd00::1]:443");
    ck_assert_str_eq(config->ca_file, ca);
    ck_assert_str_eq(config->token_file, token);
    ck_assert_str_eq(config->ns, "gpu-system");
    ck_assert_str_eq(config->source, "in-cluster");

    set_service("10.0.0.1", "6443");
    g_autoptr(kube_config) ipv4 =
        expect_loaded(kube_config_load_in_cluster(directory, &error), &error);
    ck_assert_str_eq(ipv4->server, "https://10.0.0.1:6443");
}
END_TEST

START_TEST(a_pod_without_a_token_is_told_so)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *ca G_GNUC_UNUSED = write_file("ca.crt", PEM);

    set_service("10.0.0.1", "443");
    ck_assert(!kube_config_load_in_cluster(directory, &error));
    ck_assert_msg(strstr(error->message, "automountServiceAccountToken"), "%s", error->message);
    ck_assert_msg(strstr(error->message, "/token"), "%s", error->message);

    g_clear_error(&error);
    g_unsetenv("KUBERNETES_SERVICE_HOST");
    ck_assert(!kube_config_load_in_cluster(directory, &error));
    ck_assert_msg(strstr(error->message, "not in a cluster"), "%s", error->message);
}
END_TEST

START_TEST(picks_the_first_source_that_applies)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = config_text(SERVER, "token: ta");
    g_autofree char *path = write_file("config", text);
    g_autofree char *other = write_file("other", text);

    set_service("10.0.0.1", "443");
    g_setenv("KUBECONFIG", other, TRUE);
    g_autoptr(kube_config) given =
        expect_loaded(kube_config_load_default(path, "", &error), &error);
    ck_assert_str_eq(given->source, path);
    g_autoptr(kube_config) environment =
        expect_loaded(kube_config_load_default("", NULL, &error), &error);
    ck_assert_str_eq(environment->source, other);

    g_unsetenv("KUBECONFIG");
    ck_assert(!kube_config_load_default(NULL, NULL, &error));
    ck_assert_msg(strstr(error->message, "in-cluster"), "%s", error->message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kubeconfig");
    TCase *tcase = tcase_create("files");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, reads_the_current_context);
    tcase_add_test(tcase, reads_the_context_asked_for);
    tcase_add_test(tcase, reads_every_field);
    tcase_add_test(tcase, data_beats_a_file);
    tcase_add_test(tcase, reads_an_exec_entry);
    tcase_add_test(tcase, a_context_without_a_user_is_anonymous);
    tcase_add_test(tcase, the_first_file_with_a_name_wins);
    tcase_add_test(tcase, all_files_missing_is_an_error);
    tcase_add_loop_test(tcase, names_the_entry_and_the_field_that_is_wrong, 0,
                        G_N_ELEMENTS(refused));
    tcase_add_loop_test(tcase, says_what_a_file_lacks, 0, G_N_ELEMENTS(broken));
    tcase_add_test(tcase, an_error_shows_no_secret);
    tcase_add_test(tcase, reads_what_a_pod_is_given);
    tcase_add_test(tcase, a_pod_without_a_token_is_told_so);
    tcase_add_test(tcase, picks_the_first_source_that_applies);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
