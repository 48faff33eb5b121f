/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include "app/log.h"
#include "kube/secret.h"
#include "kube/small_file.h"

#include <gnutls/x509.h>
#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

#define PEM_MAX ((size_t)1 << 20)

struct tls_identity {
    gint refs; /* atomic */
    gnutls_certificate_credentials_t credentials;
    bool wants_client; /* a certificate of the client is required */
};

enum file { FILE_CERTIFICATE, FILE_KEY, FILE_CLIENT_CA, FILE_N };

static const char *const file_options[FILE_N] = {
    [FILE_CERTIFICATE] = "tls-cert",
    [FILE_KEY] = "tls-key",
    [FILE_CLIENT_CA] = "tls-client-ca",
};

/* What the files hold. */
struct pem {
    char *texts[FILE_N]; /* NULL: no such file is wanted */
    char *digest;        /* of all */
};

struct tls {
    char *paths[FILE_N];
    pthread_mutex_t refreshing; /* one at a time; `seen` */
    char *seen;                 /* digest of what was last read, or why nothing was */
    pthread_mutex_t lock;
    struct tls_identity *current; /* under the lock */
};

/* --- identities ----------------------------------------------------------------------------- */

static struct tls_identity *identity_ref(struct tls_identity *identity)
{
    g_atomic_int_inc(&identity->refs);
    return identity;
}

void tls_identity_unref(struct tls_identity *identity)
{
    if (!identity || !g_atomic_int_dec_and_test(&identity->refs))
        return;
    gnutls_certificate_free_credentials(identity->credentials);
    g_free(identity);
}

static gnutls_datum_t datum(const char *text)
{
    return (gnutls_datum_t){(unsigned char *)text, (unsigned)strlen(text)};
}

static bool add_client_ca(struct tls_identity *identity, const struct tls *tls, const char *text,
                          GError **error)
{
    const gnutls_datum_t pem = datum(text);
    int n = gnutls_certificate_set_x509_trust_mem(identity->credentials, &pem, GNUTLS_X509_FMT_PEM);

    if (n > 0) {
        identity->wants_client = true;
        return true;
    }
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "option '--tls-client-ca': \"%s\" holds no certificate in PEM form%s%s",
                tls->paths[FILE_CLIENT_CA], n < 0 ? ": " : "", n < 0 ? gnutls_strerror(n) : "");
    return false;
}

static struct tls_identity *identity_new(const struct tls *tls, const struct pem *pem,
                                         GError **error)
{
    struct tls_identity *identity = g_new0(struct tls_identity, 1);
    const gnutls_datum_t certificate = datum(pem->texts[FILE_CERTIFICATE]);
    const gnutls_datum_t key = datum(pem->texts[FILE_KEY]);
    int code = gnutls_certificate_allocate_credentials(&identity->credentials);

    identity->refs = 1;
    if (code < 0)
        g_error("TLS: %s", gnutls_strerror(code));
    code = gnutls_certificate_set_x509_key_mem(identity->credentials, &certificate, &key,
                                               GNUTLS_X509_FMT_PEM);
    if (code < 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "options '--tls-cert' and '--tls-key': \"%s\" and \"%s\" are no certificate "
                    "with its key in PEM form: %s",
                    tls->paths[FILE_CERTIFICATE], tls->paths[FILE_KEY], gnutls_strerror(code));
    } else if (!pem->texts[FILE_CLIENT_CA] ||
               add_client_ca(identity, tls, pem->texts[FILE_CLIENT_CA], error)) {
        return identity;
    }
    tls_identity_unref(identity);
    return NULL;
}

/* --- files ---------------------------------------------------------------------------------- */

static void pem_clear(struct pem *pem)
{
    for (size_t i = 0; i < FILE_N; i++)
        secret_free(pem->texts[i]);
    g_free(pem->digest);
}

static bool pem_read(const struct tls *tls, struct pem *pem, GError **error)
{
    g_autoptr(GChecksum) digest = g_checksum_new(G_CHECKSUM_SHA256);

    for (size_t i = 0; i < FILE_N; i++) {
        size_t length = 0;

        if (i == FILE_CLIENT_CA && tls->paths[i][0] == '\0')
            continue;
        pem->texts[i] = small_file_read(tls->paths[i], PEM_MAX, &length, error);
        if (!pem->texts[i]) {
            g_prefix_error(error, "option '--%s': ", file_options[i]);
            return false;
        }
        /* With the NUL, so that the files' borders count. */
        g_checksum_update(digest, (const guchar *)pem->texts[i], (gssize)length + 1);
    }
    pem->digest = g_strdup(g_checksum_get_string(digest));
    return true;
}

