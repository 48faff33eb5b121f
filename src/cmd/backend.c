/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "cmd/backend.h"

#include "store/kinds/kind.h"
#include "core/fail.h"
#include "store/limited_cluster.h"
#include "kube/api_cluster.h"
#include "kube/reflector.h"
#include "reclaim/claim_config_map.h"
#include "kueue/controller.h"
#include "maintain/half_groups.h"
#include "maintain/plans/plan_service.h"
#include "snapshot/snapshot.h"
#include "switch/switcher.h"
#include "usage/usage_source.h"
#include "wire/claim_sheet.h"
#include "quota/quotas_section.h"
#include "gang/gangs_section.h"
#include "queue/arrivals/arrivals_section.h"
#include "quota/elastic/reclaim_section.h"
#include "dialect/dialects_section.h"
#include "usage/usage_section.h"
#include "kueue/kueue_section.h"
#include "maintain/plans/plans_section.h"
#include "switch/switch_section.h"
#include "audit/audit_section.h"
#include "verbs/placing_section.h"
#include "verbs/bind/binding_section.h"
#include "options/cluster_section.h"
#include "options/maintenance_section.h"

/* Of the two kinds of cluster one is set. */
struct backend {
    const struct config *config;
    struct store *store;

    struct api_client *client;
    struct events *events; /* NULL: none are written */
    struct cluster *api_cluster;
    struct cluster *limited; /* api_cluster, each call cut short */
    struct reflector *reflectors[FEEDS_MAX];
    struct kueue *kueue;             /* NULL: it is not answered */
    struct usage_source *usage;      /* NULL: nobody is asked */
    struct switcher *switcher;       /* NULL: no node is switched */
    struct half_groups *half_groups; /* NULL: nobody ends them */
    struct plan_service *plans;      /* NULL: none are carried out */

    struct cluster *snapshot;
    struct snapshot_hooks hooks;
};

/* --- an API server ---------------------------------------------------------------------------- */

struct api_client *backend_new_client(const struct backend *backend, GError **error)
{
    const struct config *config = backend->config;
    const struct cluster_settings *cluster_options = config_section(config, cluster);
    g_autoptr(GError) failure = NULL;
    struct kube_config *kube =
        kube_config_load_default(cluster_options->kubeconfig, cluster_options->context, &failure);
    if (!kube) {
        g_set_error(error, failure->domain, failure->code,
                    *cluster_options->kubeconfig
                        ? "option '--kubeconfig': %s"
                        : "no cluster is given: %s; name one with --kubeconfig, or serve a saved "
                          "one with --snapshot",
                    failure->message);
        return NULL;
    }
    return api_client_new(kube, error);
}

static bool open_api(struct backend *backend, GError **error)
{
    const struct config *config = backend->config;
    backend->client = backend_new_client(backend, error);
    if (!backend->client)
        return false;
    backend->api_cluster = api_cluster_new(backend->client);
    if (config_section(config, audit)->events) {
        backend->events = events_start(backend->client, NULL, error);
        if (!backend->events)
            return false;
        api_cluster_set_events(backend->api_cluster, backend->events);
    }
    backend->limited =
        limited_cluster_new(backend->api_cluster, config_section(config, cluster)->api_timeout_ms);
    return true;
}

static bool start_reflectors(struct backend *backend, GError **error)
{
    for (int feed = 0; feed < kinds_n; feed++) {
        if (!store_wants(backend->store, (enum feed)feed))
            continue;
        backend->reflectors[feed] =
            reflector_start(backend->client, backend->store, (enum feed)feed, NULL, error);
        if (!backend->reflectors[feed])
            return false;
    }
    return true;
}

bool backend_answer_kueue(struct backend *backend, struct leadership *leadership, GError **error)
{
    if (backend->snapshot || !config_section(backend->config, kueue)->on)
        return true;
    backend->kueue = kueue_start(backend->client, backend->store, leadership, NULL, error);
    return backend->kueue;
}

bool backend_ask_usage(struct backend *backend, GError **error)
{
    const struct config *config = backend->config;
    const struct usage_settings *usage = config_section(config, usage);

    if (!*usage->url)
        return true;
    backend->usage = usage_source_start(
        &(struct usage_options){
            .url = usage->url,
            .query = usage->query,
            .ca_file = usage->ca_file,
            .token_file = usage->token_file,
            .interval_ms = usage->interval_ms,
            .below = usage->idle_below,
            .after_ms = usage->idle_for_ms,
            .timeout_ms = USAGE_TIMEOUT_MS,
        },
        backend->store, error);
    return backend->usage;
}

