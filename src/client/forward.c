/* SPDX-License-Identifier: Apache-2.0 */
#include "client/forward.h"

#include "core/fail.h"
#include "json/json.h"
#include "kube/secret.h"
#include "options/command.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPS_PORT "39998"
#define SAYS "Forwarding from 127.0.0.1:"
#define LINE_MAX_BYTES 512

/* Between fork and exec: kubectl ends with us, however we end. */
static void end_with_parent(void *data)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* `ret_complaints` NULL: they go to standard error. */
static bool start(const char *const *argv, GPid *ret_child, int *ret_out, int *ret_complaints,
                  GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (g_spawn_async_with_pipes(
            NULL, (char **)argv, NULL,
            G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN,
            end_with_parent, NULL, ret_child, NULL, ret_out, ret_complaints, &failure))
        return true;
    return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                     "option '--service': kubectl cannot be run: %s; --server asks without it",
                     failure->message);
}

static bool split(const char *service, char **ret_ns, char **ret_name, GError **error)
{
    const char *slash = strchr(service, '/');

    if (!slash || slash == service || !slash[1] || strchr(slash + 1, '/'))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "option '--service': '%s' is not NAMESPACE/NAME", service);
    *ret_ns = g_strndup(service, (gsize)(slash - service));
    *ret_name = g_strdup(slash + 1);
    return true;
}

/* --- the Secret ----------------------------------------------------------------------------- */

struct secret_object {
    struct string_pairs data;
};
static const struct json_field secret_fields[] = {
    JSON_FIELD_PAIRS(struct secret_object, data, "data", 0),
    JSON_FIELD_END,
};

static char *decode(const char *base64)
{
    gsize length;
    g_autofree guchar *bytes = base64 ? g_base64_decode(base64, &length) : NULL;

    return bytes ? g_strndup((const char *)bytes, length) : NULL;
}

static bool read_secret(struct forward *forward, const GString *text, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *document = json_parse(arena, text->str, text->len, error);
    struct secret_object secret = {0};

    if (!document || !json_decode(arena, document, secret_fields, &secret, error))
        return false;
    forward->token = decode(string_pairs_get(&secret.data, "token"));
    forward->ca = decode(string_pairs_get(&secret.data, "ca.crt"));
    return true;
}

/* All that the child prints; it has ended then. */
static bool run(const char *const *argv, GString *ret_text, GError **error)
{
    GPid child;
    int out, status;
    char bytes[4096];
    ssize_t n;

    if (!start(argv, &child, &out, NULL, error))
        return false;
    while ((n = read(out, bytes, sizeof bytes)) > 0)
        g_string_append_len(ret_text, bytes, n);
    explicit_bzero(bytes, sizeof bytes);
    close(out);
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Who may not read it goes on without; the extender says then that it wants a token. */
static bool ask_for_secret(struct forward *forward, const char *ns, const char *name,
                           GError **error)
{
    const char *const argv[] = {"kubectl", "get", "secret", "-n", ns, name, "-o", "json", NULL};
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;

    if (!run(argv, text, &failure)) {
        if (failure) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        say("the Secret %s/%s was not read; --token-file and --ca-file name files with the token "
            "and the CA",
            ns, name);
        return true;
    }
    const bool ok = read_secret(forward, text, &failure);
    explicit_bzero(text->str, text->len);
    return ok || fail_with(error, GPULEDGER_ERROR_INVALID, "the Secret %s/%s is not understood: %s",
                           ns, name, failure->message);
}

/* --- the port ------------------------------------------------------------------------------- */

/* kubectl prints one line for each address once it listens. */
static bool read_port(int out, long *ret_port)
{
    char line[LINE_MAX_BYTES];
    size_t length = 0;

    while (length < sizeof line - 1 && read(out, &line[length], 1) == 1) {
        if (line[length] != '\n') {
            length++;
            continue;
        }
        line[length] = '\0';
        if (g_str_has_prefix(line, SAYS)) {
            *ret_port = strtol(line + strlen(SAYS), NULL, 10);
            return true;
        }
        length = 0;
    }
    return false;
}

/* What kubectl had to say, which has ended. */
static void pass_on(int complaints)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char bytes[4096];
    ssize_t n;

    while ((n = read(complaints, bytes, sizeof bytes)) > 0)
        g_string_append_len(text, bytes, n);
    g_auto(GStrv) lines = g_strsplit(g_strchomp(text->str), "\n", -1);
    for (char **line = lines; *line; line++)
        say("%s", *line);
}

static bool open_port(struct forward *forward, const char *ns, const char *name, GError **error)
{
    g_autofree char *what = g_strconcat("service/", name, NULL);
    const char *const argv[] = {"kubectl",    "port-forward",        "-n", ns, what,
                                ":" OPS_PORT, "--address=127.0.0.1", NULL};
    long port = 0;

    if (!start(argv, &forward->kubectl, &forward->out, &forward->complaints, error))
        return false;
    if (!read_port(forward->out, &port)) {
        pass_on(forward->complaints);
        return fail_with(error, GPULEDGER_ERROR_UNAVAILABLE,
                         "option '--service': 'kubectl port-forward -n %s service/%s' ended; is "
                         "gpuledger installed there?",
                         ns, name);
    }
    forward->url = g_strdup_printf("%s://localhost:%ld", forward->ca ? "https" : "http", port);
    return true;
}

bool forward_open(struct forward *forward, const char *service, bool secret, GError **error)
{
    g_autofree char *ns = NULL, *name = NULL;

    *forward = (struct forward){0};
    if (split(service, &ns, &name, error) &&
        (!secret || ask_for_secret(forward, ns, name, error)) &&
        open_port(forward, ns, name, error))
        return true;
    forward_close(forward);
    return false;
}

static void drain(int pipe)
{
    struct pollfd text = {.fd = pipe, .events = POLLIN};
    char bytes[4096];

    while (poll(&text, 1, 0) == 1 && read(pipe, bytes, sizeof bytes) > 0)
        ;
}

void forward_drain(struct forward *forward)
{
    drain(forward->out);
    drain(forward->complaints);
}

void forward_close(struct forward *forward)
{
    if (forward->kubectl > 0) {
        close(forward->out);
        close(forward->complaints);
        kill(forward->kubectl, SIGTERM);
        waitpid(forward->kubectl, NULL, 0);
        g_spawn_close_pid(forward->kubectl);
    }
    g_free(forward->url);
    g_free(forward->ca);
    secret_free(forward->token);
    *forward = (struct forward){0};
}
