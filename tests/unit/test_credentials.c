/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/credentials.h"

#include "base/log.h"
#include "kube/clock.h"
#include "suite.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

#define PATIENT_MS 240000 /* only against hanging */
#define NEVER_MS 3600000

static char *directory;
static struct kube_config *config;
static struct credentials *subject;

static void setup(void)
{
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    directory = g_dir_make_tmp("credentials-XXXXXX", NULL);
    ck_assert(directory);
    config = g_new0(struct kube_config, 1);
    config->source = g_strdup("test");
    config->server = g_strdup("https://127.0.0.1:6443");
}

static void teardown(void)
{
    g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
    const char *name;

    g_clear_pointer(&subject, credentials_free);
    kube_config_free(config);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(directory, name, NULL);
        g_unlink(path);
    }
    g_rmdir(directory);
    g_free(directory);
}

static char *path_of(const char *name)
{
    return g_build_filename(directory, name, NULL);
}

static void write_file(const char *name, const char *text)
{
    g_autofree char *path = path_of(name);
    ck_assert(g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0700, NULL));
}

static void start(const struct credentials_options *options)
{
    subject = credentials_new(config, options);
}

static struct credential *get(GError **error)
{
    return credentials_get(subject, clock_ms() + PATIENT_MS, error);
}

static void expect_authorization(const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(credential) credential = get(&error);

    ck_assert_msg(credential, "%s", error ? error->message : "");
    ck_assert_pstr_eq(credential->authorization, expected);
}

static void expect_failure(const char *part)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!get(&error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS));
    ck_assert_msg(strstr(error->message, part), "\"%s\" is not in \"%s\"", part, error->message);
}

static bool reject_current(void)
{
    g_autoptr(credential) credential = get(NULL);
    return credentials_reject(subject, credential);
}

/* --- what does not change ------------------------------------------------------------------- */

START_TEST(nobody_has_no_header)
{
    start(NULL);
    expect_authorization(NULL);
    ck_assert(!reject_current());
}
END_TEST

START_TEST(sends_a_token)
{
    config->token = g_strdup("abc.def");
    start(NULL);
    expect_authorization("Bearer abc.def");
    ck_assert(!reject_current());
    expect_authorization("Bearer abc.def");
}
END_TEST

