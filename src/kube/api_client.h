/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calls to the API server whose replies fit in memory. Calls may come from any number of threads:
 * each takes a connection from a pool and puts it back; the pool's lock is not held meanwhile. When
 * all are in use, the call waits for one.
 *
 * Every call has a deadline and is tried again within it where that is safe: after 429 (as long
 * as Retry-After asks), after 401 with fresh credentials, when no connection came about, and, for
 * calls that may be repeated, after 5xx and cut connections.
 */
#include "store/cluster.h"
#include "kube/kubeconfig.h"
#include "kube/transport.h"

#define API_REPLY_MAX ((size_t)4 << 20)
/* A burst of binds would otherwise open a connection for each: half of our CPU time, and as much
 * again at the API server, went into TLS handshakes. With 16 the API server and etcd take about a
 * third more CPU time for a Binding, since fewer arrive together; with 64 they take no less, nor
 * with HTTP/2. */
#define API_CONNECTIONS_MAX 32

struct api_client;

/* Takes the configuration, also on failure. */
struct api_client *api_client_new(struct kube_config *take_config, GError **error);
/* No call may be under way. */
void api_client_free(struct api_client *client);
typedef struct api_client api_client; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(api_client, api_client_free)

/* Calls under way end at once, within a second where nothing arrives, and those to come do not begin: what was sent
 * has an unknown outcome. Any thread. */
void api_client_abort(struct api_client *client);

const struct kube_config *api_client_config(const struct api_client *client);
struct credentials *api_client_credentials(struct api_client *client);
const struct transport *api_client_transport(const struct api_client *client);

struct api_call {
    const char *method;
    const char *path;    /* with query, escaped; starts with a slash */
    const GString *body; /* JSON, or NULL; of a PATCH a merge patch (RFC 7386) */
    bool apply;          /* the PATCH is a server-side apply, and its path names a fieldManager */
    int64_t deadline_ms; /* clock_ms */
    size_t reply_max;    /* bytes; 0: API_REPLY_MAX */
    bool once;           /* must not happen twice: not repeated once it may have arrived */
    /* Must not happen after the deadline: the API server is told of it as well, nothing is sent that
     * is late already, and what has not left this machine by then never will. */
    bool timely;
    /* Whether this text of the API server's is a no, whatever its status: then it is not asked again, and this
     * attempt counts as refused. NULL: none is. */
    bool (*is_final)(const char *message);
    bool *
        ret_doubted; /* an attempt before the last may have done it, whatever the outcome; NULL: not asked */
};

/* `reply` gets the body of a 2xx. A 404 that is not the API server's but a proxy's is OUTCOME_UNKNOWN. OUTCOME_REFUSED includes "it was certainly never sent"
 * (GPULEDGER_ERROR_UNAVAILABLE), but not of a write whose earlier attempt may have arrived: that is OUTCOME_UNKNOWN;
 * the error's text is the API server's own where it gave one. */
enum outcome api_client_call(struct api_client *client, const struct api_call *call, GString *reply,
                             GError **error);

/* What a reply with this status means. */
enum outcome api_outcome(long status);
