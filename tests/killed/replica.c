/* SPDX-License-Identifier: Apache-2.0 */
#include "replica.h"

#include "../faults/net.h"
#include "../faults/sim.h"
#include "../prop/chance.h"
#include "api.h"

#include "kube/api_cluster.h"
#include "kube/events.h"
#include "verbs/sealer.h"

#define S INT64_C(1000000)

const struct scenario *scenario;

static GPtrArray *living; /* struct replica */
static char last_name = 'a' - 1;

/* --- whether it serves --------------------------------------------------------------------------- */

static uint64_t term(struct leadership *leadership)
{
    const struct replica *replica = (const struct replica *)leadership;

    return replica->serves ? (uint64_t)replica->name : 0;
}

static int64_t until_ms(struct leadership *leadership, uint64_t of)
{
    return of != 0 && term(leadership) == of ? INT64_MAX : 0;
}

static bool publish(struct leadership *leadership, uint64_t of, int64_t deadline_ms, GError **error)
{
    if (term(leadership) == of)
        return true;
    leadership_set_error(error);
    return false;
}

static const struct leadership_ops ops = {term, until_ms, publish};

/* --- its life ------------------------------------------------------------------------------------- */

static void keep_house(void *data)
{
    struct replica *replica = data;

    while (!replica->stopping) {
        if (store_is_synced(replica->store)) {
            extender_reconcile(&replica->extender, 5000);
            if (replica->serves && replica->options.seals)
                sealer_run(replica->store, replica->cluster);
            store_end_waits(replica->store);
            if (replica->serves)
                wake_run(replica->extender.wake, replica->store, replica->cluster);
        }
        sim_sleep(S);
    }
}

static struct kube_config *where(const struct replica *replica)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    config->source = g_strdup("test");
    config->ns = g_strdup(API_NS);
    config->server = g_strdup("https://server");
    config->token = g_strdup_printf("replica-%c", replica->name);
    return config;
}

static void begin(void *data)
{
    struct replica *replica = data;

    if (scenario->begin)
        scenario->begin(replica);
}

struct replica *replica_start(void)
{
    struct replica *replica = g_new0(struct replica, 1);

    if (!living)
        living = g_ptr_array_new();
    g_ptr_array_add(living, replica);
    last_name = last_name == 'z' ? 'a' : last_name + 1;
    replica->leadership.ops = &ops;
    replica->name = last_name;
    replica->serves = true;
    replica->options = (struct store_options){.policy = &policies[0], .patience_ms = 60000};
    if (scenario->options)
        scenario->options(&replica->options);
    replica->store = store_new(&replica->options);
    replica->client = api_client_new(where(replica), NULL);
    replica->cluster = api_cluster_new(replica->client);
    replica->events = events_start(replica->client, NULL, NULL);
    api_cluster_set_events(replica->cluster, replica->events);
    replica->extender = (struct extender){
        .store = replica->store,
        .cluster = replica->cluster,
        .leadership = &replica->leadership,
        .journal = journal_new(replica->store),
        .wake = wake_new(),
        .denials = denials_new("", false),
        .bind_timeout_ms = 27000,
    };
    for (int feed = FEED_BUDGETS; feed < FEED_N; feed++)
        store_list_begin(replica->store, (enum feed)feed);
    if (scenario->feed)
        scenario->feed(replica->store);
    for (int feed = FEED_BUDGETS; feed < FEED_N; feed++)
        store_list_end(replica->store, (enum feed)feed);
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        replica->reflectors[feed] = reflector_start(
            replica->client, replica->store, (enum feed)feed, &(struct reflector_options){0}, NULL);
    sim_spawn(keep_house, replica);
    sim_spawn(begin, replica);
    return replica;
}

static void free_replica(struct replica *replica)
{
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        reflector_free(replica->reflectors[feed]);
    wake_free(replica->extender.wake);
    denials_free(replica->extender.denials);
    journal_free(replica->extender.journal);
    api_cluster_free(replica->cluster);
    api_client_free(replica->client);
    store_free(replica->store);
    g_free(replica);
}

/* What its executors hold is lost, as the memory of a process would be. */
void replicas_kill(void)
{
    net_crash();
    sim_kill();
    for (guint i = 0; living && i < living->len; i++)
        free_replica(living->pdata[i]);
    sim_forget_threads();
    if (living)
        g_ptr_array_set_size(living, 0);
}

struct replica *replica_find(char name)
{
    for (guint i = 0; living && i < living->len; i++) {
        struct replica *replica = living->pdata[i];
        if (replica->name == name)
            return replica;
    }
    return NULL;
}

struct replica *replica_serving(void)
{
    for (guint i = 0; living && i < living->len; i++) {
        struct replica *replica = living->pdata[i];
        if (replica->serves)
            return replica;
    }
    return NULL;
}

void replica_depose(void)
{
    struct replica *replica = replica_serving();

    replica->serves = false;
    replica->deposed_us = sim_now_us();
    replica_start();
}
