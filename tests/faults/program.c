/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include "../prop/chance.h"
#include "dialect/classes/classes.h"
#include "net.h"
#include "scales.h"
#include "sim.h"

#include "verbs/revoker.h"
#include "verbs/sealer.h"
#include "inspect/views.h"
#include "kube/api_cluster.h"
#include "kube/reflector.h"

#include <cjson/cJSON.h>
#include <gpuledger/dialect.h>
#include <string.h>

#define MS 1000
#define S (1000 * MS)
#define CALL_AGAIN_US (2 * (int64_t)S)

static struct {
    struct program_options options;
    struct store_options store_options;
    struct store *store;
    struct api_client *client;
    struct cluster *cluster;
    struct extender extender;
    struct reflector *reflectors[FEED_BUDGETS];
    struct seals *seals; /* NULL: there is no key */
    bool stopping, scheduling;
    unsigned binding;
    char *token_file;
    GString *last; /* of filter's answers */
} program;
static struct program_counts counts;

/* What pods are expected only decides among cards with room; to work it out takes nearly all of the
 * time. */
void __wrap_gpuledger_demand_settle(struct demand *demand, struct ledger *ledger);

void __wrap_gpuledger_demand_settle(struct demand *demand, struct ledger *ledger)
{
}

const struct program_counts *program_counts(void)
{
    return &counts;
}

/* --- calls ---------------------------------------------------------------------------------- */

int program_filter(struct played_pod *pod)
{
    g_autoptr(GString) body = g_string_new(NULL), reply = g_string_new(NULL);
    int passing = 0;
    const cJSON *name;

    g_string_printf(body, "{\"Pod\":%s,\"Nodes\":null,\"NodeNames\":[", played_json(pod));
    for (int i = 0; i < PLAYED_NODES; i++) {
        if (played.nodes[i].version > 0)
            g_string_append_printf(body, "%s\"n%d\"", i ? "," : "", i);
    }
    g_string_append(body, "]}");
    counts.filters++;
    extender_filter(&program.extender, body->str, body->len, reply);
    cJSON *tree = cJSON_Parse(reply->str);
    const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "Error"));
    HOLDS(tree && error, "%s", reply->str);
    cJSON_ArrayForEach (name, cJSON_GetObjectItemCaseSensitive(tree, "NodeNames"))
        passing |= 1 << (cJSON_GetStringValue(name)[1] - '0');
    if (*error)
        passing = -1;
    sim_trace("filter %s/%s %s: %s", pod->ns, pod->name, pod->uid, reply->str);
    if (!program.last)
        program.last = g_string_new(NULL);
    g_string_assign(program.last, reply->str);
    cJSON_Delete(tree);
    return passing;
}

struct call {
    char ns[24], name[16], uid[32];
    int node, slot;
};

static struct call call_of(const struct played_pod *pod, int node)
{
    struct call call = {.node = node, .slot = pod->slot};

    memcpy(call.ns, pod->ns, sizeof call.ns);
    memcpy(call.name, pod->name, sizeof call.name);
    memcpy(call.uid, pod->uid, sizeof call.uid);
    return call;
}

static char *bind_call(const struct call *call)
{
    g_autofree char *text =
        g_strdup_printf("{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"%s\",\"Node\":"
                        "\"n%d\"}", call->name, call->ns, call->uid, call->node);
    g_autoptr(GString) reply = g_string_new(NULL);
    struct played_pod *pod = played_at((unsigned)call->slot);

    if (pod->exists && g_str_equal(pod->uid, call->uid) && store_is_synced(program.store))
        scales_note_bind(pod);
    counts.binds++;
    sim_trace("bind %s to n%d", call->uid, call->node);
    extender_bind(&program.extender, text, strlen(text), reply);
    cJSON *tree = cJSON_Parse(reply->str);
    char *error =
        g_strdup(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "Error")));
    HOLDS(error, "%s", reply->str);
    cJSON_Delete(tree);
    sim_trace("bind %s to n%d: '%s'", call->uid, call->node, error);
    if (!*error) {
        int bound = GPOINTER_TO_INT(g_hash_table_lookup(played.bound, call->uid)) - 1;
        HOLDS(bound == call->node, "bind says that %s is on n%d, it is on n%d", call->uid,
              call->node, bound);
        counts.bound++;
    }
    return error;
}

