/* SPDX-License-Identifier: Apache-2.0 */
#include "core/fail.h"
#include "core/ledger.h"
#include "dialect/amounts.h"
#include "dialect/annotations.h"
#include "dialect/marks/card_order.h"
#include "dialect/classes/classes.h"
#include "dialect/conditions.h"
#include "dialect/discovery.h"
#include "dialect/hold.h"
#include "dialect/marks/node_marks.h"
#include "dialect/rows.h"
#include "dialect/warning.h"

#include <gpuledger/links.h>
#include <gpuledger/mig.h>
#include <gpuledger/quantity.h>
#include <string.h>

/* A resource of the pod that the one dialect reads and the other does not, or NULL. */
static const char *find_own(const struct pod_view *view, const struct dialect *one,
                            const struct dialect *other)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        const struct string_pairs *all[] = {&container->limits, &container->requests};
        for (size_t j = 0; j < G_N_ELEMENTS(all); j++) {
            for (size_t k = 0; k < all[j]->n; k++) {
                const char *resource = all[j]->items[k].key;
                if (dialect_reads(one, resource) && !dialect_reads(other, resource) &&
                    amount_asks(all[j]->items[k].value))
                    return resource;
            }
        }
    }
    return NULL;
}

static bool reads_the_same(const struct pod_view *view, const struct dialect *one,
                           const struct dialect *other, GError **error)
{
    const char *left = find_own(view, one, other), *right = find_own(view, other, one);

    if (one == other || (!left && !right))
        return true;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "the pod asks for GPUs in two ways, '%s' (%s) and '%s' (%s): keep one",
                     left ? left : one->resources[0], one->title,
                     right ? right : other->resources[0], other->title);
}

/* The other reads some of the resources that the one reads, and nothing beside them. */
static bool reads_a_part(const struct pod_view *view, const struct dialect *one,
                         const struct dialect *other)
{
    return find_own(view, one, other) && !find_own(view, other, one);
}

/* What the administrator wants of every pod. */
static void add_tenant(const struct pod_view *view, const struct dialect_options *options,
                       struct request *request)
{
    request->isolation =
        request->terms && request->terms->unlimited ? ISOLATION_NONE : request->dialect->isolation;
    if (options->tenant_isolation == ISOLATION_NONE)
        return;
    if (!request->terms)
        request->terms = terms_new();
    request->terms->tenant = g_strdup(view->ns);
    request->terms->tenant_isolation = (enum isolation)options->tenant_isolation;
}

struct request *dialect_read_request(const struct pod_view *view,
                                     const struct dialect_options *options, GError **error)
{
    g_autoptr(request) first = NULL;
    struct request **end = &first;

    if (view->unread) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID, "%s", view->unread);
        return NULL;
    }
    if (view->truncated) {
        g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_LIMIT,
                    "field 'spec.containers': the pod has more than %zu containers",
                    view->n_containers);
        return NULL;
    }
    for (size_t i = 0; dialects[i]; i++) {
        GError *failure = NULL;
        struct request *request = dialects[i]->read_request(view, options, &failure);
        if (failure) {
            g_propagate_error(error, failure);
            return NULL;
        }
        if (!request)
            continue;
        if (first && reads_a_part(view, first->dialect, request->dialect)) {
            request_free(request); /* its node side would not see all that the pod asks for */
            continue;
        }
        request->host = host_of_pod(view);
        request->lasts_s = pod_view_lasts(view);
        request->annotations = annotations_left(view, request->dialect);
        *end = request;
        end = &request->alternative;
        if (!reads_the_same(view, first->dialect, request->dialect, error) ||
            !conditions_read(view, &request->terms, error) ||
            !classes_apply(options->classes, view, request, error))
            return NULL;
        add_tenant(view, options, request);
    }
    return g_steal_pointer(&first);
}

/* Unix time, 0 if it cannot be read. */
static int64_t read_time(const char *text)
{
    g_autoptr(GTimeZone) utc = text ? g_time_zone_new_utc() : NULL;
    g_autoptr(GDateTime) time = text ? g_date_time_new_from_iso8601(text, utc) : NULL;

    return time ? g_date_time_to_unix(time) : 0;
}

