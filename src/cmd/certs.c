/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command "certs": what an installation needs so that nobody but kube-scheduler may bind pods
 * and nobody without the token may look: a CA, a certificate for the extender and one for each
 * client, a token; as files, for the next time, and as Secrets, for the cluster.
 *
 * What is there already and good is kept, so that it may be run again at any time.
 */
#include "core/fail.h"
#include "options/command.h"
#include "options/yaml_text.h"
#include "http/authority.h"
#include "json/json.h"
#include "kube/secret.h"
#include "base/small_file.h"
#include "options/certs_section.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SERVER "gpuledger"
#define FILE_MAX ((size_t)64 << 10)
#define CLIENTS_MAX 64
#define TOKEN_BYTES 32
#define KEY_MODE 0600
#define PUBLIC_MODE 0644

/* A certificate and its key; the Secret of the name holds both. */
struct identity {
    const char *name;
    char *certificate, *key;
};

struct certs {
    const struct config *config;
    struct authority *ca;
    char *ca_certificate;
    GArray *identities; /* of struct identity */
    char *token;
};

static void identity_clear(void *data)
{
    struct identity *identity = data;

    g_free(identity->certificate);
    secret_free(identity->key);
}

/* --- files ------------------------------------------------------------------------------------ */

static char *path_of(const struct certs *certs, const char *name, const char *ending)
{
    g_autofree char *file = g_strconcat(name, ending, NULL);
    return g_build_filename(config_section(certs->config, certs)->folder, file, NULL);
}

/* NULL without an error: there is none, or none is kept. */
static char *read_file(const struct certs *certs, const char *name, const char *ending,
                       GError **error)
{
    g_autofree char *path = path_of(certs, name, ending);

    if (!*config_section(certs->config, certs)->folder || !g_file_test(path, G_FILE_TEST_EXISTS))
        return NULL;
    return small_file_read(path, FILE_MAX, NULL, error);
}

static bool write_file(const struct certs *certs, const char *name, const char *ending,
                       const char *text, int mode, GError **error)
{
    const struct certs_settings *certs_options = config_section(certs->config, certs);
    g_autofree char *path = path_of(certs, name, ending);

    if (!*certs_options->folder)
        return true;
    if (g_mkdir_with_parents(certs_options->folder, 0700) < 0)
        return fail_with(error, GPULEDGER_ERROR_IO, "\"%s\" cannot be made: %s",
                         certs_options->folder, g_strerror(errno));
    /* Readers see the old file or the new one. */
    return g_file_set_contents_full(path, text, -1,
                                    G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                    mode, error);
}

static bool write_pair(const struct certs *certs, const char *name, const char *certificate,
                       const char *key, GError **error)
{
    return write_file(certs, name, ".key", key, KEY_MODE, error) &&
           write_file(certs, name, ".crt", certificate, PUBLIC_MODE, error);
}

/* For people; standard output is for kubectl. Where nothing is kept nothing is told: in a pod's log
 * the two would be mixed. */
static void tell(const struct certs *certs, const char *name, const char *certificate, bool made)
{
    g_autofree char *end = certificate ? certificate_end(certificate) : NULL;

    if (!*config_section(certs->config, certs)->folder)
        return;
    say("%-20s %s%s%s", name, made ? "made" : "kept", end ? ", good until " : "", end ? end : "");
}

/* --- making and keeping ----------------------------------------------------------------------- */

static bool open_ca(struct certs *certs, GError **error)
{
    const struct certs_settings *certs_options = config_section(certs->config, certs);
    g_autofree char *certificate = read_file(certs, "ca", ".crt", error);
    char *key = certificate ? read_file(certs, "ca", ".key", error) : NULL;
    const bool there = certificate && key;

    if (*error)
        return false;
    if (there) {
        certs->ca = authority_read(certificate, key, error);
        secret_free(key);
        g_prefix_error(error, "the CA in \"%s\": ", certs_options->folder);
    } else if (certificate) {
        /* A new one would shut out everybody who trusts the old one. */
        g_set_error(
            error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
            "\"%s\" has ca.crt but not ca.key, so nothing can be signed; bring the key back, "
            "or begin in another folder",
            certs_options->folder);
    } else {
        certs->ca = authority_make("gpuledger CA", error);
    }
    if (!certs->ca)
        return false;
    certs->ca_certificate = authority_certificate(certs->ca);
    if (!there) {
        char *made = authority_key(certs->ca);
        const bool written = write_pair(certs, "ca", certs->ca_certificate, made, error);
        secret_free(made);
        if (!written)
            return false;
    }
    tell(certs, "ca", certs->ca_certificate, !there);
    return true;
}

