/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tls.h"

#include "base/log.h"
#include "base/metrics.h"
#include "kube/secret.h"
#include "base/small_file.h"

#include <gnutls/x509.h>
#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

#define PEM_MAX ((size_t)1 << 20)

struct tls_identity {
    gint refs; /* atomic */
    gnutls_certificate_credentials_t credentials;
    bool wants_client; /* a certificate of the client is required */
    char **names;      /* one of which it must have; NULL: any */
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
    char **names; /* NULL: any */
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

static void identity_unref(struct tls_identity *identity)
{
    if (!identity || !g_atomic_int_dec_and_test(&identity->refs))
        return;
    gnutls_certificate_free_credentials(identity->credentials);
    g_strfreev(identity->names);
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
    identity->names = g_strdupv(tls->names);
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
    identity_unref(identity);
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

/* Says in the log and in a metric until when it is good. */
static void tell_certificate(const struct tls_identity *identity)
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
        metrics_set(GAUGE_CERTIFICATE_END, (int64_t)end);
        expires = g_date_time_new_from_unix_utc(end);
        expires_text = expires ? g_date_time_format_iso8601(expires) : NULL;
        bool over = (int64_t)end <= g_get_real_time() / G_USEC_PER_SEC;
        log_event(over ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
                  over ? "certificate has expired" : "certificate loaded",
                  LOG_TEXT("sha256", fingerprint->str), LOG_TEXT("expires", expires_text),
                  LOG_TEXT("clients", !identity->wants_client ? "any"
                                      : identity->names       ? "need a certificate of a name"
                                                              : "need a certificate"));
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

/* NULL: there are none. */
static char **split_names(const char *text)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "", ",", -1);
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    bool any = false;

    for (char **word = words; *word; word++) {
        if (!*g_strstrip(*word))
            continue;
        g_strv_builder_add(names, *word);
        any = true;
    }
    return any ? g_strv_builder_end(names) : NULL;
}

struct tls *tls_new(const struct tls_files *files, GError **error)
{
    struct tls *tls = g_new0(struct tls, 1);

    tls->paths[FILE_CERTIFICATE] = g_strdup(files->certificate);
    tls->paths[FILE_KEY] = g_strdup(files->key);
    tls->paths[FILE_CLIENT_CA] = g_strdup(files->client_ca);
    tls->names = split_names(files->client_names);
    pthread_mutex_init(&tls->refreshing, NULL);
    pthread_mutex_init(&tls->lock, NULL);
    tls->current = load(tls, error);
    if (!tls->current) {
        tls_free(tls);
        return NULL;
    }
    tell_certificate(tls->current);
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    identity_unref(tls->current);
    for (size_t i = 0; i < FILE_N; i++)
        g_free(tls->paths[i]);
    g_strfreev(tls->names);
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
        tell_certificate(fresh);
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
    identity_unref(old);
}

/* --- sessions ------------------------------------------------------------------------------- */

static void refuse_client(gnutls_session_t session, gnutls_alert_description_t alert,
                          const char *why)
{
    log_event_limited(LOG_LEVEL_WARN, "client certificate refused", LOG_TEXT("why", why));
    gnutls_alert_send(session, GNUTLS_AL_FATAL, alert);
}

/* The library takes a certificate that names no purpose for one of all purposes. */
static bool is_for_clients(gnutls_x509_crt_t certificate)
{
    char purpose[64];

    for (unsigned i = 0;; i++) {
        size_t size = sizeof(purpose);
        const int code = gnutls_x509_crt_get_key_purpose_oid(certificate, i, purpose, &size, NULL);

        if (code == 0 && strcmp(purpose, GNUTLS_KP_TLS_WWW_CLIENT) == 0)
            return true;
        if (code < 0 && code != GNUTLS_E_SHORT_MEMORY_BUFFER)
            return false;
    }
}

static bool is_name(char **names, const char *text, size_t length)
{
    return strlen(text) == length && g_strv_contains((const char *const *)names, text);
}

/* Exactly: an asterisk in a certificate is a letter like others, and so is a NUL. */
static bool has_a_name(gnutls_x509_crt_t certificate, char **names)
{
    char text[256]; /* what does not fit is none of them: DNS names and common names are shorter */
    unsigned type;
    int code = 0;

    for (unsigned i = 0; code >= 0 || code == GNUTLS_E_SHORT_MEMORY_BUFFER; i++) {
        size_t size = sizeof(text) - 1;

        memset(text, 0, sizeof(text));
        code = gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, i, 0, text,
                                             &size);
        if (code >= 0 && is_name(names, text, size))
            return true;
    }
    code = 0;
    for (unsigned i = 0; code >= 0 || code == GNUTLS_E_SHORT_MEMORY_BUFFER; i++) {
        size_t size = sizeof(text) - 1;

        memset(text, 0, sizeof(text));
        code = gnutls_x509_crt_get_subject_alt_name2(certificate, i, text, &size, &type, NULL);
        if (code >= 0 && type == GNUTLS_SAN_DNSNAME && is_name(names, text, size))
            return true;
    }
    return false;
}

/* Why a certificate that is signed by one of our CAs will not do; NULL: it will. */
static const char *objection(gnutls_session_t session)
{
    const struct tls_session *kept = gnutls_session_get_ptr(session);
    unsigned n = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &n);
    gnutls_x509_crt_t certificate;
    const char *why = NULL;

    if (gnutls_x509_crt_init(&certificate) < 0)
        return "there is no memory for it";
    if (gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) < 0)
        why = "it cannot be read";
    else if (!is_for_clients(certificate))
        why = "it does not say that it is for clients (extendedKeyUsage clientAuth)";
    else if (kept->identity->names && !has_a_name(certificate, kept->identity->names))
        why = "it has none of the names of --tls-client-names";
    gnutls_x509_crt_deinit(certificate);
    return why;
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
    if (code == 0 && status == 0) {
        const char *why = objection(session);

        if (!why)
            return 0;
        refuse_client(session, GNUTLS_A_BAD_CERTIFICATE, why);
        return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
    }
    if (code == 0)
        code = gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0);
    refuse_client(session, GNUTLS_A_BAD_CERTIFICATE,
                  text.data ? (const char *)text.data : gnutls_strerror(code));
    gnutls_free(text.data);
    return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

void tls_begin(struct tls *tls, gnutls_session_t session, struct tls_session *ret_kept)
{
    pthread_mutex_lock(&tls->lock);
    struct tls_identity *identity = identity_ref(tls->current);
    pthread_mutex_unlock(&tls->lock);
    ret_kept->identity = identity;
    gnutls_session_set_ptr(session, ret_kept); /* the library uses it for shared keys only */
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, identity->credentials);
    if (identity->wants_client) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(session, verify_client);
    }
}

void tls_end(struct tls_session *kept)
{
    g_clear_pointer(&kept->identity, identity_unref);
}