/* Whether some container asks for a resource that both read. */
static bool share_resources(const struct pod_view *view, const struct dialect *one,
                            const struct dialect *other)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        const struct string_pairs *all[] = {&container->limits, &container->requests};
        for (size_t j = 0; j < G_N_ELEMENTS(all); j++) {
            for (size_t k = 0; k < all[j]->n; k++) {
                const char *resource = all[j]->items[k].key;
                if (dialect_reads(one, resource) && dialect_reads(other, resource) &&
                    amount_asks(container_view_amount(container, resource)))
                    return true;
            }
        }
    }
    return false;
}

/* The pod holds devices that kubelet hands out by count: the row's reading of these, else NULL. */
static struct allocation *read_devices(const struct pod_view *view, const struct dialect *dialect,
                                       const struct dialect_options *options)
{
    g_autofree char *warning = NULL;
    g_autoptr(allocation) read = dialect->read_allocation(view, options, &warning);

    return read && read->n_shares > 0 && read->shares[0].device ? g_steal_pointer(&read) : NULL;
}

/* Whether kubelet gives devices by count to whoever names the resource. */
static bool names_devices(const struct pod_view *view, const char *resource,
                          const struct dialect_options *options)
{
    const struct string_pair one = {resource, "1"};
    const struct container_view container = {.name = "", .limits = {&one, 1}};
    struct pod_view probe = *view;
    bool found = false;

    probe.containers = &container;
    probe.n_containers = 1;
    for (size_t i = 0; dialects[i] && !found; i++) {
        g_autoptr(allocation) read = read_devices(&probe, dialects[i], options);
        found = read;
    }
    return found;
}

/* Resources whose amounts cannot be read. */
struct unread {
    const struct dialect *dialect; /* that reads the first of them; NULL: there are none */
    const char *resource;
    bool devices;                  /* how many devices of some pool is not known */
};

static void note_unread(const struct pod_view *view, const struct string_pair *pair,
                        const struct dialect_options *options, struct unread *unread)
{
    int64_t amount;

    for (size_t i = 0; dialects[i]; i++) {
        if (!dialect_reads(dialects[i], pair->key) || quantity_parse(pair->value, &amount, NULL))
            continue;
        if (!unread->dialect) {
            unread->dialect = dialects[i];
            unread->resource = pair->key;
        }
        unread->devices = unread->devices || names_devices(view, pair->key, options);
        return;
    }
}

static struct unread find_unread(const struct pod_view *view, const struct dialect_options *options)
{
    struct unread unread = {.devices = view->truncated};

    for (size_t i = 0; i < view->n_containers; i++) {
        const struct container_view *container = &view->containers[i];
        const struct string_pairs *all[] = {&container->limits, &container->requests};
        for (size_t j = 0; j < G_N_ELEMENTS(all); j++) {
            for (size_t k = 0; k < all[j]->n; k++)
                note_unread(view, &all[j]->items[k], options, &unread);
        }
    }
    return unread;
}

/* All that was read of the pod, with what another row has read; NULL gives the other. */
static struct allocation *join(const struct pod_view *view, struct allocation *take_all,
                               struct allocation *take_other, char **ret_warning)
{
    struct allocation *both;

    if (!take_all || !take_other)
        return take_all ? take_all : take_other;
    const struct dialect *dialect = take_all->dialect;
    both = allocation_join(take_all, take_other);
    return both ? both
                : dialect_hold_all(dialect, view, true,
                                   g_strdup("asks for GPUs in too many ways to tell them apart"),
                                   ret_warning);
}

/* Of a pod of which something cannot be read at all: it may be any amount, of whatever dialect. But
 * kubelet gives devices by count only to who names their resource, so those that can be read count
 * as they are. */
static struct allocation *hold_unread(const struct pod_view *view,
                                      const struct dialect_options *options, char **ret_warning)
{
    const struct unread unread = find_unread(view, options);
    struct allocation *all;

    if (!unread.dialect && !view->truncated)
        return NULL;
    all = dialect_hold_all(
        unread.dialect ? unread.dialect : dialects[0], view, unread.devices,
        unread.dialect
            ? g_strdup_printf("its amount of '%.64s' cannot be read: it holds all that it may be",
                              unread.resource)
        : view->unread
            ? g_strdup_printf("cannot be read (%.200s): it holds all that it may be", view->unread)
            : g_strdup_printf("has more than %zu containers, which are not read: it holds all that "
                              "these may hold",
                              view->n_containers),
        ret_warning);
    for (size_t i = 0; !unread.devices && dialects[i]; i++)
        all = join(view, all, read_devices(view, dialects[i], options), ret_warning);
    return all;
}

