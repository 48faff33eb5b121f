/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread renews, marked by `renewing`; the others use what there is. The result of an attempt,
 * good or bad, stands for `retry_ms`: when the API server refuses everything, or a command is
 * broken, requests must not turn into a storm of file reads and processes.
 */
#include "kube/credentials.h"

#include "base/log.h"
#include "kube/clock.h"
#include "kube/exec_credential.h"
#include "kube/secret.h"
#include "base/small_file.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

#define FILE_AGE_MS 50000
#define RETRY_MS 5000
#define EXEC_TIMEOUT_MS 60000
#define EXPIRY_LEEWAY_US (10 * G_USEC_PER_SEC)
#define TOKEN_SIZE_MAX ((size_t)64 << 10)
#define CERTIFICATE_SIZE_MAX ((size_t)256 << 10)

struct credentials {
    const struct kube_config *config;
    struct credentials_options options;
    pthread_mutex_t lock;
    pthread_cond_t renewed;

    /* Under the lock: */
    struct credential *current; /* NULL until the first one */
    GError *failure;            /* why the last attempt to renew failed, or NULL */
    int64_t expires_us;         /* Unix time; 0: never */
    int64_t obtained_ms;        /* when `current` was read or handed out */
    int64_t attempted_ms;       /* when the last attempt to renew ended */
    bool rejected;              /* the API server does not accept `current` */
    unsigned rejections;        /* that have led to a renewal */
    bool renewing;              /* some thread is at it */
};

/* --- one credential ------------------------------------------------------------------------- */

static void credential_clear(void *data)
{
    struct credential *credential = data;

    secret_free(credential->authorization);
    g_free(credential->cert_pem);
    secret_free(credential->key_pem);
}

struct credential *credential_ref(struct credential *credential)
{
    return g_atomic_rc_box_acquire(credential);
}

void credential_unref(struct credential *credential)
{
    if (credential)
        g_atomic_rc_box_release_full(credential, credential_clear);
}

/* A header's value must be one line of printable characters. */
static bool token_is_sane(const char *token)
{
    for (const char *at = token; *at; at++) {
        if (!g_ascii_isgraph(*at))
            return false;
    }
    return *token != '\0';
}

static struct credential *credential_from_token(const char *token, const char *origin,
                                                GError **error)
{
    if (!token_is_sane(token)) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_DENIED,
                    "%s holds no token of printable characters without spaces", origin);
        return NULL;
    }
    struct credential *credential = g_atomic_rc_box_new0(struct credential);
    credential->authorization = g_strconcat("Bearer ", token, NULL);
    return credential;
}

static struct credential *credential_from_password(const struct kube_config *config)
{
    struct credential *credential = g_atomic_rc_box_new0(struct credential);
    char *pair = g_strconcat(config->user, ":", config->password ? config->password : "", NULL);
    char *encoded = g_base64_encode((const guchar *)pair, strlen(pair));

    credential->authorization = g_strconcat("Basic ", encoded, NULL);
    secret_free(encoded);
    secret_free(pair);
    return credential;
}

/* --- where credentials come from ------------------------------------------------------------ */

static struct credential *read_token_file(const struct kube_config *config, GError **error)
{
    g_autofree char *origin = g_strdup_printf("\"%s\"", config->token_file);
    char *token = small_file_read(config->token_file, TOKEN_SIZE_MAX, NULL, error);

    if (!token)
        return NULL;
    struct credential *credential = credential_from_token(g_strstrip(token), origin, error);
    secret_free(token);
    return credential;
}

static struct credential *run_command(const struct kube_config *config, int64_t timeout_ms,
                                      int64_t *ret_expires_us, GError **error)
{
    struct exec_credential answer = {0};
    struct credential *credential;

    if (!exec_credential_run(config, timeout_ms, &answer, error))
        return NULL;
    if (answer.token) {
        g_autofree char *origin =
            g_strdup_printf("credential command \"%s\"", config->exec->command);
        credential = credential_from_token(answer.token, origin, error);
    } else {
        credential = g_atomic_rc_box_new0(struct credential);
    }
    if (credential) {
        credential->cert_pem = g_steal_pointer(&answer.cert_pem);
        credential->key_pem = g_steal_pointer(&answer.key_pem);
        *ret_expires_us = answer.expires_us;
    }
    exec_credential_clear(&answer);
    return credential;
}

