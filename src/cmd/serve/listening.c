/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/listening.h"

#include "base/log.h"
#include "http/bearer.h"
#include "http/listeners_section.h"
#include "http/outgoing.h"
#include "http/tls.h"
#include "http/tls_section.h"
#include "store/seals/seals_section.h"

#include <sys/resource.h>

#define OPS_CONNECTIONS 64
#define OPS_BODY_MAX ((size_t)4 << 20)
#define OTHER_FILES 128 /* what is open beside the scheduler's connections, with room to spare */

/* Each connection needs a descriptor. Nothing here uses select, so the soft limit, which is there
 * for its sake, is raised. */
static unsigned connections_max(const struct config *config)
{
    int64_t wanted = config_section(config, listeners)->max_connections;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return (unsigned)wanted;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max == RLIM_INFINITY || files.rlim_max >= (rlim_t)wanted + OTHER_FILES)
        return (unsigned)wanted;
    int64_t possible = MAX((int64_t)files.rlim_max - OTHER_FILES, 1);
    log_event(LOG_LEVEL_WARN, "fewer connections than configured",
              LOG_NUMBER("max_connections", wanted), LOG_NUMBER("possible", possible),
              LOG_NUMBER("open_files", files.rlim_max));
    return (unsigned)possible;
}

static bool read_secrets(struct listening *listening, const struct config *config, GError **error)
{
    const struct tls_settings *tls = config_section(config, tls);
    const struct listeners_settings *listeners = config_section(config, listeners);

    if (*tls->certificate) {
        struct tls_files files = {.certificate = tls->certificate,
                                  .key = tls->key,
                                  .client_ca = tls->client_ca,
                                  .client_names = tls->client_names};
        listening->tls = tls_new(&files, error);
        files.client_ca = "";
        listening->operations_tls =
            listening->tls && tls->operations ? tls_new(&files, error) : NULL;
        if (!listening->tls || (tls->operations && !listening->operations_tls))
            return false;
    }
    if (*listeners->operations_token_file) {
        listening->bearer = bearer_new(listeners->operations_token_file, error);
        if (!listening->bearer)
            g_prefix_error(error, "option '--ops-token-file': ");
    }
    return listening->bearer || !*listeners->operations_token_file;
}

static struct server *listen_on(const struct address *address, const char *option,
                                struct server_options *options, GError **error)
{
    options->host = address->host;
    options->port = (uint16_t)address->port;
    options->idle_timeout_s = SERVER_IDLE_TIMEOUT_S;
    options->handler = routes_handle;
    g_autoptr(GError) failure = NULL;
    struct server *server = server_start(options, &failure);
    if (!server) {
        g_set_error(error, failure->domain, failure->code,
                    "option '--%s': %s; give it an address of this machine and a free port", option,
                    failure->message);
        return NULL;
    }
    struct address bound = *address;
    bound.port = server_port(server);
    g_autofree char *text = address_format(&bound);
    log_event(LOG_LEVEL_INFO, "listening", LOG_TEXT("listener", options->name),
              LOG_TEXT("address", text));
    return server;
}

/* A listener that asks callers for nothing is logged once, at level warn where other machines reach it. */
static void tell_open_door(const struct server *server, const char *listener, const char *what,
                           bool tls, const char *option)
{
    log_event(server_is_local(server) ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, what,
              LOG_TEXT("listener", listener), LOG_TEXT("transport", tls ? "TLS" : "plain HTTP"),
              LOG_TEXT("closed-by", option), LOG_TEXT("hint", "see docs/security.md"));
}

static void tell_open_doors(const struct listening *listening, const struct config *config)
{
    const struct tls_settings *tls_options = config_section(config, tls);

    if (!*tls_options->client_ca)
        tell_open_door(listening->scheduler, "scheduler", "everybody who reaches it may bind pods",
                       *tls_options->certificate, "--tls-client-ca");
    else if (!*tls_options->client_names)
        tell_open_door(listening->scheduler, "scheduler",
                       "every certificate of the CA may bind pods", true, "--tls-client-names");
    if (listening->operations && !*config_section(config, listeners)->operations_token_file)
        tell_open_door(listening->operations, "operations", "everybody who reaches it may look",
                       tls_options->operations, "--ops-token-file");
}

static void warn_of_no_seal(const struct config *config)
{
    const struct seals_settings *seals = config_section(config, seals);

    if (!*seals->key_file && !*seals->secret)
        log_event(LOG_LEVEL_INFO,
                  "after a restart annotations are believed, whoever may have changed them",
                  LOG_TEXT("option", "--seal-secret"), LOG_TEXT("hint", "see docs/security.md"));
}

static bool listen_for_operations(struct listening *listening, const struct config *config,
                                  GError **error)
{
    const struct listeners_settings *listeners = config_section(config, listeners);

    listening->operations_table =
        (struct routes){operations_routes, &listening->asked, listening->bearer, .compresses = true,
                        .hosts = listeners->operations_hosts};
    listening->operations = listen_on(&listeners->operations, "ops-listen",
                                      &(struct server_options){
                                          .name = "operations",
                                          .mode = SERVER_THREADS,
                                          .tls = listening->operations_tls,
                                          .connections_max = OPS_CONNECTIONS,
                                          .transfer_timeout_ms = listeners->transfer_timeout_ms,
                                          .body_max = OPS_BODY_MAX,
                                          .bodies_max = OPS_BODY_MAX * 4,
                                          .outgoing = listening->outgoing,
                                          .error_bodies = true,
                                          .data = &listening->operations_table,
                                      },
                                      error);
    return listening->operations != NULL;
}

bool listening_open(struct listening *listening, const struct config *config,
                    struct extender *extender, const struct operations *operations, GError **error)
{
    const struct listeners_settings *listeners = config_section(config, listeners);

    if (!read_secrets(listening, config, error))
        return false;
    const unsigned connections = connections_max(config);
    listening->asked = *operations;
    listening->outgoing = outgoing_new(ANSWERS_MAX);
    listening->scheduler_table = (struct routes){
        scheduler_routes, extender, .waits_max = MAX(connections / 2, 1), .no_browser = true};
    listening->scheduler =
        listen_on(&listeners->scheduler, "listen",
                  &(struct server_options){
                      .name = "scheduler",
                      .mode = SERVER_THREADS,
                      .tls = listening->tls,
                      .connections_max = connections,
                      .transfer_timeout_ms = listeners->transfer_timeout_ms,
                      .body_max = (size_t)listeners->max_body,
                      .bodies_max = MAX(SERVER_BODIES_MAX, 2 * (size_t)listeners->max_body),
                      .outgoing = listening->outgoing,
                      .data = &listening->scheduler_table},
                  error);
    if (!listening->scheduler)
        return false;
    if (listeners->operations.port != ADDRESS_OFF &&
        !listen_for_operations(listening, config, error))
        return false;
    tell_open_doors(listening, config);
    warn_of_no_seal(config);
    return true;
}

void listening_refresh(struct listening *listening)
{
    if (listening->tls)
        tls_refresh(listening->tls);
    if (listening->operations_tls)
        tls_refresh(listening->operations_tls);
    if (listening->bearer)
        bearer_refresh(listening->bearer);
}

void listening_close(struct listening *listening)
{
    server_free(listening->scheduler);
    server_free(listening->operations);
    outgoing_free(listening->outgoing);
    tls_free(listening->tls);
    tls_free(listening->operations_tls);
    bearer_free(listening->bearer);
}
