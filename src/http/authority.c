/* SPDX-License-Identifier: Apache-2.0 */
#include "http/authority.h"

#include "kube/secret.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <gpuledger/error.h>
#include <string.h>

#define DAY_S 86400
#define SKEW_S 300 /* clocks differ */
#define SERIAL_SIZE 16

struct authority {
    gnutls_x509_crt_t certificate;
    gnutls_x509_privkey_t key;
};

/* Code and what failed; false if it did. */
static bool check(int code, const char *what, GError **error)
{
    if (code >= 0)
        return true;
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "%s: %s", what,
                gnutls_strerror(code));
    return false;
}

static struct authority *pair_new(void)
{
    struct authority *pair = g_new0(struct authority, 1);

    if (gnutls_x509_crt_init(&pair->certificate) < 0 || gnutls_x509_privkey_init(&pair->key) < 0)
        g_error("TLS: out of memory");
    return pair;
}

void authority_free(struct authority *authority)
{
    if (!authority)
        return;
    gnutls_x509_crt_deinit(authority->certificate);
    gnutls_x509_privkey_deinit(authority->key);
    g_free(authority);
}

static char *take_text(gnutls_datum_t *datum)
{
    char *text = g_strndup((const char *)datum->data, datum->size);

    explicit_bzero(datum->data, datum->size);
    gnutls_free(datum->data);
    return text;
}

char *authority_certificate(const struct authority *authority)
{
    gnutls_datum_t pem;

    if (gnutls_x509_crt_export2(authority->certificate, GNUTLS_X509_FMT_PEM, &pem) < 0)
        g_error("TLS: out of memory");
    return take_text(&pem);
}

char *authority_key(const struct authority *authority)
{
    gnutls_datum_t pem;

    /* PKCS #8, which everybody reads. */
    if (gnutls_x509_privkey_export2_pkcs8(authority->key, GNUTLS_X509_FMT_PEM, NULL,
                                          GNUTLS_PKCS_PLAIN, &pem) < 0)
        g_error("TLS: out of memory");
    return take_text(&pem);
}

static struct authority *pair_read(const char *certificate, const char *key, GError **error)
{
    const gnutls_datum_t pem = {(unsigned char *)certificate, (unsigned)strlen(certificate)};
    const gnutls_datum_t secret = {(unsigned char *)key, (unsigned)strlen(key)};
    g_autoptr(authority) pair = pair_new();
    unsigned char ids[2][64] = {{0}};
    size_t sizes[2] = {sizeof(ids[0]), sizeof(ids[1])};

    if (!check(gnutls_x509_crt_import(pair->certificate, &pem, GNUTLS_X509_FMT_PEM),
               "it is no certificate in PEM form", error) ||
        !check(gnutls_x509_privkey_import2(pair->key, &secret, GNUTLS_X509_FMT_PEM, NULL, 0),
               "its key is none in PEM form", error) ||
        !check(gnutls_x509_crt_get_key_id(pair->certificate, GNUTLS_KEYID_USE_SHA256, ids[0],
                                          &sizes[0]),
               "it has no key", error) ||
        !check(gnutls_x509_privkey_get_key_id(pair->key, GNUTLS_KEYID_USE_SHA256, ids[1],
                                              &sizes[1]),
               "its key cannot be used", error))
        return NULL;
    if (sizes[0] != sizes[1] || memcmp(ids[0], ids[1], sizes[0]) != 0) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                    "certificate and key do not belong together");
        return NULL;
    }
    return g_steal_pointer(&pair);
}

struct authority *authority_read(const char *certificate, const char *key, GError **error)
{
    g_autoptr(authority) authority = pair_read(certificate, key, error);

    if (!authority)
        return NULL;
    if (gnutls_x509_crt_get_ca_status(authority->certificate, NULL) <= 0)
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "it is no CA");
    else if (gnutls_x509_crt_get_expiration_time(authority->certificate) <=
             (time_t)(g_get_real_time() / G_USEC_PER_SEC))
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "it has expired");
    else
        return g_steal_pointer(&authority);
    return NULL;
}