static bool add_identity(struct certs *certs, const struct certificate_wish *wish, GError **error)
{
    struct identity identity = {
        .name = wish->name,
        .certificate = read_file(certs, wish->name, ".crt", error),
        .key = *error ? NULL : read_file(certs, wish->name, ".key", error),
    };
    const bool kept = identity.certificate && identity.key &&
                      !config_section(certs->config, certs)->renew &&
                      authority_has_signed(certs->ca, wish, identity.certificate, identity.key);
    bool ok = !*error;

    if (ok && !kept) {
        identity_clear(&identity);
        identity.certificate = identity.key = NULL;
        ok = authority_sign(certs->ca, wish, &identity.certificate, &identity.key, error) &&
             write_pair(certs, wish->name, identity.certificate, identity.key, error);
    }
    if (!ok) {
        g_prefix_error(error, "certificate '%s': ", wish->name);
        identity_clear(&identity);
        return false;
    }
    g_array_append_val(certs->identities, identity);
    tell(certs, wish->name, identity.certificate, !kept);
    return true;
}

static bool add_server(struct certs *certs, GError **error)
{
    const struct certs_settings *certs_options = config_section(certs->config, certs);
    static const char *const services[] = {"gpuledger", "gpuledger-ops"};
    static const char *const local[] = {"localhost", "127.0.0.1", "::1"};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) more = g_strsplit(certs_options->hosts, ",", -1);

    for (size_t i = 0; i < G_N_ELEMENTS(services); i++) {
        g_ptr_array_add(names, g_strdup_printf("%s.%s.svc", services[i], certs_options->ns));
        g_ptr_array_add(names,
                        g_strdup_printf("%s.%s.svc.cluster.local", services[i], certs_options->ns));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(local); i++)
        g_ptr_array_add(names, g_strdup(local[i]));
    for (char **name = more; *name; name++) {
        if (*g_strstrip(*name))
            g_ptr_array_add(names, g_strdup(*name));
    }
    g_ptr_array_add(names, NULL);
    return add_identity(certs,
                        &(struct certificate_wish){SERVER, (const char *const *)names->pdata,
                                                   (unsigned)certs_options->days},
                        error);
}

/* It names a file and, after "gpuledger-", a Secret. */
static bool is_client_name(const char *name)
{
    const size_t length = strlen(name);

    for (const char *at = name; *at; at++) {
        if (!g_ascii_islower(*at) && !g_ascii_isdigit(*at) && *at != '-')
            return false;
    }
    return length > 0 && length <= 50 && g_ascii_isalnum(name[0]) &&
           g_ascii_isalnum(name[length - 1]) && strcmp(name, "ca") != 0 &&
           strcmp(name, SERVER) != 0 && strcmp(name, "ops") != 0 && strcmp(name, "tls") != 0;
}

static bool add_clients(struct certs *certs, char **clients, GError **error)
{
    if (g_strv_length(clients) > CLIENTS_MAX)
        return fail_with(error, GPULEDGER_ERROR_LIMIT, "option '--clients': more than %d names",
                         CLIENTS_MAX);
    for (char **name = clients; *name; name++) {
        if (!is_client_name(g_strstrip(*name)))
            return fail_with(
                error, GPULEDGER_ERROR_INVALID,
                "option '--clients': '%s' cannot name a client; expected small letters, "
                "digits and '-', 50 at most, and none of ca, ops, tls and " SERVER,
                *name);
        if (!add_identity(
                certs,
                &(struct certificate_wish){
                    .name = *name, .days = (unsigned)config_section(certs->config, certs)->days},
                error))
            return false;
    }
    return true;
}

