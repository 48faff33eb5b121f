/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "options/config.h"
#include "options/options.h"
#include "suite.h"
#include "options/general_section.h"
#include "options/client_section.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <string.h>
#include <unistd.h>

/* Up to this many of each is enough for any case here. */
#define N 6

struct sources {
    const char *arguments[N];
    const char *environment[N];
    const char *file; /* the text of the configuration file; NULL: none */
};

static char *directory;

static void make_directory(void)
{
    directory = g_dir_make_tmp("gpuledger-test-XXXXXX", NULL);
    ck_assert_ptr_nonnull(directory);
}

static char *file_path(void)
{
    return g_build_filename(directory, "config.yaml", NULL);
}

static void remove_directory(void)
{
    g_autofree char *path = file_path();
    g_remove(path);
    g_rmdir(directory);
    g_clear_pointer(&directory, g_free);
}

static struct config *load_for(unsigned command, const struct sources *sources, GError **error)
{
    const char *arguments[N + 3] = {0};
    g_autofree char *path = file_path();
    size_t n = 0;
    if (sources->file) {
        ck_assert(g_file_set_contents(path, sources->file, -1, NULL));
        arguments[n++] = "--config";
        arguments[n++] = path;
    }
    for (size_t i = 0; i < N && sources->arguments[i]; i++)
        arguments[n++] = sources->arguments[i];
    const char *environment[N + 1] = {0};
    memcpy(environment, sources->environment, sizeof(sources->environment));
    const struct config_inputs inputs = {command, arguments, environment};
    return config_load(&inputs, error);
}

static struct config *load(const struct sources *sources)
{
    g_autoptr(GError) error = NULL;
    struct config *config = load_for(COMMAND_SERVE, sources, &error);
    ck_assert_msg(config != NULL, "%s", error ? error->message : "");
    return config;
}

