/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program is not trusted to end, to be brief, or to keep its children in check: it gets a
 * process group, a deadline and a maximum, and is killed as a group. Of its output only what is
 * asked for is used, and none of it is quoted in an error, since it may be a secret.
 */
#include "kube/exec_credential.h"

#include "core/fail.h"
#include "kube/clock.h"
#include "kube/secret.h"
#include "base/small_file.h"
#include "json/json.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CA_SIZE_MAX ((size_t)4 << 20)
#define COMPLAINT_MAX 256
#define EXIT_POLL_US 2000 /* between looks at a program that has closed its output */

struct child {
    GPid pid;
    int out;
    int err;
    int64_t deadline_ms;
    GString *output;
    GString *complaint; /* the first line of what it wrote to standard error */
};

void exec_credential_clear(struct exec_credential *credential)
{
    g_clear_pointer(&credential->token, secret_free);
    g_clear_pointer(&credential->cert_pem, g_free);
    g_clear_pointer(&credential->key_pem, secret_free);
    credential->expires_us = 0;
}

/* --- what the program is told --------------------------------------------------------------- */

static bool encode_cluster(struct json_writer *writer, const struct kube_config *config,
                           GError **error)
{
    g_autofree char *ca = config->ca_data ? g_strdup(config->ca_data) : NULL;

    if (config->ca_file) {
        ca = small_file_read(config->ca_file, CA_SIZE_MAX, NULL, error);
        if (!ca)
            return false;
    }
    json_key_object(writer, "cluster");
    json_key_string(writer, "server", config->server);
    if (config->tls_server_name)
        json_key_string(writer, "tls-server-name", config->tls_server_name);
    if (config->insecure)
        json_key_bool(writer, "insecure-skip-tls-verify", true);
    if (ca) {
        g_autofree char *encoded = g_base64_encode((const guchar *)ca, strlen(ca));
        json_key_string(writer, "certificate-authority-data", encoded);
    }
    if (config->proxy_url)
        json_key_string(writer, "proxy-url", config->proxy_url);
    if (config->exec->cluster_extension) {
        g_autoptr(json_arena) arena = json_arena_new();
        const cJSON *extension = json_parse(arena, config->exec->cluster_extension,
                                            strlen(config->exec->cluster_extension), error);
        if (!extension)
            return false;
        json_key(writer, "config");
        json_value(writer, extension);
    }
    json_end_object(writer);
    return true;
}

static char *exec_info(const struct kube_config *config, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "kind", "ExecCredential");
    json_key_string(&writer, "apiVersion", config->exec->api_version);
    json_key_object(&writer, "spec");
    if (config->exec->provide_cluster_info && !encode_cluster(&writer, config, error))
        return NULL;
    json_key_bool(&writer, "interactive", false);
    json_end_object(&writer);
    json_end_object(&writer);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Our environment, the entry's variables over it, and what the program is told. */
static char **child_environment(const struct kube_config *config, GError **error)
{
    g_autofree char *info = exec_info(config, error);
    if (!info)
        return NULL;

    char **environment = g_get_environ();
    for (char **variable = config->exec->env; *variable; variable++) {
        const char *equals = strchr(*variable, '=');
        g_autofree char *name = g_strndup(*variable, (gsize)(equals - *variable));

        environment = g_environ_setenv(environment, name, equals + 1, TRUE);
    }
    return g_environ_setenv(environment, "KUBERNETES_EXEC_INFO", info, TRUE);
}

/* --- running it ----------------------------------------------------------------------------- */

/* Between fork and exec: a group of its own, so that all of it can be killed, and the signals
 * that our threads may have blocked. */
static void child_setup(void *data)
{
    sigset_t none;

    setpgid(0, 0);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool child_start(struct child *child, const struct kube_config *config, GError **error)
{
    g_auto(GStrv) environment = child_environment(config, error);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) failure = NULL;

    if (!environment)
        return false;
    g_ptr_array_add(argv, config->exec->command);
    for (char **argument = config->exec->args; *argument; argument++)
        g_ptr_array_add(argv, *argument);
    g_ptr_array_add(argv, NULL);
    if (g_spawn_async_with_pipes(NULL, (char **)argv->pdata, environment,
                                 G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH, child_setup, NULL,
                                 &child->pid, NULL, &child->out, &child->err, &failure))
        return true;
    return fail_with(error, GPULEDGER_ERROR_DENIED, "cannot be run: %s%s%s", failure->message,
                     config->exec->install_hint ? "; " : "",
                     config->exec->install_hint ? config->exec->install_hint : "");
}

/* One line, printable, short. */
static void complain(struct child *child, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n && child->complaint->len < COMPLAINT_MAX; i++) {
        if (bytes[i] == '\n' && child->complaint->len > 0)
            g_string_append(child->complaint, "; ");
        else if ((unsigned char)bytes[i] >= ' ')
            g_string_append_c(child->complaint, bytes[i]);
    }
}

/* Reads what is there; false at the end of that stream. */
static bool child_read(struct child *child, int fd)
{
    char piece[4096];
    const ssize_t n = read(fd, piece, sizeof(piece));

    if (n < 0)
        return errno == EINTR || errno == EAGAIN;
    if (fd == child->out)
        g_string_append_len(child->output, piece, n);
    else
        complain(child, piece, (size_t)n);
    explicit_bzero(piece, sizeof(piece));
    return n > 0;
}