/* Who asks for the same resources in the words of several rows is served by one of them; who is only
 * counted has its part beside that. */
static void find_alternatives(const struct pod_view *view, struct allocation **readings)
{
    for (size_t i = 0; i < dialects_n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (readings[i] && readings[j] && dialects[i]->refuse && dialects[j]->refuse &&
                share_resources(view, dialects[i], dialects[j]))
                readings[i]->alternative = readings[j]->alternative = true;
        }
    }
}

/* The first warning; not that one row finds no mark of its own, where another finds its own. */
static void pass_warning(struct allocation *const *readings, char **warnings, char **ret_warning)
{
    bool marked = false;

    for (size_t i = 0; i < dialects_n; i++)
        marked |= readings[i] && readings[i]->alternative &&
                  readings[i]->dialect->names_cards && readings[i]->distrust != DISTRUST_UNMARKED;
    for (size_t i = 0; i < dialects_n; i++) {
        const bool idle = marked && readings[i] && readings[i]->alternative &&
                          readings[i]->distrust == DISTRUST_UNMARKED;
        if (warnings[i] && !idle)
            warn(ret_warning, g_steal_pointer(&warnings[i]));
        g_free(warnings[i]);
    }
}

static struct allocation *read_all(const struct pod_view *view,
                                   const struct dialect_options *options, char **ret_warning)
{
    struct allocation *readings[DIALECTS_MAX] = {NULL}, *all = NULL;
    char *warnings[DIALECTS_MAX] = {NULL};

    for (size_t i = 0; i < dialects_n; i++) {
        readings[i] = dialects[i]->read_allocation(view, options, &warnings[i]);
        if (readings[i])
            readings[i]->heeded |= readings[i]->waiting;
    }
    find_alternatives(view, readings);
    pass_warning(readings, warnings, ret_warning);
    /* The last row first: what is told of the pod before it is on a node is what says the most. */
    for (size_t i = dialects_n; i-- > 0;)
        all = join(view, all, readings[i], ret_warning);
    return all;
}

/* Older records say only that it has started: then it counts as of its creation. */
static int64_t started_of(const struct pod_view *view, int64_t created_s)
{
    const int64_t started_s = read_time(view->started_at);

    return started_s > 0 || !view->started ? started_s : created_s;
}

struct allocation *dialect_read_allocation(const struct pod_view *view,
                                           const struct dialect_options *options,
                                           char **ret_warning)
{
    struct allocation *all = hold_unread(view, options, ret_warning);

    /* Who holds all that there is holds nothing beside it. */
    if (!all)
        all = read_all(view, options, ret_warning);
    if (!all)
        return NULL;
    all->host = host_of_pod(view);
    all->priority = view->priority;
    all->created_s = read_time(view->created);
    all->started_s = started_of(view, all->created_s);
    all->terminating = view->terminating;
    all->work_class = classes_of_bound(options->classes, view, ret_warning);
    all->replica_of = classes_replica_of(all->work_class, view);
    all->oversubscribes = classes_oversubscribe(all->work_class, view);
    return all;
}

static void merge_cards(struct topology *topology, const struct topology *other)
{
    for (int32_t i = 0; i < topology->n_cards; i++) {
        struct topology_card *card = &topology->cards[i];
        const struct topology_card *said = &other->cards[i];
        if (said->memory > 0)
            card->memory = card->memory > 0 ? MIN(card->memory, said->memory) : said->memory;
        card->physical = card->physical ? card->physical : said->physical;
        card->core = card->core ? card->core : said->core;
        card->slots = card->slots ? card->slots : said->slots;
        card->numa = card->numa ? card->numa : said->numa;
        if (card->multiprocessors == 0)
            card->multiprocessors = said->multiprocessors;
        card->unhealthy |= said->unhealthy;
        card->closure = card->closure ? card->closure : said->closure;
        if (!card->uuid && said->uuid)
            card->uuid = topology_keep(topology, said->uuid);
        if (!card->model && said->model)
            card->model = topology_keep(topology, said->model);
        if (!card->mode && said->mode)
            card->mode = topology_keep(topology, said->mode);
        if (!card->mig)
            card->mig = mig_profiles_ref(said->mig);
    }
}