char *program_bind(const struct played_pod *pod, int node)
{
    const struct call call = call_of(pod, node);
    return bind_call(&call);
}

static void run_call(void *data)
{
    g_autofree struct call *call = data;

    program.binding++;
    g_free(bind_call(call));
    program.binding--;
}

void program_bind_later(const struct played_pod *pod, int node)
{
    struct call *call = g_new(struct call, 1);

    *call = call_of(pod, node);
    sim_spawn(run_call, call);
}

unsigned program_binding(void)
{
    return program.binding;
}

const char *program_last(void)
{
    return program.last ? program.last->str : "";
}

char *program_node(int node)
{
    GString *text = g_string_new(NULL);

    view_nodes(program.store, played.nodes[node].name, text);
    return g_string_free(text, FALSE);
}

bool program_is_synced(void)
{
    return store_is_synced(program.store);
}

static bool is_record(const char *key)
{
    if (g_str_has_prefix(key, "gpuledger.io/seal")) /* whatever the dialect */
        return true;
    for (size_t i = 0; dialects[i]; i++) {
        for (const char *const *at = dialects[i]->records; at && *at; at++) {
            const bool prefix = g_str_has_suffix(*at, "*");
            if (prefix ? strncmp(key, *at, strlen(*at) - 1) == 0 : g_str_equal(key, *at))
                return true;
        }
    }
    return false;
}

void program_check_words(const struct played_pod *pod)
{
    for (unsigned i = 0; i < pod->grant.n; i++)
        HOLDS(is_record(pod->grant.items[i].key), "a Binding has '%s', which no dialect guards",
              pod->grant.items[i].key);
}

/* --- a kube-scheduler ----------------------------------------------------------------------- */

static bool asks(const struct played_pod *pod)
{
    return played_lives(pod) && pod->node < 0 && !pod->terminating && !pod->gated &&
           !pod->elsewhere && !pod->quiet && !pod->scheduler;
}

static void schedule_one(struct played_pod *pod)
{
    int passing = program_filter(pod);
    unsigned from = chance_below(PLAYED_NODES);

    for (unsigned i = 0; passing > 0 && i < PLAYED_NODES; i++) {
        int node = (int)((from + i) % PLAYED_NODES);
        if (passing >> node & 1) {
            program_bind_later(pod, node);
            return;
        }
    }
}

static void run_scheduler(void *data)
{
    while (!program.stopping) {
        sim_sleep(chance_below(200 * MS));
        unsigned n = played_n();
        if (!program.scheduling || n == 0 || sim_alive() > 60)
            continue;
        unsigned from = chance_below(n);
        for (unsigned i = 0; i < n; i++) {
            struct played_pod *pod = played_at((from + i) % n);
            if (!asks(pod) || sim_now_us() < pod->not_before_us)
                continue;
            pod->not_before_us = sim_now_us() + chance_between(1, 8) * S;
            schedule_one(pod);
            break;
        }
    }
}

void program_schedule(bool goes_on)
{
    program.scheduling = goes_on;
}

/* --- its life ------------------------------------------------------------------------------- */

static void keep_house(void *data)
{
    while (!program.stopping) {
        if (store_is_synced(program.store)) {
            extender_reconcile(&program.extender, 5000);
            sealer_run(program.store, program.cluster);
            revoker_run(program.store, program.cluster);
            store_end_waits(program.store);
            wake_run(program.extender.wake, program.store, program.cluster);
        }
        sim_sleep(S);
    }
}

void program_init(const char *directory)
{
    program.token_file = g_build_filename(directory, "token", NULL);
    HOLDS(g_file_set_contents(program.token_file, "token-0\n", -1, NULL), "%s", program.token_file);
}