/* --- precedence --------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    struct sources sources;
    const char *option;
    const char *value;
    enum source source;
    const char *variable;
} precedence[] = {
    {"default", {.file = NULL}, "bind-timeout", "25s", SOURCE_DEFAULT, NULL},
    {"file", {.file = "bind-timeout: 20s\n"}, "bind-timeout", "20s", SOURCE_FILE, NULL},
    {"environment over file",
     {.file = "bind-timeout: 20s\n", .environment = {"GPULEDGER_BIND_TIMEOUT=21s"}},
     "bind-timeout",
     "21s",
     SOURCE_ENVIRONMENT,
     "GPULEDGER_BIND_TIMEOUT"},
    {"flag over environment",
     {.file = "bind-timeout: 20s\n",
      .environment = {"GPULEDGER_BIND_TIMEOUT=21s"},
      .arguments = {"--bind-timeout", "22s"}},
     "bind-timeout",
     "22s",
     SOURCE_FLAG,
     NULL},
    {"the last flag wins",
     {.arguments = {"--bind-timeout=22s", "--bind-timeout=23s"}},
     "bind-timeout",
     "23s",
     SOURCE_FLAG,
     NULL},
    {"a flag equal to the default is a flag",
     {.file = "bind-timeout: 20s\n", .arguments = {"--bind-timeout=25s"}},
     "bind-timeout",
     "25s",
     SOURCE_FLAG,
     NULL},
    {"an empty variable is none",
     {.file = "bind-timeout: 20s\n", .environment = {"GPULEDGER_BIND_TIMEOUT="}},
     "bind-timeout",
     "20s",
     SOURCE_FILE,
     NULL},
    {"an empty key is none",
     {.file = "bind-timeout:\nlog-level: warn\n"},
     "bind-timeout",
     "25s",
     SOURCE_DEFAULT,
     NULL},
    {"an empty file says nothing", {.file = ""}, "bind-timeout", "25s", SOURCE_DEFAULT, NULL},
    {"without a word it is this machine's",
     {.file = ""},
     "listen",
     "127.0.0.1:39999",
     SOURCE_DEFAULT,
     NULL},
    {"for people as well", {.file = ""}, "ops-listen", "127.0.0.1:39998", SOURCE_DEFAULT, NULL},
    {"PORT is of all addresses",
     {.environment = {"PORT=12345"}},
     "listen",
     "0.0.0.0:12345",
     SOURCE_ENVIRONMENT,
     "PORT"},
    {"PORT keeps the file's address",
     {.file = "listen: 127.0.0.1:1\n", .environment = {"PORT=12345"}},
     "listen",
     "127.0.0.1:12345",
     SOURCE_ENVIRONMENT,
     "PORT"},
    {"also where it is the default",
     {.file = "listen: 127.0.0.1:39999\n", .environment = {"PORT=12345"}},
     "listen",
     "127.0.0.1:12345",
     SOURCE_ENVIRONMENT,
     "PORT"},
    {"PORT leaves the other listener alone",
     {.environment = {"PORT=12345"}},
     "ops-listen",
     "127.0.0.1:39998",
     SOURCE_DEFAULT,
     NULL},
    {"the own variable wins over PORT",
     {.environment = {"PORT=12345", "GPULEDGER_LISTEN=127.0.0.1:2"}},
     "listen",
     "127.0.0.1:2",
     SOURCE_ENVIRONMENT,
     "GPULEDGER_LISTEN"},
    {"a flag wins over PORT",
     {.environment = {"PORT=12345"}, .arguments = {"--listen=127.0.0.1:3"}},
     "listen",
     "127.0.0.1:3",
     SOURCE_FLAG,
     NULL},
    {"LOG_LEVEL by name",
     {.environment = {"LOG_LEVEL=debug"}},
     "log-level",
     "debug",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"LOG_LEVEL 101",
     {.environment = {"LOG_LEVEL=101"}},
     "log-level",
     "debug",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"LOG_LEVEL 50",
     {.environment = {"LOG_LEVEL=50"}},
     "log-level",
     "info",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"LOG_LEVEL 100",
     {.environment = {"LOG_LEVEL=100"}},
     "log-level",
     "info",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"LOG_LEVEL 10",
     {.environment = {"LOG_LEVEL=10"}},
     "log-level",
     "warn",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"LOG_LEVEL 5",
     {.environment = {"LOG_LEVEL=5"}},
     "log-level",
     "error",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"LOG_LEVEL 0",
     {.environment = {"LOG_LEVEL=0"}},
     "log-level",
     "error",
     SOURCE_ENVIRONMENT,
     "LOG_LEVEL"},
    {"KUBECONFIG",
     {.environment = {"KUBECONFIG=/a/b"}},
     "kubeconfig",
     "/a/b",
     SOURCE_ENVIRONMENT,
     "KUBECONFIG"},
    {"a snapshot beats KUBECONFIG",
     {.environment = {"KUBECONFIG=/a/b"}, .arguments = {"--snapshot=x"}},
     "kubeconfig",
     "",
     SOURCE_DEFAULT,
     NULL},
    {"a flag without a value is true",
     {.arguments = {"--gpushare-any-on-single-card"}},
     "gpushare-any-on-single-card",
     "true",
     SOURCE_FLAG,
     NULL},
    {"a flag can take back what the file says",
     {.file = "gpushare-any-on-single-card: true\n",
      .arguments = {"--gpushare-any-on-single-card=false"}},
     "gpushare-any-on-single-card",
     "false",
     SOURCE_FLAG,
     NULL},
    {"numbers in the file",
     {.file = "max-connections: 17\n"},
     "max-connections",
     "17",
     SOURCE_FILE,
     NULL},
    {"text that is YAML for something else stays text",
     {.file = "context: 'true'\n"},
     "context",
     "true",
     SOURCE_FILE,
     NULL},
    {"a value may look like an option",
     {.arguments = {"--context", "--listen"}},
     "context",
     "--listen",
     SOURCE_FLAG,
     NULL},
    {"a value may be empty",
     {.environment = {"GPULEDGER_CONTEXT=x"}, .arguments = {"--context="}},
     "context",
     "",
     SOURCE_FLAG,
     NULL},
    {"a value may hold '='", {.arguments = {"--context=a=b"}}, "context", "a=b", SOURCE_FLAG, NULL},
};

START_TEST(precedence_of_sources)
{
    struct config *config = load(&precedence[_i].sources);
    const struct option *option = option_find(precedence[_i].option, COMMAND_SERVE);
    const struct origin *origin = &config->origins[option_position(option)];
    g_autofree char *text = option_format(option, config);
    ck_assert_msg(strcmp(text, precedence[_i].value) == 0, "%s: %s", precedence[_i].name, text);
    ck_assert_msg(origin->source == precedence[_i].source, "%s: source %d", precedence[_i].name,
                  origin->source);
    ck_assert_pstr_eq(origin->name, precedence[_i].variable);
    config_free(config);
}
END_TEST

/* --- what is refused, and how it is said ---------------------------------------------------------
 */