static bool has_certificate(const struct kube_config *config)
{
    return config->cert_file || config->cert_data;
}

static bool runs_command(const struct kube_config *config)
{
    return config->exec && !config->token;
}

static bool is_renewable(const struct kube_config *config)
{
    return config->token_file || has_certificate(config) || runs_command(config);
}

static bool read_certificate(const struct kube_config *config, struct credential *credential,
                             GError **error)
{
    const bool file = config->cert_file && !config->cert_data;
    const bool key_file = config->key_file && !config->key_data;

    credential->cert_pem =
        file ? small_file_read(config->cert_file, CERTIFICATE_SIZE_MAX, NULL, error)
             : g_strdup(config->cert_data);
    if (!credential->cert_pem)
        return false;
    credential->key_pem = key_file
                              ? small_file_read(config->key_file, CERTIFICATE_SIZE_MAX, NULL, error)
                              : g_strdup(config->key_data);
    return credential->key_pem || !key_file;
}

/* What stands after a certificate is no part of it (RFC 7468, 2). */
static void set_apart(struct credential *credential, unsigned rejections)
{
    if (!credential->cert_pem || rejections == 0)
        return;
    char *text = g_strdup_printf("%s\n# after %u rejections\n", credential->cert_pem, rejections);
    g_free(credential->cert_pem);
    credential->cert_pem = text;
}

/* I/O: without the lock. */
static struct credential *obtain(const struct credentials *credentials, int64_t deadline_ms,
                                 int64_t *ret_expires_us, GError **error)
{
    const struct kube_config *config = credentials->config;
    g_autoptr(GError) failure = NULL;
    struct credential *credential = NULL;

    if (config->token_file) {
        credential = read_token_file(config, &failure);
        if (credential || !config->token) {
            if (failure)
                g_propagate_error(error, g_steal_pointer(&failure));
            return credential;
        }
    }
    if (config->token)
        return credential_from_token(config->token, config->source, error);
    if (config->exec) {
        const int64_t left_ms = deadline_ms - clock_ms();
        return run_command(config, CLAMP(left_ms, 1, credentials->options.exec_timeout_ms),
                           ret_expires_us, error);
    }
    if (config->user)
        return credential_from_password(config);
    return g_atomic_rc_box_new0(struct credential);
}

/* The same with its certificate. */
static struct credential *renew(const struct credentials *credentials, unsigned rejections,
                                int64_t deadline_ms, int64_t *ret_expires_us, GError **error)
{
    const struct kube_config *config = credentials->config;
    g_autoptr(credential) credential = obtain(credentials, deadline_ms, ret_expires_us, error);

    if (!credential)
        return NULL;
    if (!credential->cert_pem && has_certificate(config) &&
        !read_certificate(config, credential, error))
        return NULL;
    set_apart(credential, rejections);
    return g_steal_pointer(&credential);
}

/* --- keeping them fresh --------------------------------------------------------------------- */