bool backend_switch_nodes(struct backend *backend, const struct backend_evicting *with,
                          GError **error)
{
    const struct config *config = backend->config;
    const struct switch_settings *switch_options = config_section(config, switch);
    const struct dialects_settings *dialects = config_section(config, dialects);

    if (backend->snapshot || !*switch_options->calendar)
        return true;
    struct calendar *calendar =
        calendar_load(switch_options->calendar, dialects->options.nvidia_config_replicas, error);
    if (!calendar)
        return fail_within(error, "option '--calendar': ");
    backend->switcher = switcher_start(
        &(struct switcher_options){
            .with = {.client = with->client,
                     .cluster = with->cluster,
                     .permits = with->permits,
                     .store = backend->store,
                     .moves_ns = api_client_config(with->client)->ns,
                     .replicas = dialects->options.nvidia_config_replicas,
                     .limits = *calendar_limits(calendar),
                     .dialects = &dialects->options},
            .take_calendar = calendar,
            .leadership = with->leadership,
        },
        error);
    return backend->switcher;
}

bool backend_carry_out_plans(struct backend *backend, const struct backend_evicting *with,
                             GError **error)
{
    if (backend->snapshot || !config_section(backend->config, plans)->on)
        return true;
    backend->plans = plan_service_start(
        &(struct plan_service_options){
            .client = with->client,
            .cluster = with->cluster,
            .permits = with->permits,
            .store = backend->store,
            .dialects = &config_section(backend->config, dialects)->options,
            .leadership = with->leadership,
            .ns = api_client_config(with->client)->ns,
        },
        error);
    return backend->plans;
}

bool backend_end_half_groups(struct backend *backend, const struct backend_evicting *with,
                             GError **error)
{
    const struct config *config = backend->config;
    const struct gangs_settings *gangs = config_section(config, gangs);

    if (backend->snapshot || !gangs->on || !gangs->strict)
        return true;
    backend->half_groups =
        half_groups_start(&(struct half_groups_options){.client = with->client,
                                                        .store = backend->store,
                                                        .leadership = with->leadership,
                                                        .permits = with->permits},
                          error);
    return backend->half_groups;
}

void backend_stop_evicting(struct backend *backend)
{
    g_clear_pointer(&backend->switcher, switcher_free);
    g_clear_pointer(&backend->half_groups, half_groups_free);
    g_clear_pointer(&backend->plans, plan_service_free);
}

struct events *backend_events(const struct backend *backend)
{
    return backend->events;
}

uint64_t backend_relist_pods(struct backend *backend)
{
    return reflector_relist(backend->reflectors[FEED_PODS]);
}

bool backend_has_listed_pods(const struct backend *backend, uint64_t wanted)
{
    return reflector_has_listed(backend->reflectors[FEED_PODS], wanted);
}

/* All are told before the first is waited for. */
static void stop_reflectors(struct backend *backend)
{
    backend_stop_evicting(backend);
    g_clear_pointer(&backend->kueue, kueue_free);
    g_clear_pointer(&backend->usage, usage_source_free);
    if (backend->api_cluster)
        api_cluster_stop(backend->api_cluster);
    for (int feed = 0; feed < kinds_n; feed++) {
        if (backend->reflectors[feed])
            reflector_stop(backend->reflectors[feed]);
    }
    for (int feed = 0; feed < kinds_n; feed++)
        g_clear_pointer(&backend->reflectors[feed], reflector_free);
}

/* --- a snapshot ------------------------------------------------------------------------------- */

static bool add_pod(void *data, const char *body, size_t length, GString *reply, GError **error)
{
    return snapshot_add_pod(data, body, length, reply, error);
}

static bool delete_pod(void *data, const char *ns, const char *name, GError **error)
{
    return snapshot_delete_pod(data, ns, name, error);
}

static bool open_snapshot(struct backend *backend, GError **error)
{
    backend->snapshot = snapshot_cluster_new(config_section(backend->config, cluster)->snapshot,
                                             backend->store, error);
    if (!backend->snapshot)
        return fail_within(error, "option '--snapshot': ");
    backend->hooks = (struct snapshot_hooks){backend->snapshot, add_pod, delete_pod};
    return true;
}

/* --- either ----------------------------------------------------------------------------------- */

struct store_options backend_store_options(const struct config *config)
{
    const struct cluster_settings *cluster = config_section(config, cluster);
    const struct placing_settings *placing = config_section(config, placing);
    const struct binding_settings *binding = config_section(config, binding);
    const struct arrivals_settings *arrivals = config_section(config, arrivals);
    const struct quotas_settings *quotas = config_section(config, quotas);
    const struct gangs_settings *gangs = config_section(config, gangs);
    const struct reclaim_settings *reclaim = config_section(config, reclaim);