static void log_certificate(const struct tls_identity *identity)
{
    gnutls_x509_crt_t *chain = NULL;
    unsigned n = 0;
    unsigned char digest[32];
    size_t digest_size = sizeof(digest);
    g_autoptr(GString) fingerprint = g_string_new(NULL);
    g_autoptr(GDateTime) expires = NULL;
    g_autofree char *expires_text = NULL;

    if (gnutls_certificate_get_x509_crt(identity->credentials, 0, &chain, &n) < 0)
        return;
    if (n > 0 &&
        gnutls_x509_crt_get_fingerprint(chain[0], GNUTLS_DIG_SHA256, digest, &digest_size) == 0) {
        for (size_t i = 0; i < digest_size; i++)
            g_string_append_printf(fingerprint, "%02x", digest[i]);
        time_t end = gnutls_x509_crt_get_expiration_time(chain[0]);
        expires = g_date_time_new_from_unix_utc(end);
        expires_text = expires ? g_date_time_format_iso8601(expires) : NULL;
        bool over = (int64_t)end <= g_get_real_time() / G_USEC_PER_SEC;
        log_event(over ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
                  over ? "certificate has expired" : "certificate loaded",
                  LOG_TEXT("sha256", fingerprint->str), LOG_TEXT("expires", expires_text),
                  LOG_TEXT("clients", identity->wants_client ? "need a certificate" : "any"));
    }
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(chain[i]);
    gnutls_free(chain);
}

/* Reads the files unless they are as `seen`; NULL with no error: they are. */
static struct tls_identity *load(struct tls *tls, GError **error)
{
    struct pem pem = {0};
    struct tls_identity *identity = NULL;

    if (pem_read(tls, &pem, error) && g_strcmp0(pem.digest, tls->seen) != 0) {
        identity = identity_new(tls, &pem, error);
        g_free(tls->seen);
        tls->seen = g_steal_pointer(&pem.digest);
    }
    pem_clear(&pem);
    return identity;
}

struct tls *tls_new(const struct tls_files *files, GError **error)
{
    struct tls *tls = g_new0(struct tls, 1);

    tls->paths[FILE_CERTIFICATE] = g_strdup(files->certificate);
    tls->paths[FILE_KEY] = g_strdup(files->key);
    tls->paths[FILE_CLIENT_CA] = g_strdup(files->client_ca);
    pthread_mutex_init(&tls->refreshing, NULL);
    pthread_mutex_init(&tls->lock, NULL);
    tls->current = load(tls, error);
    if (!tls->current) {
        tls_free(tls);
        return NULL;
    }
    log_certificate(tls->current);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    tls_identity_unref(tls->current);
    for (size_t i = 0; i < FILE_N; i++)
        g_free(tls->paths[i]);
    g_free(tls->seen);
    pthread_mutex_destroy(&tls->refreshing);
    pthread_mutex_destroy(&tls->lock);
    g_free(tls);
}

void tls_refresh(struct tls *tls)
{
    g_autoptr(GError) failure = NULL;
    struct tls_identity *fresh, *old = NULL;

    pthread_mutex_lock(&tls->refreshing);
    fresh = load(tls, &failure);
    if (fresh) {
        log_certificate(fresh);
        pthread_mutex_lock(&tls->lock);
        old = tls->current;
        tls->current = fresh;
        pthread_mutex_unlock(&tls->lock);
    } else if (failure && g_strcmp0(failure->message, tls->seen) != 0) {
        /* A certificate and its key are seldom written at the same instant. */
        log_event(LOG_LEVEL_ERROR, "certificate not reloaded", LOG_TEXT("why", failure->message));
        if (!g_error_matches(failure, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID)) {
            g_free(tls->seen);
            tls->seen = g_strdup(failure->message);
        }
    }
    pthread_mutex_unlock(&tls->refreshing);
    tls_identity_unref(old);
}

/* --- sessions ------------------------------------------------------------------------------- */

static void refuse_client(gnutls_session_t session, gnutls_alert_description_t alert,
                          const char *why)
{
    log_event_limited(LOG_LEVEL_WARN, "client certificate refused", LOG_TEXT("why", why));
    gnutls_alert_send(session, GNUTLS_AL_FATAL, alert);
}

/* The library would close the connection without a word. */
static int verify_client(gnutls_session_t session)
{
    gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
    };
    gnutls_datum_t text = {0};
    unsigned status = 0, n = 0;

    if (!gnutls_certificate_get_peers(session, &n) || n == 0) {
        refuse_client(session, GNUTLS_A_CERTIFICATE_REQUIRED, "there is none");
        return GNUTLS_E_CERTIFICATE_REQUIRED;
    }
    int code = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
    if (code == 0 && status == 0)
        return 0;
    if (code == 0)
        code = gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
    refuse_client(session, GNUTLS_A_BAD_CERTIFICATE,
                  text.data ? (const char *)text.data : gnutls_strerror(code));
    gnutls_free(text.data);
    return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

struct tls_identity *tls_begin(struct tls *tls, gnutls_session_t session)
{
    struct tls_identity *identity;

    pthread_mutex_lock(&tls->lock);
    identity = identity_ref(tls->current);
    pthread_mutex_unlock(&tls->lock);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, identity->credentials);
    if (identity->wants_client) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(session, verify_client);
    }
    return identity;
}