struct credentials *credentials_new(const struct kube_config *config,
                                    const struct credentials_options *options)
{
    static const struct credentials_options defaults;
    struct credentials *credentials = g_new0(struct credentials, 1);
    pthread_condattr_t monotonic;

    if (!options)
        options = &defaults;
    credentials->config = config;
    credentials->options = (struct credentials_options){
        .file_age_ms = options->file_age_ms ? options->file_age_ms : FILE_AGE_MS,
        .retry_ms = options->retry_ms ? options->retry_ms : RETRY_MS,
        .exec_timeout_ms = options->exec_timeout_ms ? options->exec_timeout_ms : EXEC_TIMEOUT_MS,
    };
    pthread_mutex_init(&credentials->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&credentials->renewed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return credentials;
}

void credentials_free(struct credentials *credentials)
{
    if (!credentials)
        return;
    credential_unref(credentials->current);
    g_clear_error(&credentials->failure);
    pthread_cond_destroy(&credentials->renewed);
    pthread_mutex_destroy(&credentials->lock);
    g_free(credentials);
}

static bool has_expired(const struct credentials *credentials, int64_t leeway_us)
{
    return credentials->expires_us && g_get_real_time() + leeway_us >= credentials->expires_us;
}

/* A failed attempt, or one whose result was refused at once, is not repeated for a while: a broken
 * command must not be run for every request. */
static bool wants_renewal(const struct credentials *credentials)
{
    const int64_t now_ms = clock_ms();

    if (credentials->renewing)
        return false;
    if (!credentials->current && !credentials->failure)
        return true;
    if (!is_renewable(credentials->config) ||
        now_ms - credentials->attempted_ms < credentials->options.retry_ms)
        return false;
    if (!credentials->current || credentials->rejected)
        return true;
    const struct kube_config *config = credentials->config;
    if (config->token_file || (config->cert_file && !runs_command(config)))
        return now_ms - credentials->obtained_ms >= credentials->options.file_age_ms;
    return has_expired(credentials, EXPIRY_LEEWAY_US);
}

/* With the lock, which is released meanwhile. */
static void renew_unlocked(struct credentials *credentials, int64_t deadline_ms)
{
    g_autoptr(GError) failure = NULL;
    int64_t expires_us = 0;

    credentials->renewing = true;
    credentials->rejections += credentials->rejected;
    const unsigned rejections = credentials->rejections;
    pthread_mutex_unlock(&credentials->lock);
    struct credential *fresh = renew(credentials, rejections, deadline_ms, &expires_us, &failure);
    pthread_mutex_lock(&credentials->lock);

    credentials->renewing = false;
    credentials->attempted_ms = clock_ms();
    g_clear_error(&credentials->failure);
    if (fresh) {
        credential_unref(credentials->current);
        credentials->current = fresh;
        credentials->expires_us = expires_us;
        credentials->obtained_ms = credentials->attempted_ms;
        credentials->rejected = false;
    } else {
        credentials->failure = g_steal_pointer(&failure);
        log_event(LOG_LEVEL_WARN, "credentials not renewed",
                  LOG_TEXT("error", credentials->failure->message));
    }
    pthread_cond_broadcast(&credentials->renewed);
}

/* With the lock: until somebody has renewed, or the deadline. */
static bool wait_for_renewal(struct credentials *credentials, int64_t deadline_ms)
{
    const struct timespec until = {.tv_sec = deadline_ms / 1000,
                                   .tv_nsec = deadline_ms % 1000 * 1000000};

    while (credentials->renewing) {
        if (pthread_cond_timedwait(&credentials->renewed, &credentials->lock, &until) != 0 &&
            clock_ms() >= deadline_ms)
            return false;
    }
    return true;
}

struct credential *credentials_get(struct credentials *credentials, int64_t deadline_ms,
                                   GError **error)
{
    struct credential *credential = NULL;

    pthread_mutex_lock(&credentials->lock);
    if (wants_renewal(credentials))
        renew_unlocked(credentials, deadline_ms);
    else if (!credentials->current || has_expired(credentials, 0))
        wait_for_renewal(credentials, deadline_ms);

    if (credentials->current && !has_expired(credentials, 0))
        credential = credential_ref(credentials->current);
    else if (credentials->failure)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS, "no credentials: %s",
                    credentials->failure->message);
    else
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CREDENTIALS, "no credentials: %s",
                    credentials->renewing ? "still waiting for them" : "they have expired");
    pthread_mutex_unlock(&credentials->lock);
    return credential;
}

bool credentials_reject(struct credentials *credentials, const struct credential *credential)
{
    pthread_mutex_lock(&credentials->lock);
    if (credential == credentials->current)
        credentials->rejected = true;
    const bool another =
        credential != credentials->current || credentials->renewing || wants_renewal(credentials);
    pthread_mutex_unlock(&credentials->lock);
    return another;
}