/* --- making ----------------------------------------------------------------------------------- */

/* A new key, and what all certificates have. */
static struct authority *pair_begin(const char *name, time_t end, GError **error)
{
    const time_t now = (time_t)(g_get_real_time() / G_USEC_PER_SEC);
    g_autoptr(authority) pair = pair_new();
    gnutls_x509_crt_t certificate = pair->certificate;
    unsigned char serial[SERIAL_SIZE], id[64];
    size_t id_size = sizeof(id);

    if (!check(gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial)), "no random numbers", error))
        return NULL;
    serial[0] = (serial[0] & 0x7f) | 0x40; /* positive, and of one length */
    if (!check(gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
                                            GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
               "a key cannot be made", error) ||
        !check(gnutls_x509_crt_set_version(certificate, 3), "version", error) ||
        !check(gnutls_x509_crt_set_serial(certificate, serial, sizeof(serial)), "serial", error) ||
        !check(gnutls_x509_crt_set_key(certificate, pair->key), "key", error) ||
        !check(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                             (unsigned)strlen(name)),
               "the name cannot be one of a certificate", error) ||
        !check(gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA1, id, &id_size), "key",
               error) ||
        !check(gnutls_x509_crt_set_subject_key_id(certificate, id, id_size), "key", error) ||
        !check(gnutls_x509_crt_set_activation_time(certificate, now - SKEW_S), "begin", error) ||
        !check(gnutls_x509_crt_set_expiration_time(certificate, end), "end", error))
        return NULL;
    return g_steal_pointer(&pair);
}

static time_t end_after(unsigned days)
{
    return (time_t)(g_get_real_time() / G_USEC_PER_SEC) + (time_t)days * DAY_S;
}

struct authority *authority_make(const char *name, GError **error)
{
    g_autoptr(authority) ca = pair_begin(name, end_after(AUTHORITY_DAYS), error);

    if (!ca ||
        !check(gnutls_x509_crt_set_basic_constraints(ca->certificate, 1, 0), "constraints",
               error) ||
        !check(gnutls_x509_crt_set_key_usage(ca->certificate,
                                             GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN),
               "usage", error) ||
        !check(gnutls_x509_crt_sign2(ca->certificate, ca->certificate, ca->key, GNUTLS_DIG_SHA256,
                                     0),
               "it cannot be signed", error))
        return NULL;
    return g_steal_pointer(&ca);
}

/* The kind of an alternative name and its bytes. */
static gnutls_x509_subject_alt_name_t read_name(const char *text, unsigned char address[16],
                                                const void **ret_data, unsigned *ret_size)
{
    const int families[] = {AF_INET, AF_INET6};

    *ret_data = address;
    for (size_t i = 0; i < G_N_ELEMENTS(families); i++) {
        *ret_size = families[i] == AF_INET ? 4 : 16;
        if (inet_pton(families[i], text, address) == 1)
            return GNUTLS_SAN_IPADDRESS;
    }
    *ret_data = text;
    *ret_size = (unsigned)strlen(text);
    return GNUTLS_SAN_DNSNAME;
}

static bool add_names(gnutls_x509_crt_t certificate, const char *const *names, GError **error)
{
    for (; names && *names; names++) {
        unsigned char address[16];
        const void *data;
        unsigned size;
        const gnutls_x509_subject_alt_name_t kind = read_name(*names, address, &data, &size);

        if (!check(gnutls_x509_crt_set_subject_alt_name(certificate, kind, data, size,
                                                        GNUTLS_FSAN_APPEND),
                   *names, error))
            return false;
    }
    return true;
}