static const struct {
    struct sources sources;
    const char *message; /* %s: the file */
} refusals[] = {
    {{.arguments = {"--bind-timout=3s"}},
     "unknown option '--bind-timout', did you mean '--bind-timeout'? See --help-all"},
    {{.arguments = {"--xyzzy"}}, "unknown option '--xyzzy'; --help-all lists all"},
    {{.arguments = {"--server=x"}}, "unknown option '--server'; --help-all lists all"},
    {{.arguments = {"-z"}}, "unknown option '-z'; --help-all lists all"},
    {{.arguments = {"--tencent-predicates-only"}},
     "option '--tencent-predicates-only' is gone: name a bindVerb in kube-scheduler's "
     "configuration: filter books nothing any more"},
    {{.environment = {"GPULEDGER_TENCENT_PREDICATES_ONLY=true"}},
     "environment variable 'GPULEDGER_TENCENT_PREDICATES_ONLY' is gone: name a bindVerb in "
     "kube-scheduler's configuration: filter books nothing any more"},
    {{.file = "tencent-predicates-only: true\n"},
     "file '%s': key 'tencent-predicates-only' is gone: name a bindVerb in kube-scheduler's "
     "configuration: filter books nothing any more"},
    {{.arguments = {"--snapshot="}},
     "option '--snapshot': the name is empty; give one, or leave the option out"},
    {{.arguments = {"--snapshot=a.json", "--tls-cert="}},
     "option '--tls-cert': the name is empty; give one, or leave the option out"},
    {{.arguments = {"--bind-timeout"}},
     "option '--bind-timeout' needs a value: a duration such as 500ms, 30s or 1m30s, from 1s to "
     "10m"},
    {{.arguments = {"--bind-timeout", "soon"}},
     "option '--bind-timeout': 'soon' is not valid, expected a duration such as 500ms, 30s or "
     "1m30s, from 1s to 10m"},
    {{.arguments = {"--bind-timeout", "11m"}},
     "option '--bind-timeout': '11m' is not valid, expected a duration such as 500ms, 30s or "
     "1m30s, from 1s to 10m"},
    {{.arguments = {"--policy=fastest"}},
     "option '--policy': 'fastest' is not valid, expected binpack, spread, first-fit, "
     "strongest, oc or fgd"},
    {{.arguments = {"--listen=39999"}},
     "option '--listen': '39999' is not valid, expected ADDRESS:PORT with a port from 0 to 65535, "
     "such as 0.0.0.0:39999 or [::1]:39999"},
    {{.arguments = {"--gpushare-any-on-single-card=maybe"}},
     "option '--gpushare-any-on-single-card': 'maybe' is not valid, expected true or false"},
    {{.environment = {"GPULEDGER_MAX_CONNECTIONS=many"}},
     "environment variable 'GPULEDGER_MAX_CONNECTIONS': 'many' is not valid, expected a whole "
     "number from 1 to 65536"},
    {{.environment = {"PORT=http"}},
     "environment variable 'PORT': 'http' is not valid, expected a port from 0 to 65535"},
    {{.environment = {"LOG_LEVEL=loud"}},
     "environment variable 'LOG_LEVEL': neither a number (debug is 101, info 50, warn 10, error "
     "5) nor a name: 'loud' is not valid, expected error, warn, info or debug"},
    {{.file = "bind-timout: 3s\n"},
     "file '%s': unknown key 'bind-timout', did you mean 'bind-timeout'?"},
    {{.file = "xyzzy: 3s\n"}, "file '%s': unknown key 'xyzzy'; keys are the long names of options"},
    {{.file = "config: x\n"},
     "file '%s': key 'config' has no meaning in a file; give '--config' on the command line"},
    {{.file = "help: true\n"},
     "file '%s': key 'help' has no meaning in a file; give '--help' on the command line"},
    {{.file = "max-body: 1\n"},
     "file '%s': key 'max-body': '1' is not valid, expected a size such as 512KiB or 64MiB, from "
     "64KiB to 1GiB"},
    {{.file = "listen: [a, b]\n"},
     "file '%s': key 'listen': a list or mapping is not valid, expected ADDRESS:PORT with a port "
     "from 0 to 65535, such as 0.0.0.0:39999 or [::1]:39999"},
    {{.file = "- listen\n"}, "file '%s': expected keys with values, such as 'log-level: debug'"},
    {{.file = "log-level: warn\nlog-level: info\n"},
     "file '%s': line 2, column 1: the key \"log-level\" comes twice"},
    {{.arguments = {"--config=/nonexistent/x.yaml"}},
     "option '--config': cannot read \"/nonexistent/x.yaml\": No such file or directory"},
    {{.arguments = {"--snapshot=a", "--kubeconfig=b"}},
     "'snapshot' and 'kubeconfig' are both set; a cluster comes from one of them, leave out the "
     "other"},
    {{.arguments = {"--snapshot-out=a"}},
     "'snapshot-out' is set without 'snapshot'; with an API server there is no snapshot to write, "
     "leave it out"},
    {{.arguments = {"--listen=[::]:7", "--ops-listen=[::]:7"}},
     "'listen' and 'ops-listen' are both [::]:7; give one of them another port"},
    {{.arguments = {"--tls-cert=a"}},
     "'tls-cert' is set without 'tls-key'; TLS needs both a certificate and its key"},
    {{.arguments = {"--tls-key=a"}},
     "'tls-key' is set without 'tls-cert'; TLS needs both a certificate and its key"},
    {{.arguments = {"--tls-cert=a", "--tls-key=a", "--tls-client-names=a"}},
     "'tls-client-names' is set without 'tls-client-ca'; a name proves nothing unless somebody has "
     "signed it"},
    {{.arguments = {"--ops-tls"}},
     "'ops-tls' is set without 'tls-cert' and 'tls-key'; TLS needs both"},
    {{.arguments = {"--ops-tls", "--tls-cert=a", "--tls-key=a", "--ops-listen=off"}},
     "'ops-tls' is set, but 'ops-listen' is off; leave one of them out"},
    {{.arguments = {"--tls-client-ca=a"}},
     "'tls-client-ca' is set without 'tls-cert' and 'tls-key'; clients show certificates only over "
     "TLS"},
    {{.arguments = {"--ops-token-file=a", "--ops-listen=off"}},
     "'ops-token-file' is set, but 'ops-listen' is off; leave one of them out"},
};

