/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/serve/replica.h"

#include "kube/holder_label.h"
#include "kube/lease.h"
#include "kube/lease/election_section.h"
#include "options/cluster_section.h"

#include <gpuledger/error.h>

/* The proportions are client-go's: 15 s, 10 s, 2 s. */
#define RENEW_DEADLINE(duration_ms) ((duration_ms) * 2 / 3)
#define RETRY(duration_ms) ((duration_ms) * 2 / 15)

struct replica {
    struct api_client *client; /* its own, so that no renewal waits for other calls */
    struct journal *journal;
    struct holder_label *label; /* NULL: none is kept */
    struct lease *lease;
    struct replica_hooks hooks;
};

/* --- reading the pods afresh ------------------------------------------------------------------ */

static uint64_t begin_refresh(void *data)
{
    return backend_relist_pods(data);
}

static bool is_refreshed(void *data, uint64_t number)
{
    return backend_has_listed_pods(data, number);
}

/* --- being ready ------------------------------------------------------------------------------ */

static bool is_elected(void *data, char **ret_why)
{
    const struct replica *replica = data;
    return lease_is_held(replica->lease, ret_why);
}

/* A Service that selects the label must not reach a ready pod that stands by. */
static bool is_labelled(void *data, char **ret_why)
{
    const struct replica *replica = data;
    g_autofree char *why = NULL;

    if (!replica->label || holder_label_is_off(replica->label) ||
        lease_is_held(replica->lease, &why))
        return true;
    *ret_why = g_strdup("the pod may still have the label " HOLDER_LABEL " of the holder");
    return false;
}

static void follow_lease(void *data, bool serves)
{
    const struct replica *replica = data;

    if (replica->label)
        holder_label_set(replica->label, serves);
}

/* --- start and end ---------------------------------------------------------------------------- */

static bool start_lease(struct replica *replica, const struct config *config, struct store *store,
                        struct backend *backend, GError **error)
{
    const struct election_settings *election = config_section(config, election);
    g_autofree char *identity =
        lease_identity(*election->identity ? election->identity : g_get_host_name());
    const struct lease_args args = {
        .client = replica->client,
        .store = store,
        .journal = replica->journal,
        .refresh = {begin_refresh, is_refreshed, backend},
        .changed = follow_lease,
        .changed_data = replica,
        .ns = election->ns,
        .name = election->lease,
        .identity = identity,
        .duration_ms = election->duration_ms,
        .renew_deadline_ms = RENEW_DEADLINE(election->duration_ms),
        .retry_ms = RETRY(election->duration_ms),
        .first_wait_ms = election->duration_ms,
    };

    replica->lease = lease_start(&args, error);
    return replica->lease != NULL;
}

static bool start_label(struct replica *replica, const struct config *config, GError **error)
{
    const struct election_settings *election = config_section(config, election);

    if (!*election->pod_name)
        return true;
    replica->label = holder_label_start(replica->client, election->ns, election->pod_name,
                                        HOLDER_LABEL_AGAIN_MS, error);
    return replica->label != NULL;
}

static bool check(const struct config *config, GError **error)
{
    const struct election_settings *election = config_section(config, election);
    const char *problem = NULL;

    if (*config_section(config, cluster)->snapshot)
        problem = "option '--leader-elect': a saved cluster (--snapshot) has no Leases; leave out "
                  "one of the two";
    else if (election->duration_ms % 1000 != 0)
        problem = "option '--lease-duration': a Lease counts in whole seconds; round it";
    else if (!*election->lease || !*election->ns)
        problem = "options '--lease-name' and '--lease-namespace': neither may be empty";
    if (problem)
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, problem);
    return !problem;
}

struct replica *replica_start(const struct config *config, struct store *store,
                              struct backend *backend, GError **error)
{
    if (!check(config, error))
        return NULL;
    struct replica *replica = g_new0(struct replica, 1);
    replica->journal = journal_new(store);
    replica->hooks = (struct replica_hooks){replica, is_elected, is_labelled};
    replica->client = backend_new_client(backend, error);
    if (!replica->client || !start_label(replica, config, error) ||
        !start_lease(replica, config, store, backend, error))
        g_clear_pointer(&replica, replica_free);
    return replica;
}

struct leadership *replica_leadership(struct replica *replica)
{
    return replica ? lease_leadership(replica->lease) : NULL;
}

struct journal *replica_journal(struct replica *replica)
{
    return replica ? replica->journal : NULL;
}

const struct replica_hooks *replica_hooks(const struct replica *replica)
{
    return replica ? &replica->hooks : NULL;
}

void replica_stop(struct replica *replica)
{
    if (replica)
        lease_stop(replica->lease);
}

void replica_free(struct replica *replica)
{
    if (!replica)
        return;
    lease_free(replica->lease);
    holder_label_free(replica->label);
    if (replica->client)
        api_client_free(replica->client);
    journal_free(replica->journal);
    g_free(replica);
}