static struct kube_config *where(void)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    config->source = g_strdup("test");
    config->ns = g_strdup("default");
    config->server = g_strdup("https://server");
    config->token_file = g_strdup(program.token_file);
    return config;
}

static struct seals *make_seals(void)
{
    static const char text[] =
        "key 00000001 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1\n"
        "adopted 1\n";
    struct seals *seals = seals_new();

    seals_set(seals, keyring_parse(text, NULL));
    return seals;
}

/* The same for ever, as they are when a program starts. */
static struct classes *classes(void)
{
    static struct classes *all;

    if (!all) {
        cJSON *json = cJSON_Parse("{\"training\":{\"group\":\"optional\",\"namespaces\":[\"lab\"],"
                                  "\"priority-classes\":[\"batch\"]},"
                                  "\"interactive\":{\"priority-classes\":[\"chat\"]}}");
        all = classes_read(json, NULL);
        cJSON_Delete(json);
    }
    HOLDS(all, "no classes");
    return program.options.classed ? all : NULL;
}

static void start(void)
{
    const struct program_options *options = &program.options;

    played.run++;
    memset(server.known, 0, sizeof server.known);
    for (unsigned i = 0; i < played_n(); i++)
        played_at(i)->known = -1;
    program.stopping = false;
    program.binding = 0;
    played.sealed = options->sealed;
    played.classed = options->classed;
    program.seals = options->sealed ? make_seals() : NULL;
    program.store_options =
        (struct store_options){.seals = program.seals,
                               .policy = policy_find(options->policy ? options->policy : "binpack"),
                               .dialects.classes = classes(),
                               .dialects.nvidia_memory_guard = options->memory_guard,
                               .patience_ms = options->patience_ms,
                               .hold_ms = options->hold_ms,
                               .n_places = options->n_places};
    program.store = store_new(&program.store_options);
    program.client = api_client_new(where(), NULL);
    program.cluster = api_cluster_new(program.client);
    program.extender = (struct extender){
        .store = program.store,
        .cluster = program.cluster,
        .wake = wake_new(),
        .denials = denials_new("", false),
        .bind_timeout_ms = options->bind_timeout_ms > 0 ? options->bind_timeout_ms : 27000,
    };
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        program.reflectors[feed] = reflector_start(program.client, program.store, (enum feed)feed,
                                                   &(struct reflector_options){0}, NULL);
    sim_spawn(run_scheduler, NULL);
    sim_spawn(keep_house, NULL);
}

void program_start(const struct program_options *options)
{
    program.options = *options;
    start();
}

static void free_program(void)
{
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        g_clear_pointer(&program.reflectors[feed], reflector_free);
    wake_free(program.extender.wake);
    denials_free(program.extender.denials);
    api_cluster_free(program.cluster);
    api_client_free(program.client);
    store_free(program.store);
    g_clear_pointer(&program.seals, seals_free);
}

void program_kill(void)
{
    sim_trace("crash");
    counts.crashes++;
    net_crash();
    sim_kill();
    free_program();
}

void program_start_again(void)
{
    start();
}

void program_crash(void)
{
    program_kill();
    program_start_again();
}

void program_end(void)
{
    program.stopping = true;
    for (int feed = 0; feed < FEED_BUDGETS; feed++)
        reflector_stop(program.reflectors[feed]);
    while (sim_alive() > 0)
        HOLDS(sim_step(SIM_FOREVER), "stuck");
    free_program();
}

void program_let_pass(int64_t us)
{
    int64_t until_us = sim_now_us() + us;

    while (sim_now_us() < until_us)
        sim_step(until_us);
}

struct errand {
    void (*run)(void *data);
    void *data;
    bool done;
};

static void run_errand(void *data)
{
    struct errand *errand = data;

    errand->run(errand->data);
    errand->done = true;
}

void program_run(void (*run)(void *data), void *data)
{
    struct errand errand = {run, data, false};

    sim_spawn(run_errand, &errand);
    while (!errand.done)
        HOLDS(sim_step(SIM_FOREVER), "stuck");
}