/* Until both streams end, the time is over or the output is too long. */
static void child_listen(struct child *child)
{
    struct pollfd fds[] = {{child->out, POLLIN, 0}, {child->err, POLLIN, 0}};

    while ((fds[0].fd >= 0 || fds[1].fd >= 0) && child->output->len <= EXEC_OUTPUT_MAX) {
        const int64_t left_ms = child->deadline_ms - clock_ms();

        if (left_ms <= 0 || (poll(fds, 2, (int)left_ms) < 0 && errno != EINTR))
            return;
        for (size_t i = 0; i < 2; i++) {
            if (fds[i].fd >= 0 && fds[i].revents && !child_read(child, fds[i].fd))
                fds[i].fd = -1;
        }
    }
}

static bool child_finish(struct child *child, GError **error)
{
    int status = 0;
    pid_t ended = 0;

    while (child->output->len <= EXEC_OUTPUT_MAX &&
           (ended = waitpid(child->pid, &status, WNOHANG)) == 0 && clock_ms() < child->deadline_ms)
        g_usleep(EXIT_POLL_US);
    if (ended == 0) {
        kill(-child->pid, SIGKILL);
        waitpid(child->pid, &status, 0);
    }
    if (child->output->len > EXEC_OUTPUT_MAX) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT, "wrote more than %zu bytes",
                    EXEC_OUTPUT_MAX);
    } else if (ended == 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED,
                    "did not end in time and was killed");
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED, "failed with %s %d: %s",
                    WIFEXITED(status) ? "exit status" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                    child->complaint->len ? child->complaint->str : "it said nothing");
    } else {
        return true;
    }
    return false;
}

/* --- what it says --------------------------------------------------------------------------- */

struct answer {
    const char *api_version;
    const char *token;
    const char *cert_pem;
    const char *key_pem;
    const char *expires;
};

#define ANSWER(member, path, flags) JSON_FIELD_STRING(struct answer, member, path, flags)
static const struct json_field answer_fields[] = {
    ANSWER(api_version, "apiVersion", JSON_REQUIRED),    ANSWER(token, "status.token", 0),
    ANSWER(cert_pem, "status.clientCertificateData", 0), ANSWER(key_pem, "status.clientKeyData", 0),
    ANSWER(expires, "status.expirationTimestamp", 0),    JSON_FIELD_END,
};

bool exec_credential_decode(const char *api_version, const char *text, size_t length,
                            struct exec_credential *ret_credential, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GDateTime) expires = NULL;
    struct answer answer = {0};

    const cJSON *object = json_parse(arena, text, length, NULL);
    if (!object) {
        /* The parser's own words would quote the text, which may be a secret. */
        return fail_with(error, GPULEDGER_ERROR_DENIED, "did not write valid JSON");
    }
    if (!json_decode(arena, object, answer_fields, &answer, error))
        return false;
    if (!g_str_equal(answer.api_version, api_version))
        return fail_with(error, GPULEDGER_ERROR_DENIED,
                         "answered with apiVersion \"%s\" where \"%s\" was asked for",
                         answer.api_version, api_version);
    const bool has_token = answer.token && *answer.token;
    const bool has_cert = answer.cert_pem && *answer.cert_pem;
    const bool has_key = answer.key_pem && *answer.key_pem;
    if ((!has_token && !has_cert) || has_cert != has_key)
        return fail_with(
            error, GPULEDGER_ERROR_DENIED,
            "gave neither 'status.token' nor both of 'status.clientCertificateData' and "
            "'status.clientKeyData'");
    if (answer.expires && *answer.expires) {
        expires = g_date_time_new_from_iso8601(answer.expires, NULL);
        if (!expires)
            return fail_with(error, GPULEDGER_ERROR_DENIED,
                             "field 'status.expirationTimestamp': \"%s\" is not a time",
                             answer.expires);
    }
    ret_credential->token = has_token ? g_strdup(answer.token) : NULL;
    ret_credential->cert_pem = has_cert ? g_strdup(answer.cert_pem) : NULL;
    ret_credential->key_pem = has_key ? g_strdup(answer.key_pem) : NULL;
    ret_credential->expires_us = expires ? g_date_time_to_unix(expires) * G_USEC_PER_SEC : 0;
    return true;
}

bool exec_credential_run(const struct kube_config *config, int64_t timeout_ms,
                         struct exec_credential *ret_credential, GError **error)
{
    struct child child = {
        .deadline_ms = clock_ms() + timeout_ms,
        .output = g_string_new(NULL),
        .complaint = g_string_new(NULL),
    };
    bool ok = child_start(&child, config, error);

    if (ok) {
        child_listen(&child);
        close(child.out);
        close(child.err);
        ok = child_finish(&child, error) &&
             exec_credential_decode(config->exec->api_version, child.output->str,
                                    child.output->len, ret_credential, error);
        g_spawn_close_pid(child.pid);
    }
    if (!ok)
        g_prefix_error(error, "credential command \"%s\" ", config->exec->command);
    explicit_bzero(child.output->str, child.output->len);
    g_string_free(child.output, TRUE);
    g_string_free(child.complaint, TRUE);
    return ok;
}