START_TEST(sends_a_password)
{
    config->user = g_strdup("Aladdin");
    config->password = g_strdup("open sesame");
    start(NULL);
    expect_authorization("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}
END_TEST

START_TEST(a_token_cannot_add_headers)
{
    config->token = g_strdup("abc\r\nX-Remote-User: admin");
    start(NULL);
    expect_failure("no token of printable characters");
}
END_TEST

/* --- token files ---------------------------------------------------------------------------- */

static void use_token_file(const char *text)
{
    if (text)
        write_file("token", text);
    config->token_file = path_of("token");
}

START_TEST(reads_a_token_file_again_as_it_ages)
{
    const struct credentials_options options = {.file_age_ms = 1, .retry_ms = 1};

    use_token_file("  one\n");
    start(&options);
    expect_authorization("Bearer one");
    write_file("token", "two\n");
    g_usleep(3000);
    expect_authorization("Bearer two");
}
END_TEST

START_TEST(reads_a_token_file_again_when_it_was_rejected)
{
    const struct credentials_options options = {.retry_ms = 1};

    use_token_file("one");
    start(&options);
    expect_authorization("Bearer one");
    write_file("token", "two");
    expect_authorization("Bearer one");
    g_usleep(3000);
    ck_assert(reject_current());
    expect_authorization("Bearer two");
}
END_TEST

START_TEST(keeps_the_old_token_while_the_file_is_unreadable)
{
    const struct credentials_options options = {.file_age_ms = 1, .retry_ms = 1};
    g_autofree char *path = path_of("token");

    use_token_file("one");
    start(&options);
    expect_authorization("Bearer one");
    g_unlink(path);
    g_usleep(3000);
    expect_authorization("Bearer one");
    write_file("token", "\n");
    g_usleep(3000);
    expect_authorization("Bearer one");
    write_file("token", "two");
    g_usleep(3000);
    expect_authorization("Bearer two");
}
END_TEST

START_TEST(a_token_stands_in_for_a_missing_file)
{
    config->token = g_strdup("given");
    use_token_file(NULL);
    start(NULL);
    expect_authorization("Bearer given");
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    use_token_file(NULL);
    start(NULL);
    expect_failure("/token\"");
}
END_TEST

/* --- commands ------------------------------------------------------------------------------- */

#define V1 "client.authentication.k8s.io/v1"
#define CREDENTIAL(status)                                                                         \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{" status "}}"

/* The command is a shell script; it notes each of its runs in the file "runs". */
static void use_command(const char *script)
{
    g_autofree char *runs = path_of("runs");
    g_autofree char *text = g_strdup_printf("#!/bin/sh\necho run >>'%s'\n%s\n", runs, script);

    write_file("command", text);
    if (config->exec)
        return;
    config->exec = g_new0(struct kube_exec, 1);
    config->exec->command = path_of("command");
    config->exec->args = g_strsplit("first,second word", ",", -1);
    config->exec->env = g_strsplit("GREETING=hello", ",", -1);
    config->exec->api_version = g_strdup(V1);
}

static unsigned count_runs(void)
{
    g_autofree char *path = path_of("runs");
    g_autofree char *text = NULL;
    gsize length = 0;

    return g_file_get_contents(path, &text, &length, NULL) ? (unsigned)(length / strlen("run\n"))
                                                           : 0;
}

START_TEST(runs_a_command_once)
{
    use_command("echo '" CREDENTIAL("\"token\":\"t1\"") "'");
    start(NULL);
    expect_authorization("Bearer t1");
    expect_authorization("Bearer t1");
    ck_assert_uint_eq(count_runs(), 1);
}
END_TEST

START_TEST(tells_the_command_what_it_needs)
{
    g_autofree char *seen_path = path_of("seen");
    g_autofree char *script = g_strdup_printf(
        "printf '%%s|%%s|%%s|%%s' \"$1\" \"$2\" \"$GREETING\" \"$KUBERNETES_EXEC_INFO\" >'%s'\n"
        "echo '" CREDENTIAL("\"token\":\"t1\"") "'",
        seen_path);
    g_autofree char *seen = NULL;

    use_command(script);
    config->exec->provide_cluster_info = true;
    config->exec->cluster_extension = g_strdup("{\"audience\":\"x\"}");
    config->ca_data = g_strdup("PEM");
    config->tls_server_name = g_strdup("kubernetes");
    start(NULL);
    expect_authorization("Bearer t1");
    ck_assert(g_file_get_contents(seen_path, &seen, NULL, NULL));
    ck_assert_str_eq(seen,
                     "first|second word|hello|"
                     "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"spec\":{\"cluster\":"
                     "{\"server\":\"https://127.0.0.1:6443\",\"tls-server-name\":\"kubernetes\","
                     "\"certificate-authority-data\":\"UEVN\",\"config\":{\"audience\":\"x\"}},"
                     "\"interactive\":false}}");
}
END_TEST

START_TEST(takes_certificates_too)
{
    g_autoptr(GError) error = NULL;

    use_command("echo '" CREDENTIAL("\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"") "'");
    start(NULL);
    g_autoptr(credential) credential = get(&error);
    ck_assert_msg(credential, "%s", error ? error->message : "");
    ck_assert_ptr_null(credential->authorization);
    ck_assert_str_eq(credential->cert_pem, "C");
    ck_assert_str_eq(credential->key_pem, "K");
}
END_TEST

static char *certificate(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(credential) credential = get(&error);

    ck_assert_msg(credential, "%s", error ? error->message : "");
    ck_assert_str_eq(credential->key_pem, "K");
    return g_strdup(credential->cert_pem);
}

START_TEST(reads_certificates_again)
{
    const struct credentials_options options = {.file_age_ms = 1, .retry_ms = 1};

    write_file("cert", "C");
    write_file("key", "K");
    config->cert_file = path_of("cert");
    config->key_file = path_of("key");
    start(&options);
    g_autofree char *first = certificate();
    ck_assert_str_eq(first, "C");
    g_usleep(3000);
    g_autofree char *same = certificate(); /* and connections go on */
    ck_assert_str_eq(same, "C");
    write_file("cert", "D");
    g_usleep(3000);
    g_autofree char *next = certificate();
    ck_assert_str_eq(next, "D");
}
END_TEST

START_TEST(a_certificate_that_is_rejected_gets_a_connection_of_its_own)
{
    const struct credentials_options options = {.retry_ms = 1};
    const bool file = _i == 0;

    write_file("cert", "C");
    config->cert_file = file ? path_of("cert") : NULL;
    config->cert_data = file ? NULL : g_strdup("C");
    config->key_data = g_strdup("K");
    start(&options);
    g_autoptr(credential) rejected = get(NULL);
    ck_assert_str_eq(rejected->cert_pem, "C");
    g_usleep(3000);
    ck_assert(credentials_reject(subject, rejected));
    g_autofree char *next = certificate();
    ck_assert(g_str_has_prefix(next, "C\n"));
    ck_assert_str_ne(next, rejected->cert_pem);
}
END_TEST

START_TEST(runs_the_command_again_when_its_credential_expires)
{
    const struct credentials_options options = {.retry_ms = 1};

    use_command("echo '" CREDENTIAL(
        "\"token\":\"t1\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"") "'");
    start(&options);
    expect_failure("they have expired");
    g_usleep(3000);
    use_command("echo '" CREDENTIAL(
        "\"token\":\"t2\",\"expirationTimestamp\":\"2099-01-01T00:00:00+02:00\"") "'");
    expect_authorization("Bearer t2");
    expect_authorization("Bearer t2");
    ck_assert_uint_eq(count_runs(), 2);
}
END_TEST

START_TEST(a_credential_that_is_rejected_at_once_stays)
{
    const struct credentials_options options = {.retry_ms = NEVER_MS};

    use_command("echo '" CREDENTIAL("\"token\":\"t1\"") "'");
    start(&options);
    expect_authorization("Bearer t1");
    ck_assert(!reject_current());
    expect_authorization("Bearer t1");
    ck_assert_uint_eq(count_runs(), 1);
}
END_TEST

START_TEST(runs_the_command_again_after_a_rejection)
{
    const struct credentials_options options = {.retry_ms = 1};

    use_command("echo '" CREDENTIAL("\"token\":\"t1\"") "'");
    start(&options);
    expect_authorization("Bearer t1");
    g_usleep(3000);
    ck_assert(reject_current());
    expect_authorization("Bearer t1");
    ck_assert_uint_eq(count_runs(), 2);
}
END_TEST

struct failing {
    const char *script;
    const char *message;
};

static const struct failing failing[] = {
    {"echo 'please log in' >&2; echo more >&2; exit 3", "failed with exit status 3: please log in"},
    {"kill -9 $$", "failed with signal 9"},
    {"exit 1", "it said nothing"},
    {"echo hunter2", "did not write valid JSON"},
    {"echo '{}'", "field 'apiVersion': missing"},
    {"echo '{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}'",
     "answered with apiVersion \"client.authentication.k8s.io/v1beta1\""},
    {"echo '" CREDENTIAL("") "'", "gave neither 'status.token' nor"},
    {"echo '" CREDENTIAL("\"clientKeyData\":\"K\"") "'", "gave neither 'status.token' nor"},
    {"echo '" CREDENTIAL("\"token\":\"hunter2\",\"expirationTimestamp\":\"soon\"") "'",
     "\"soon\" is not a time"},
    {"echo '" CREDENTIAL("\"token\":\"hunter2 x\"") "'", "no token of printable characters"},
    {"yes", "wrote more than"},
};

START_TEST(says_how_a_command_failed)
{
    const struct credentials_options options = {.exec_timeout_ms = PATIENT_MS,
                                                .retry_ms = NEVER_MS};
    g_autoptr(GError) error = NULL;

    use_command(failing[_i].script);
    start(&options);
    ck_assert(!get(&error));
    ck_assert_msg(strstr(error->message, failing[_i].message), "%s", error->message);
    ck_assert_msg(strstr(error->message, "/command\""), "%s", error->message);
    ck_assert_ptr_null(strstr(error->message, "hunter2"));
    /* And is not asked again at once. */
    ck_assert(!get(NULL));
    ck_assert_uint_eq(count_runs(), 1);
}
END_TEST

/* Whether the process runs; one that has ended and waits for its parent does not. */
static bool is_running(const char *pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%s/stat", pid);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return false;
    const char *state = strrchr(text, ')');
    return state && strlen(state) > 2 && state[2] != 'Z';
}

static const char *const hanging[] = {"", "exec >&- 2>&-; "};

/* It gets more time until it has begun to hang: a command that is killed before says nothing. */
START_TEST(what_a_hung_command_started_is_killed_with_it)
{
    g_autofree char *path = path_of("pid");
    g_autofree char *script = g_strdup_printf(
        "%ssleep 600 & echo $! >'%s.new'; mv '%s.new' '%s'; wait", hanging[_i], path, path, path);
    g_autofree char *pid = NULL;

    use_command(script);
    for (int timeout_ms = 300; !pid; timeout_ms *= 2) {
        const struct credentials_options options = {.exec_timeout_ms = timeout_ms,
                                                    .retry_ms = NEVER_MS};

        credentials_free(subject);
        start(&options);
        expect_failure("did not end in time");
        g_file_get_contents(path, &pid, NULL, NULL);
    }
    const unsigned runs = count_runs();
    expect_failure("did not end in time"); /* and it is not run again */
    ck_assert_uint_eq(count_runs(), runs);
    g_strstrip(pid);
    while (is_running(pid))
        g_usleep(10 * 1000);
}
END_TEST

START_TEST(a_command_that_is_not_there_comes_with_the_hint)
{
    use_command("");
    g_free(config->exec->command);
    config->exec->command = g_strdup("no-such-command-anywhere");
    config->exec->install_hint = g_strdup("install the plugin");
    start(NULL);
    expect_failure("install the plugin");
}
END_TEST

/* --- many at once --------------------------------------------------------------------------- */

#define THREADS 8

static void *get_one(void *data)
{
    g_autoptr(credential) credential = get(NULL);
    bool *good = data;

    *good = credential && g_strcmp0(credential->authorization, "Bearer t1") == 0;
    return NULL;
}

START_TEST(one_run_serves_all_who_wait)
{
    pthread_t threads[THREADS];
    bool good[THREADS];

    use_command("sleep 0.1; echo '" CREDENTIAL("\"token\":\"t1\"") "'");
    start(NULL);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_one, &good[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(good[i]);
    }
    ck_assert_uint_eq(count_runs(), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("credentials");
    TCase *tcase = tcase_create("credentials");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, nobody_has_no_header);
    tcase_add_test(tcase, sends_a_token);
    tcase_add_test(tcase, sends_a_password);
    tcase_add_test(tcase, a_token_cannot_add_headers);
    tcase_add_test(tcase, reads_a_token_file_again_as_it_ages);
    tcase_add_test(tcase, reads_a_token_file_again_when_it_was_rejected);
    tcase_add_test(tcase, keeps_the_old_token_while_the_file_is_unreadable);
    tcase_add_test(tcase, a_token_stands_in_for_a_missing_file);
    tcase_add_test(tcase, a_missing_file_is_named);
    tcase_add_test(tcase, runs_a_command_once);
    tcase_add_test(tcase, tells_the_command_what_it_needs);
    tcase_add_test(tcase, takes_certificates_too);
    tcase_add_test(tcase, reads_certificates_again);
    tcase_add_loop_test(tcase, a_certificate_that_is_rejected_gets_a_connection_of_its_own, 0, 2);
    tcase_add_test(tcase, runs_the_command_again_when_its_credential_expires);
    tcase_add_test(tcase, a_credential_that_is_rejected_at_once_stays);
    tcase_add_test(tcase, runs_the_command_again_after_a_rejection);
    tcase_add_loop_test(tcase, says_how_a_command_failed, 0, G_N_ELEMENTS(failing));
    tcase_add_loop_test(tcase, what_a_hung_command_started_is_killed_with_it, 0,
                        G_N_ELEMENTS(hanging));
    tcase_add_test(tcase, a_command_that_is_not_there_comes_with_the_hint);
    tcase_add_test(tcase, one_run_serves_all_who_wait);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