START_TEST(refusal)
{
    g_autoptr(GError) error = NULL;
    struct config *config = load_for(COMMAND_SERVE, &refusals[_i].sources, &error);
    ck_assert_msg(!config, "accepted, instead of: %s", refusals[_i].message);
    g_auto(GStrv) parts = g_strsplit(refusals[_i].message, "%s", -1);
    g_autofree char *path = file_path();
    g_autofree char *message = g_strjoinv(path, parts);
    ck_assert_str_eq(error->message, message);
    ck_assert(error->domain == GPULEDGER_ERROR);
}
END_TEST

START_TEST(help_needs_nothing_else_to_be_right)
{
    struct config *config = load(&(struct sources){
        .arguments = {"--help", "--bind-timeout=soon", "--config=/nonexistent"},
        .environment = {"PORT=http"},
    });
    ck_assert(config_section(config, general)->help);
    config_free(config);
}
END_TEST

START_TEST(words_are_kept_in_order)
{
    g_autoptr(GError) error = NULL;
    struct config *config =
        load_for(COMMAND_NODES,
                 &(struct sources){.arguments = {"a", "-ojson", "-", "--", "-b", "--c"}}, &error);
    ck_assert_ptr_nonnull(config);
    ck_assert_int_eq(config_section(config, client)->output, OUTPUT_JSON);
    ck_assert_uint_eq(config->words->len, 4);
    ck_assert_str_eq(config->words->pdata[0], "a");
    ck_assert_str_eq(config->words->pdata[1], "-");
    ck_assert_str_eq(config->words->pdata[2], "-b");
    ck_assert_str_eq(config->words->pdata[3], "--c");
    config_free(config);
}
END_TEST