    return (struct store_options){
        .saved = *cluster->snapshot != '\0',
        .claims_on_nodes = *cluster->snapshot != '\0',
        .dialects = config_section(config, dialects)->options,
        .policy = &policies[placing->policy],
        .patience_ms = binding->patience_ms,
        .volume_bind_ms = binding->volume_timeout_ms,
        .wait_loss = placing->wait_loss,
        .hold_ms = arrivals->hold_ms,
        .n_places = arrivals->places,
        .parts = config->parts,
        .model_label = quotas->model_label,
        .pool_label = quotas->pool_label,
        .resource_quotas = quotas->hami,
        .elastic_quotas = quotas->elastic,
        .tree_namespaces = quotas->tree_namespaces,
        .gangs = gangs->on,
        .gang_room_ms = gangs->on ? gangs->keep_room_ms : 0,
        .gang_strict = gangs->on && gangs->strict,
        .reclaim = reclaim->on,
        .reclaim_uncontrolled = reclaim->uncontrolled,
        .lend_unreclaimable = reclaim->lend_unreclaimable,
        .reclaim_delay_ms = reclaim->delay_ms,
    };
}

struct backend *backend_open(const struct config *config, struct store *store, GError **error)
{
    struct backend *backend = g_new0(struct backend, 1);
    backend->config = config;
    backend->store = store;
    if (!(*config_section(config, cluster)->snapshot ? open_snapshot(backend, error)
                                                     : open_api(backend, error)))
        g_clear_pointer(&backend, backend_free);
    return backend;
}

struct cluster *backend_cluster(struct backend *backend)
{
    return backend->snapshot ? backend->snapshot : backend->limited;
}

const struct snapshot_hooks *backend_hooks(const struct backend *backend)
{
    return backend->snapshot ? &backend->hooks : NULL;
}

const char *backend_title(const struct backend *backend)
{
    return backend->snapshot ? config_section(backend->config, cluster)->snapshot
                             : api_client_config(backend->client)->server;
}

/* Room that claims keep; who may not read them, or where there are none, keeps none. What Nodes show is not asked:
 * commands end pods by what they find here. */
static void read_claims(struct backend *backend, struct store *store)
{
    const char *ns = config_section(backend->config, maintenance)->moves_namespace;
    struct claim_config_map map = {backend->client, ns && *ns ? ns : "kube-system"};
    g_auto(claim_file) file = {0};

    if (claim_config_map_files.read(&map, &file, NULL) != OUTCOME_OK || !file.version)
        return;
    g_autoptr(claim_sheet) sheet = claim_sheet_read(file.text, file.sum, NULL);
    if (sheet)
        store_apply_claims(store, sheet);
}

static bool list(struct backend *backend, enum feed feed, struct store *store, GError **error)
{
    struct cluster *cluster = backend_cluster(backend);

    return !store_wants(store, feed) ||
           cluster->ops->list(cluster, feed, store, error) == OUTCOME_OK;
}

/* Pods before nodes, lest one that is bound meanwhile to a card that is new seem to be on none. */
bool backend_read(struct backend *backend, struct store *store, GError **error)
{
    static const enum feed first[] = {FEED_PODS, FEED_CONFIGMAPS, FEED_NODES};

    for (size_t i = 0; i < G_N_ELEMENTS(first); i++) {
        if (!list(backend, first[i], store, error))
            return false;
    }
    for (int feed = FEED_CONFIGMAPS + 1; feed < kinds_n; feed++) {
        if (!kinds[feed]->unawaited && !list(backend, (enum feed)feed, store, error))
            return false;
    }
    if (!backend->snapshot && store_options(store)->elastic_quotas)
        read_claims(backend, store);
    return true;
}

bool backend_start(struct backend *backend, GError **error)
{
    return backend->snapshot || start_reflectors(backend, error);
}

bool backend_stop(struct backend *backend, GError **error)
{
    const char *file = config_section(backend->config, cluster)->snapshot_out;
    stop_reflectors(backend);
    if (!backend->snapshot || !*file)
        return true;
    if (snapshot_save(backend->snapshot, file, error))
        return true;
    return fail_within(error, "option '--snapshot-out': ");
}

void backend_free(struct backend *backend)
{
    if (!backend)
        return;
    stop_reflectors(backend);
    g_free(backend->limited);
    events_free(backend->events);
    api_cluster_free(backend->api_cluster);
    api_client_free(backend->client);
    if (backend->snapshot)
        snapshot_cluster_free(backend->snapshot);
    g_free(backend);
}