/* Adds what another dialect says of the node, if the two can be of one node. */
static void merge_topology(struct topology *topology, const struct topology *other,
                           char **ret_warning)
{
    const bool first_cards = topology->n_cards == 0;
    /* Koordinator's capacity leaves out cards that are not well. Source:
     * koordinator-sh/koordinator@a7a1b76b:
     * pkg/slo-controller/noderesource/plugins/gpudeviceresource/plugin.go */
    const bool fewer = other->dialect->write_seen && other->n_cards < topology->n_cards;

    if ((!first_cards && other->n_cards > 0 && topology->n_cards != other->n_cards && !fewer) ||
        topology->n_dialects == NODE_DIALECTS_MAX ||
        topology->n_pools + other->n_pools > NODE_POOLS_MAX) {
        g_free(*ret_warning);
        *ret_warning = g_strdup_printf("has %d GPUs as %s, but %d as %s, which is ignored",
                                       topology->n_cards, topology->dialect->title, other->n_cards,
                                       other->dialect->title);
        return;
    }
    topology->dialects[topology->n_dialects++] = other->dialect;
    topology->compute = topology->compute ? topology->compute : other->compute;
    topology->driver = topology->driver ? topology->driver : other->driver;
    topology->policy = topology->policy ? topology->policy : other->policy;
    /* Who does not count in it only shows amounts in it. */
    if (other->dialect->node_units)
        topology->memory_unit = other->memory_unit;
    if (first_cards) {
        topology->n_cards = other->n_cards;
        memset(topology->cards, 0, sizeof topology->cards);
        for (int32_t i = 0; i < other->n_cards; i++)
            topology->cards[i].memory = AMOUNT_BYTES_MAX;
    }
    if (other->n_cards > 0 && !fewer)
        merge_cards(topology, other);
    if (!topology->links)
        topology->links = links_ref(other->links);
    for (int32_t i = 0; i < other->n_pools; i++) {
        struct pool *pool = &topology->pools[topology->n_pools++];
        *pool = other->pools[i];
        pool->resource = topology_keep(topology, pool->resource);
        pool->model = topology_keep(topology, pool->model);
    }
}

/* A pod's words are looked for in it, under the store's lock. */
static void bound_text(struct topology *topology, const char **text, char **ret_warning)
{
    g_autofree char *begin = NULL;

    if (!*text || strlen(*text) <= CARD_TEXT_MAX)
        return;
    begin = g_strndup(*text, CARD_TEXT_MAX);
    *text = topology_keep(topology, begin);
    warn(ret_warning, g_strdup_printf("has a GPU whose model or mode has more than %d bytes; the "
                                      "rest is not read",
                                      CARD_TEXT_MAX));
}

static void bound_texts(struct topology *topology, char **ret_warning)
{
    for (int32_t i = 0; i < topology->n_cards; i++) {
        bound_text(topology, &topology->cards[i].model, ret_warning);
        bound_text(topology, &topology->cards[i].mode, ret_warning);
    }
}

/* Which of the pools give parts of cards that others may have parts of. */
static void mark_sliced(struct topology *topology)
{
    struct instance_size size;

    for (int32_t i = 0; i < topology->n_pools; i++)
        topology->pools[i].sliced = dialect_read_instance(topology->pools[i].resource, &size);
}

static bool asks_in(const struct pod_view *view, const struct dialect *dialect)
{
    for (size_t i = 0; i < view->n_containers; i++) {
        for (size_t j = 0; j < view->containers[i].limits.n; j++) {
            const struct string_pair *pair = &view->containers[i].limits.items[j];
            if (dialect_reads(dialect, pair->key) && amount_asks(pair->value))
                return true;
        }
    }
    return false;
}