START_TEST(short_options_take_values_three_ways)
{
    static const char *const spellings[][3] = {{"-ojson"}, {"-o=json"}, {"-o", "json"}};
    for (size_t i = 0; i < G_N_ELEMENTS(spellings); i++) {
        struct sources sources = {0};
        memcpy(sources.arguments, spellings[i], sizeof(spellings[i]));
        g_autoptr(GError) error = NULL;
        struct config *config = load_for(COMMAND_NODES, &sources, &error);
        ck_assert_msg(config != NULL, "%s", error ? error->message : "");
        ck_assert_int_eq(config_section(config, client)->output, OUTPUT_JSON);
        config_free(config);
    }
}
END_TEST

START_TEST(a_client_ignores_the_servers_environment)
{
    g_autoptr(GError) error = NULL;
    struct config *config =
        load_for(COMMAND_NODES,
                 &(struct sources){.environment = {"GPULEDGER_LISTEN=nonsense", "PORT=nonsense",
                                                   "GPULEDGER_SERVER=http://x"}},
                 &error);
    ck_assert_msg(config != NULL, "%s", error ? error->message : "");
    ck_assert_str_eq(config_section(config, client)->server, "http://x");
    config_free(config);
}
END_TEST

START_TEST(what_is_ignored_is_said)
{
    struct config *config = load(&(struct sources){
        .environment = {"THREADNESS=4", "GPULEDGER_BIND_TIMOUT=3s", "GPULEDGER_XYZZY=1",
                        "GPULEDGER_SERVICE_HOST=10.0.0.1", "GPULEDGER_PORT=tcp://10.0.0.1:39999",
                        "GPULEDGER_PORT_39999_TCP_ADDR=10.0.0.1"}});
    ck_assert_uint_eq(config->warnings->len, 3);
    ck_assert_str_eq(config->warnings->pdata[0],
                     "environment variable 'GPULEDGER_BIND_TIMOUT' is not known, did you mean "
                     "'GPULEDGER_BIND_TIMEOUT'?");
    ck_assert_str_eq(config->warnings->pdata[1],
                     "environment variable 'GPULEDGER_XYZZY' is not known");
    ck_assert_str_eq(config->warnings->pdata[2],
                     "environment variable 'THREADNESS' has no effect: every connection has its "
                     "own thread, see --max-connections");
    config_free(config);
}
END_TEST