bool authority_sign(const struct authority *authority, const struct certificate_wish *wish,
                    char **ret_certificate, char **ret_key, GError **error)
{
    const time_t end = MIN(end_after(wish->days),
                           gnutls_x509_crt_get_expiration_time(authority->certificate));
    g_autoptr(authority) pair = pair_begin(wish->name, end, error);
    unsigned char id[64];
    size_t id_size = sizeof(id);

    if (!pair || !add_names(pair->certificate, wish->names, error) ||
        !check(gnutls_x509_crt_set_basic_constraints(pair->certificate, 0, -1), "constraints",
               error) ||
        !check(gnutls_x509_crt_set_key_usage(pair->certificate, GNUTLS_KEY_DIGITAL_SIGNATURE),
               "usage", error) ||
        !check(gnutls_x509_crt_set_key_purpose_oid(pair->certificate,
                                                   wish->names ? GNUTLS_KP_TLS_WWW_SERVER
                                                               : GNUTLS_KP_TLS_WWW_CLIENT,
                                                   0),
               "purpose", error) ||
        !check(gnutls_x509_crt_get_subject_key_id(authority->certificate, id, &id_size, NULL),
               "the CA has no key id", error) ||
        !check(gnutls_x509_crt_set_authority_key_id(pair->certificate, id, id_size), "key",
               error) ||
        !check(gnutls_x509_crt_sign2(pair->certificate, authority->certificate, authority->key,
                                     GNUTLS_DIG_SHA256, 0),
               "it cannot be signed", error))
        return false;
    *ret_certificate = authority_certificate(pair);
    *ret_key = authority_key(pair);
    return true;
}

/* --- looking ---------------------------------------------------------------------------------- */

static bool has_name(gnutls_x509_crt_t certificate, const char *name)
{
    unsigned char address[16], found[256];
    const void *data;
    unsigned size;
    const gnutls_x509_subject_alt_name_t kind = read_name(name, address, &data, &size);

    for (unsigned i = 0;; i++) {
        size_t length = sizeof(found);
        const int code = gnutls_x509_crt_get_subject_alt_name(certificate, i, found, &length, NULL);

        if (code == (int)kind && length == size && memcmp(found, data, size) == 0)
            return true;
        if (code < 0 && code != GNUTLS_E_SHORT_MEMORY_BUFFER)
            return false;
    }
}

bool authority_has_signed(const struct authority *authority, const struct certificate_wish *wish,
                          const char *certificate, const char *key)
{
    g_autoptr(authority) pair = pair_read(certificate, key, NULL);
    const time_t now = (time_t)(g_get_real_time() / G_USEC_PER_SEC);
    char name[256] = "", purpose[64] = "";
    size_t name_size = sizeof(name) - 1, purpose_size = sizeof(purpose) - 1;
    unsigned status = 1;

    if (!pair ||
        gnutls_x509_crt_verify(pair->certificate, &authority->certificate, 1, 0, &status) < 0 ||
        status != 0 ||
        gnutls_x509_crt_get_dn_by_oid(pair->certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name,
                                      &name_size) < 0 ||
        gnutls_x509_crt_get_key_purpose_oid(pair->certificate, 0, purpose, &purpose_size, NULL) < 0)
        return false;
    const time_t begin = gnutls_x509_crt_get_activation_time(pair->certificate);
    const time_t end = gnutls_x509_crt_get_expiration_time(pair->certificate);
    for (const char *const *each = wish->names; each && *each; each++) {
        if (!has_name(pair->certificate, *each))
            return false;
    }
    return strcmp(name, wish->name) == 0 &&
           strcmp(purpose, wish->names ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT) ==
               0 &&
           end - now > (end - begin) / 3;
}

char *certificate_end(const char *certificate)
{
    const gnutls_datum_t pem = {(unsigned char *)certificate, (unsigned)strlen(certificate)};
    gnutls_x509_crt_t parsed;
    char *text = NULL;

    if (gnutls_x509_crt_init(&parsed) < 0)
        return NULL;
    if (gnutls_x509_crt_import(parsed, &pem, GNUTLS_X509_FMT_PEM) == 0) {
        g_autoptr(GDateTime) end =
            g_date_time_new_from_unix_utc(gnutls_x509_crt_get_expiration_time(parsed));
        text = end ? g_date_time_format(end, "%Y-%m-%d") : NULL;
    }
    gnutls_x509_crt_deinit(parsed);
    return text;
}