static bool add_token(struct certs *certs, GError **error)
{
    unsigned char bytes[TOKEN_BYTES];
    char text[2 * TOKEN_BYTES + 1] = "";

    certs->token = read_file(certs, "token", "", error);
    if (*error)
        return false;
    const bool kept =
        certs->token && *g_strstrip(certs->token) && !config_section(certs->config, certs)->renew;
    if (!kept) {
        if (gnutls_rnd(GNUTLS_RND_KEY, bytes, sizeof(bytes)) < 0)
            g_error("TLS: no random numbers");
        for (size_t i = 0; i < sizeof(bytes); i++)
            g_snprintf(text + 2 * i, 3, "%02x", bytes[i]);
        secret_free(certs->token);
        certs->token = g_strdup(text);
        explicit_bzero(bytes, sizeof(bytes));
        explicit_bzero(text, sizeof(text));
        if (!write_file(certs, "token", "", certs->token, KEY_MODE, error))
            return false;
    }
    tell(certs, "token", NULL, !kept);
    return true;
}

/* --- Secrets ---------------------------------------------------------------------------------- */

static void write_datum(struct json_writer *writer, const char *key, const char *text)
{
    char *encoded = g_base64_encode((const guchar *)text, strlen(text));

    json_key_string(writer, key, encoded);
    secret_free(encoded);
}

static void begin_secret(struct json_writer *writer, const struct certs *certs, const char *name,
                         const char *type)
{
    g_autofree char *full = g_strconcat("gpuledger-", name, NULL);

    json_begin_object(writer);
    json_key_string(writer, "apiVersion", "v1");
    json_key_string(writer, "kind", "Secret");
    json_key_string(writer, "type", type);
    json_key_object(writer, "metadata");
    json_key_string(writer, "name", full);
    json_key_string(writer, "namespace", config_section(certs->config, certs)->ns);
    json_key_object(writer, "labels");
    json_key_string(writer, "app.kubernetes.io/name", "gpuledger");
    json_end_object(writer);
    json_end_object(writer);
    json_key_object(writer, "data");
}

static void end_secret(struct json_writer *writer)
{
    json_end_object(writer);
    json_end_object(writer);
}

/* The CA's key is in none of them. */
static void write_secrets(const struct certs *certs, GString *text)
{
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "apiVersion", "v1");
    json_key_string(&writer, "kind", "List");
    json_key_array(&writer, "items");
    for (guint i = 0; i < certs->identities->len; i++) {
        const struct identity *identity = &g_array_index(certs->identities, struct identity, i);

        begin_secret(&writer, certs, strcmp(identity->name, SERVER) == 0 ? "tls" : identity->name,
                     "kubernetes.io/tls");
        write_datum(&writer, "ca.crt", certs->ca_certificate);
        write_datum(&writer, "tls.crt", identity->certificate);
        write_datum(&writer, "tls.key", identity->key);
        end_secret(&writer);
    }
    begin_secret(&writer, certs, "ops", "Opaque");
    write_datum(&writer, "token", certs->token);
    /* Whoever shows the token wants to know whom. */
    write_datum(&writer, "ca.crt", certs->ca_certificate);
    end_secret(&writer);
    json_end_array(&writer);
    json_end_object(&writer);
}

static void string_wipe(GString *text)
{
    explicit_bzero(text->str, text->len);
    g_string_free(text, TRUE);
}

static bool print_secrets(const struct certs *certs, GError **error)
{
    GString *json = g_string_new(NULL), *yaml = g_string_new(NULL);

    write_secrets(certs, json);
    const bool ok = yaml_text_write(json, yaml, error);
    if (ok)
        fputs(yaml->str, stdout);
    string_wipe(json);
    string_wipe(yaml);
    return ok;
}

enum exit_code certs_run(const struct config *config, const struct config_inputs *inputs)
{
    struct certs certs = {.config = config,
                          .identities = g_array_new(FALSE, FALSE, sizeof(struct identity))};
    g_auto(GStrv) clients = g_strsplit(config_section(config, certs)->clients, ",", -1);
    GError *failure = NULL;

    g_array_set_clear_func(certs.identities, identity_clear);
    const bool ok = open_ca(&certs, &failure) && add_server(&certs, &failure) &&
                    add_clients(&certs, clients, &failure) && add_token(&certs, &failure) &&
                    print_secrets(&certs, &failure);
    const enum exit_code code = ok ? EXIT_OK : complain_of(failure);
    g_clear_error(&failure);
    authority_free(certs.ca);
    g_free(certs.ca_certificate);
    g_array_free(certs.identities, TRUE);
    secret_free(certs.token);
    return code;
}