START_TEST(what_does_nothing_alone_is_said)
{
    static const char *const wanted[] = {
        "'gang-strict' has no effect without 'gangs': set that, too",
        "'gang-keep-room' has no effect without 'gangs': set that, too",
        "'quota-pool-label' has no effect without 'quota-model-label': set that, too",
        "'calendar' has no effect with 'snapshot': it needs an API server",
        "'gang-strict' has no effect with 'snapshot': it needs an API server",
        "'plans' has no effect with 'snapshot': it needs an API server",
    };
    struct config *config = load(&(struct sources){
        .file = "gang-strict: true\ngang-keep-room: 5s\nquota-pool-label: pool\nreclaim: false\n"
                "snapshot: x.yaml\ncalendar: y.yaml\nplans: true\n"});

    ck_assert_uint_eq(config->warnings->len, G_N_ELEMENTS(wanted));
    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++)
        ck_assert_msg(
            g_ptr_array_find_with_equal_func(config->warnings, wanted[i], g_str_equal, NULL), "%s",
            wanted[i]);
    config_free(config);
    config = load(&(struct sources){
        .file = "gangs: true\ngang-strict: true\ncalendar: y.yaml\nelastic-quotas: true\n"
                "reclaim: true\n"});
    ck_assert_uint_eq(config->warnings->len, 0);
    config_free(config);
}
END_TEST

/* --- every option, through every source
 * ----------------------------------------------------------- */

/* A value that is not the default and that no check refuses. */
static char *other_value(const struct option *option)
{
    struct choice choice;
    if (strcmp(option->name, "usage") == 0)
        return g_strdup("https://prometheus.example:9090/x");
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_PATH:
        return g_strdup("it's \"a: #b\" \\ é \x01\x7f \xc2\x80\xc2\x85\xc2\x9f \xef\xbf\xbf");
    case OPTION_LIST:
        return g_strdup(option->list->example);
    case OPTION_NAMESPACE:
        return g_strdup("gpu-system");
    case OPTION_CLASSES:
        return g_strdup("{\"batch\":{\"priority-classes\":[\"batch\"],\"namespaces\":[],"
                        "\"shares-with\":[\"batch\",\"unclassed\"],\"victims\":\"normal\","
                        "\"replicas\":\"any\",\"group\":\"optional\",\"oversubscribe\":false,"
                        "\"isolation\":\"none\",\"policy\":\"spread\"}}");
    case OPTION_INT:
        return g_strdup_printf("%" G_GINT64_FORMAT, option->max);
    case OPTION_BOOL:
        return g_strdup("true");
    case OPTION_DURATION:
        return g_strdup("7s7ms");
    case OPTION_SIZE:
        return g_strdup("65MiB");
    case OPTION_CHOICE:
        for (size_t i = 0; option->choice(i, &choice); i++) {
            if (strcmp(choice.name, option->fallback) != 0)
                return g_strdup(choice.name);
        }
        break;
    case OPTION_ADDRESS:
        return g_strdup("[::1]:17");
    }
    ck_abort_msg("--%s: no other value", option->name);
}

/* What an option has no meaning without. */
static const struct {
    const char *name, *argument, *variable;
} companions[] = {
    {"snapshot-out", "--snapshot=x", "GPULEDGER_SNAPSHOT=x"},
    {"tls-cert", "--tls-key=x", "GPULEDGER_TLS_KEY=x"},
    {"tls-key", "--tls-cert=x", "GPULEDGER_TLS_CERT=x"},
};

static const char *companion(const struct option *option, bool variable)
{
    for (size_t i = 0; i < G_N_ELEMENTS(companions); i++) {
        if (strcmp(companions[i].name, option->name) == 0)
            return variable ? companions[i].variable : companions[i].argument;
    }
    return NULL;
}