bool dialect_read_promise(const struct dialect *dialect, const struct pod_view *view,
                          struct device_promise *ret_promise, bool *ret_awaited)
{
    if (!dialect->read_promise || !dialect->read_promise(view, ret_promise))
        return false;
    *ret_awaited = pod_view_is_bound(view) && g_str_equal(view->node_name, ret_promise->node) &&
                   (!view->phase || g_str_equal(view->phase, "Pending")) && !view->started &&
                   (view->truncated || asks_in(view, dialect));
    return true;
}

static bool offers(const struct topology *topology, const struct dialect *dialect)
{
    for (int32_t i = 0; i < topology->n_dialects; i++) {
        if (topology->dialects[i] == dialect)
            return true;
    }
    return false;
}

static bool is_offered(const struct topology *topology, const char *resource)
{
    for (int32_t i = 0; i < topology->n_dialects; i++) {
        if (dialect_reads(topology->dialects[i], resource))
            return true;
    }
    return false;
}

static bool names_its_own(const struct node_view *view, const struct topology *topology,
                          const struct dialect *dialect)
{
    for (size_t i = 0; i < view->capacity.n; i++) {
        if (dialect_reads(dialect, view->capacity.items[i].key) &&
            !is_offered(topology, view->capacity.items[i].key))
            return true;
    }
    return false;
}

/* Whose plugins have gone, or are ignored. kubelet goes on naming what they had registered; of what it
 * has never had it gives nothing, so that nobody holds it. */
static void note_away(const struct node_view *view, const struct dialect_options *options,
                      struct topology *topology)
{
    for (size_t i = 0; dialects[i] && topology->n_away < NODE_AWAY_MAX; i++) {
        if (offers(topology, dialects[i]) || !names_its_own(view, topology, dialects[i]))
            continue;
        topology->away[topology->n_away++] = dialects[i];
        if (dialects[i]->node_units) {
            topology->absent.dialect = dialects[i];
            dialects[i]->read_sketch(view, options, &topology->absent);
        }
    }
}

/* NVIDIA's own plugin gives devices of a resource that vGPU plugins report as well. */
static void note_replaced(struct topology *topology)
{
    for (size_t i = 0; dialects[i] && !topology->replaced; i++) {
        const struct dialect *dialect = dialects[i];
        if (dialect->refuse && !dialect->names_cards && !offers(topology, dialect) &&
            is_offered(topology, dialect->resources[0]))
            topology->replaced = dialect;
    }
}

struct survey {
    const struct node_view *view;
    const struct dialect_options *options;
    struct topology *topology;
    bool claimed;
};

/* Adds what one dialect says of the node. False: what it says cannot be understood, and is the first. */
static bool add_topology(struct survey *survey, const struct dialect *dialect, char **ret_warning,
                         GError **error)
{
    g_autoptr(topology) other = survey->claimed ? topology_new() : NULL;
    struct topology *topology = other ? other : survey->topology, *all = survey->topology;
    g_autofree char *warning = NULL;
    g_autoptr(GError) failure = NULL;
    const bool claims =
        dialect->read_topology(survey->view, survey->options, topology, &warning, &failure);

    if (failure && !survey->claimed) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (claims && other)
        merge_topology(all, other, &warning);
    else if (claims)
        all->dialects[all->n_dialects++] = all->dialect;
    survey->claimed |= claims;
    if (ret_warning && !*ret_warning && (failure || warning))
        *ret_warning = g_strdup(failure ? failure->message : warning);
    return true;
}

bool dialect_read_topology(const struct node_view *view, const struct dialect_options *options,
                           struct topology *ret_topology, char **ret_warning, GError **error)
{
    struct survey survey = {view, options, ret_topology, false};

    for (int own = 0; own < 2; own++) {
        for (size_t i = 0; dialects[i]; i++) {
            if (dialects[i]->own_cards == own && (!own || ret_topology->n_cards == 0) &&
                !add_topology(&survey, dialects[i], ret_warning, error))
                return false;
        }
    }
    if (survey.claimed) {
        ret_topology->host = host_of_node(view);
        discovery_apply(view, ret_topology);
        node_marks_apply(view, ret_topology, ret_warning);
        card_order_apply(view, ret_topology, ret_warning);
        bound_texts(ret_topology, ret_warning);
        mark_sliced(ret_topology);
        note_away(view, options, ret_topology);
        note_replaced(ret_topology);
    }
    return survey.claimed;
}