static const char *companion_file(const struct option *option)
{
    if (strcmp(option->name, "usage") == 0)
        return "classes: {a: {victims: first}}\n";
    if (strcmp(option->name, "tls-client-names") == 0)
        return "tls-cert: x\ntls-key: x\ntls-client-ca: x\n";
    return strcmp(option->name, "tls-client-ca") == 0 || strcmp(option->name, "ops-tls") == 0
               ? "tls-cert: x\ntls-key: x\n"
               : NULL;
}

START_TEST(every_variable_reaches_its_option)
{
    options_each (option) {
        g_autofree char *variable = option_variable(option);
        if (!variable || !(option->commands & COMMAND_SERVE) || option->flags & OPTION_NO_FILE)
            continue;
        g_autofree char *value = other_value(option);
        g_autofree char *entry = g_strconcat(variable, "=", value, NULL);
        struct config *config = load(&(struct sources){
            .file = companion_file(option), .environment = {entry, companion(option, true)}});
        g_autofree char *text = option_format(option, config);
        ck_assert_str_eq(text, value);
        ck_assert_str_eq(config->origins[option_position(option)].name, variable);
        config_free(config);
    }
}
END_TEST

START_TEST(what_is_printed_can_be_read_again)
{
    options_each (option) {
        if (!(option->commands & COMMAND_SERVE) ||
            option->flags & (OPTION_NO_FILE | OPTION_FLAG_ONLY))
            continue;
        g_autofree char *value = other_value(option);
        g_autofree char *argument = g_strdup_printf("--%s=%s", option->name, value);
        struct config *first = load(&(struct sources){
            .file = companion_file(option), .arguments = {argument, companion(option, false)}});
        g_autoptr(GString) printed = g_string_new(NULL);
        config_print(first, COMMAND_SERVE, printed);
        struct config *second = load(&(struct sources){.file = printed->str});
        options_each (each) {
            if (each->flags & (OPTION_NO_FILE | OPTION_FLAG_ONLY))
                continue;
            g_autofree char *before = option_format(each, first);
            g_autofree char *after = option_format(each, second);
            ck_assert_str_eq(after, before);
        }
        config_free(first);
        config_free(second);
    }
}
END_TEST

START_TEST(sources_are_printed)
{
    struct config *config = load(&(struct sources){
        .file = "policy: spread\n",
        .environment = {"PORT=12345"},
        .arguments = {"--log-level=debug"},
    });
    g_autoptr(GString) printed = g_string_new(NULL);
    config_print(config, COMMAND_SERVE, printed);
    g_autofree char *path = file_path();
    g_autofree char *policy = g_strdup_printf("%-48s # file %s\n", "policy: \"spread\"", path);
    ck_assert_msg(strstr(printed->str, policy) != NULL, "%s", printed->str);
    ck_assert_msg(strstr(printed->str, "# environment PORT\n") != NULL, "%s", printed->str);
    ck_assert_msg(strstr(printed->str, "# command line\n") != NULL, "%s", printed->str);
    ck_assert_msg(strstr(printed->str, "# default\n") != NULL, "%s", printed->str);
    config_free(config);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *cases = tcase_create("config");
    tcase_add_checked_fixture(cases, make_directory, remove_directory);
    tcase_add_loop_test(cases, precedence_of_sources, 0, G_N_ELEMENTS(precedence));
    tcase_add_loop_test(cases, refusal, 0, G_N_ELEMENTS(refusals));
    tcase_add_test(cases, help_needs_nothing_else_to_be_right);
    tcase_add_test(cases, words_are_kept_in_order);
    tcase_add_test(cases, short_options_take_values_three_ways);
    tcase_add_test(cases, a_client_ignores_the_servers_environment);
    tcase_add_test(cases, what_is_ignored_is_said);
    tcase_add_test(cases, what_does_nothing_alone_is_said);
    tcase_add_test(cases, every_variable_reaches_its_option);
    tcase_add_test(cases, what_is_printed_can_be_read_again);
    tcase_add_test(cases, sources_are_printed);
    suite_add_tcase(suite, cases);

    return suite_run(suite);
}
