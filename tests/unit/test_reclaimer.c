/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two replicas and one cluster: a borrows, b wants its own. What the ConfigMap of claims says is all that one replica
 * knows of the other.
 */
#include "fake_claims.h"
#include "objects.h"
#include "fake_server.h"
#include "literals.h"
#include "suite.h"

#include "base/metrics.h"
#include "evict/eviction.h"
#include "reclaim/reclaimer.h"
#include "wire/claim.h"
#include "wire/plan_mark.h"

#include <string.h>

#define MEM "aliyun.com/gpu-mem"
#define GPUS "gpuledger.io/gpus"
#define SECOND_MS 1000
#define PODS 3 /* a0 and a1 hold the node's two cards, b0 waits */

struct replica {
    struct store *store;
    struct reclaimer *reclaimer;
};
static struct replica first, second;
static struct moment moment;
static int64_t at_once, per_minute;
static int64_t hold_ms; /* for which older pods are waited for */
static char *claims;    /* on the Node, as the ConfigMap has them */
static char *shown;     /* by the Node's annotation */
static unsigned version;
static bool ending[PODS], gone[PODS];
static unsigned n_tried, n_dry, n_evicted;
static int which;
static void (*at_read)(void); /* happens when a pod is read; NULL: nothing */
static enum eviction answer;  /* to evictions that are meant */

static const char *const names[PODS] = {"a0", "a1", "b0"};

static struct pod_view view_of(struct json_arena *arena, int number)
{
    const char *words[][2] = {{"ALIYUN_COM_GPU_MEM_IDX", number == 0 ? "0" : "1"},
                              {"ALIYUN_COM_GPU_MEM_POD", "10"},
                              {"ALIYUN_COM_GPU_MEM_DEV", "10"},
                              {"ALIYUN_COM_GPU_MEM_ASSIGNED", "true"},
                              {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1"}};
    struct string_pair *pairs = json_arena_alloc(arena, G_N_ELEMENTS(words) * sizeof *pairs);
    struct string_pair *limit = json_arena_alloc(arena, sizeof *limit);
    struct container_view *container = json_arena_alloc(arena, sizeof *container);
    const bool bound = number < 2;

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++)
        pairs[i] = (struct string_pair){words[i][0], words[i][1]};
    *limit = (struct string_pair){MEM, "10"};
    *container = (struct container_view){.name = "c", .limits = {limit, 1}};
    return (struct pod_view){
        .ns = bound ? "a" : "b",
        .name = names[number],
        .uid = names[number],
        .node_name = bound ? "n" : NULL,
        .phase = bound ? "Running" : "Pending",
        .created = "2026-01-02T00:00:00Z",
        .annotations = {pairs, bound ? G_N_ELEMENTS(words) : 0},
        .terminating = ending[number],
        .containers = container,
        .n_containers = 1,
    };
}

static void tell(struct replica *replica)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const struct string_pair note = {CLAIM_KEY, shown};

    store_apply_node(
        replica->store,
        &(struct node_view){.name = "n",
                            .annotations = {&note, shown != NULL},
                            .capacity = PAIRS({MEM, "20"}, {"aliyun.com/gpu-count", "2"}),
                            .allocatable = PAIRS({MEM, "20"}, {"aliyun.com/gpu-count", "2"})});
    for (int i = 0; i < PODS; i++) {
        const struct pod_view view = view_of(arena, i);
        if (gone[i])
            store_delete_pod(replica->store, names[i]);
        else
            store_apply_pod(replica->store, &view);
    }
}

/* --- the cluster ---------------------------------------------------------------------------------- */

static enum outcome get_node(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error)
{
    struct string_pair *pair = json_arena_alloc(arena, sizeof *pair);

    *pair = (struct string_pair){CLAIM_KEY, shown};
    *ret_node = (struct node_view){.name = name, .annotations = {pair, shown != NULL}};
    return OUTCOME_OK;
}

static enum outcome annotate_node(struct cluster *cluster, const struct node_annotation *annotation,
                                  int64_t deadline_ms, GError **error)
{
    g_free(shown);
    shown = g_strdup(annotation->value);
    version++;
    return OUTCOME_OK;
}

static void note_written(void)
{
    g_free(claims);
    claims = fake_claims_on("n");
}

static enum outcome get_pod(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error)
{
    if (at_read)
        at_read();
    for (int i = 0; i < PODS; i++) {
        if (!g_str_equal(names[i], name) || gone[i])
            continue;
        *ret_pod = view_of(arena, i);
        return OUTCOME_OK;
    }
    return OUTCOME_NOT_FOUND;
}

static const struct cluster_ops ops = {
    .name = "table", .get_pod = get_pod, .get_node = get_node, .annotate_node = annotate_node};
static struct cluster cluster = {&ops};

static enum eviction evict(void *data, const struct evictee *evictee, bool try, GError **error)
{
    n_dry += try;
    if (try)
        return EVICTION_DONE;
    n_tried++;
    if (answer != EVICTION_DONE) {
        g_set_error(error, g_quark_from_static_string("test"), 0, "no");
        return answer;
    }
    n_evicted++;
    for (int i = 0; i < PODS; i++)
        ending[i] |= g_str_equal(names[i], evictee->uid);
    return EVICTION_DONE;
}

/* --- replicas ------------------------------------------------------------------------------------- */

static struct reclaimer *new_reclaimer(struct store *store, struct permits *permits)
{
    return reclaimer_new(&(struct reclaimer_args){
        .store = store,
        .cluster = &cluster,
        .files = &fake_claims_files,
        .permits = permits,
        .evict = evict,
        .options = {.delay_ms = 3 * SECOND_MS, .at_once = at_once, .per_minute = per_minute},
    });
}

static void begin(struct replica *replica)
{
    replica->store = store_new(&(struct store_options){.policy = &policies[0],
                                                       .patience_ms = 60000,
                                                       .elastic_quotas = true,
                                                       .reclaim = true,
                                                       .reclaim_uncontrolled = true,
                                                       .hold_ms = hold_ms,
                                                       .silent = true});
    store_set_moment(replica->store, &moment);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(replica->store, (enum feed)feed);
    for (int i = 0; i < 2; i++)
        store_put_quota(replica->store, &(struct resource_quota_view){.ns = i ? "b" : "a",
                                                                      .name = "q",
                                                                      .elastic = true,
                                                                      .min = PAIRS({GPUS, "1"})});
    tell(replica);
    replica->reclaimer = new_reclaimer(replica->store, NULL);
}

static void finish_lists(struct replica *replica)
{
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(replica->store, (enum feed)feed);
}

/* So many seconds, in which the watches show everything to both and one of them looks. */
static void pass(struct replica *looks, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        moment.now_ms += SECOND_MS;
        moment.now_ns += INT64_C(1000000) * SECOND_MS;
        tell(&first);
        tell(&second);
        reclaimer_look(looks->reclaimer);
    }
}

static void setup(void)
{
    moment = (struct moment){.now_ns = INT64_C(1764100000000000000), .now_ms = 1000000};
    memset(ending, 0, sizeof ending);
    memset(gone, 0, sizeof gone);
    n_tried = n_dry = n_evicted = 0;
    answer = EVICTION_DONE;
    fake_claims.written = note_written;
    at_once = per_minute = 10;
    begin(&first);
    begin(&second);
    finish_lists(&first);
    finish_lists(&second);
}

static void teardown(void)
{
    reclaimer_free(first.reclaimer);
    reclaimer_free(second.reclaimer);
    store_free(first.store);
    store_free(second.store);
    g_clear_pointer(&claims, g_free);
    g_clear_pointer(&shown, g_free);
    fake_claims_reset();
}

/* Beside those that are over. */
static guint n_claims(void)
{
    g_autoptr(GPtrArray) read = claims_decode(claims, NULL);
    guint n = 0;

    for (guint i = 0; i < read->len; i++)
        n += !claim_is_over(read->pdata[i]);
    return n;
}

/* The claim is written, and nobody is evicted yet. */
static void claim_only(void)
{
    answer = EVICTION_LATER;
    for (int i = 0; i < 10 && n_claims() == 0; i++)
        pass(&first, 1);
    ck_assert_uint_eq(n_claims(), 1);
    ck_assert_uint_eq(n_evicted, 0);
}

static unsigned n_reads;

static void count_read(void)
{
    n_reads++;
}

/* It says what would be taken back, and nothing else. */
START_TEST(what_only_observes_claims_nothing)
{
    const unsigned cell = ENDER_RECLAIM * EVICTION_OUTCOME_N + EVICTION_OUTCOME_OBSERVED;
    const uint64_t before = metrics_counted(COUNTER_EVICTIONS, cell);
    struct permits *permits =
        permits_new(&(struct permits_options){.observes[ENDER_RECLAIM] = true});

    reclaimer_free(first.reclaimer);
    first.reclaimer = new_reclaimer(first.store, permits);
    pass(&first, 60);
    ck_assert_uint_eq(n_evicted, 0);
    ck_assert(!claims || n_claims() == 0);
    ck_assert_uint_ge(metrics_counted(COUNTER_EVICTIONS, cell), before + 1);
    reclaimer_free(first.reclaimer);
    permits_free(permits);
    first.reclaimer = new_reclaimer(first.store, NULL);
    claim_only();
}
END_TEST

/* A pod that kubelet has not started has the whole time before it; then it is looked at again. */
START_TEST(a_young_pod_is_left_alone_until_it_is_old_enough)
{
    struct permits *permits =
        permits_new(&(struct permits_options){.min_runtime_ms = 40 * SECOND_MS});

    reclaimer_free(first.reclaimer);
    first.reclaimer = new_reclaimer(first.store, permits);
    n_reads = 0;
    at_read = count_read;
    pass(&first, 10);
    ck_assert_uint_eq(n_reads, 2); /* a0 and a1 */
    pass(&first, 25);
    ck_assert_uint_eq(n_reads, 2);
    pass(&first, 25);
    ck_assert_uint_eq(n_reads, 4);
    ck_assert_uint_eq(n_evicted, 0);
    at_read = NULL;
    reclaimer_free(first.reclaimer);
    permits_free(permits);
    first.reclaimer = new_reclaimer(first.store, NULL);
}
END_TEST

/* Else it would lapse, and its pod would wait long after evictions go on. */
START_TEST(while_evictions_are_stopped_nothing_is_claimed)
{
    struct permits *permits = permits_new(&(struct permits_options){.stopped = true});

    reclaimer_free(first.reclaimer);
    first.reclaimer = new_reclaimer(first.store, permits);
    pass(&first, 60);
    ck_assert(!claims || n_claims() == 0);
    ck_assert_uint_eq(n_dry + n_tried, 0);
    permits_stop(permits, NULL);
    pass(&first, 1);
    ck_assert_uint_eq(n_claims(), 1);
    reclaimer_free(first.reclaimer);
    permits_free(permits);
    first.reclaimer = new_reclaimer(first.store, NULL);
}
END_TEST

START_TEST(who_takes_over_goes_on_with_the_claim)
{
    claim_only();
    answer = EVICTION_DONE;
    pass(&second, 1);
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert_uint_eq(n_claims(), 1);
}
END_TEST

START_TEST(who_takes_over_evicts_nobody_again)
{
    g_autofree char *claim = NULL;

    claim_only();
    answer = EVICTION_DONE;
    pass(&first, 10);
    ck_assert_uint_eq(n_evicted, 1);
    claim = g_strdup(claims);
    pass(&second, 30); /* the pod takes its time to end */
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert_str_eq(claims, claim); /* nor does it claim anything else for the same pod */
    gone[0] = ending[0];
    gone[1] = ending[1];
    pass(&second, 5);
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert_str_eq(claims, claim); /* until it has come */
    gone[2] = true;
    pass(&second, 2);
    ck_assert_uint_eq(n_claims(), 0);
    pass(&second, 62);
    ck_assert_ptr_null(claims); /* nor is there any word of it left */
}
END_TEST

/* Both replicas keep the room that is made, whoever of them is asked. */
START_TEST(both_keep_the_room)
{
    claim_only();
    pass(&first, 1);
    reclaimer_look(second.reclaimer);
    for (int i = 0; i < 2; i++) {
        struct store *store = i ? second.store : first.store;
        const char *node = NULL;
        store_lock(store);
        const struct room_claim *claim = nominations_claim(store_nominations(store), "b0", &node);
        ck_assert_ptr_nonnull(claim);
        ck_assert_str_eq(node, "n");
        ck_assert(claim_counts(claim, moment.now_ns));
        store_unlock(store);
    }
}
END_TEST

/* Whose lists are not complete knows too little to end anybody. */
START_TEST(who_has_not_listed_yet_evicts_nobody)
{
    claim_only();
    answer = EVICTION_DONE;
    store_list_begin(second.store, FEED_PODS);
    reclaimer_free(second.reclaimer);
    store_free(second.store);
    begin(&second);
    pass(&second, 60);
    ck_assert_uint_eq(n_evicted, 0);
    finish_lists(&second);
    pass(&second, 1);
    ck_assert_uint_eq(n_evicted, 1);
}
END_TEST

/* --- what is written ------------------------------------------------------------------------------ */

/* A kubelet writes a claim onto its Node, and takes another one's away there. */
START_TEST(what_a_node_says_ends_nobody_and_saves_nobody)
{
    store_put_quota(first.store,
                    &(struct resource_quota_view){
                        .ns = "a", .name = "q", .elastic = true, .min = PAIRS({GPUS, "0"})});
    gone[2] = true;
    shown = g_strdup_printf("[{\"for\":\"b0\",\"since\":%" G_GINT64_FORMAT
                            ",\"ends\":[\"a0\",\"a1\"]}]",
                            moment.now_ns / 1000000000);
    pass(&first, 1);
    gone[2] = false;
    for (int i = 0; i < 2; i++) /* before it has waited for the delay */
        pass(&first, 1);
    ck_assert_uint_eq(n_tried, 0);
    answer = EVICTION_LATER;
    for (int i = 0; i < 10 && n_claims() == 0; i++)
        pass(&first, 1);
    ck_assert_uint_eq(n_claims(), 1);
    answer = EVICTION_DONE;
    g_clear_pointer(&shown, g_free);
    pass(&first, 62);
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert_str_eq(shown, claims); /* it is written over, once a minute at most */
}
END_TEST

/* Another kubelet writes that a plan keeps room for "b0" on its own Node, where it could not come. */
START_TEST(a_room_that_a_node_shows_stops_no_claim)
{
    static const char mark[] =
        "{\"doing\":\"room\",\"by\":\"test\",\"until\":\"2025-11-25T19:56:00Z\",\"rooms\":[{\"id\":"
        "\"b0\",\"pod\":\"b0\",\"priority\":0,\"dialect\":\"gpushare\",\"shares\":[{\"memory\":1,"
        "\"units\":true,\"card\":0}]}]}";

    store_apply_node(first.store, &(struct node_view){
                                      .name = "far",
                                      .capacity = PAIRS({MEM, "5"}, {"aliyun.com/gpu-count", "1"}),
                                      .annotations = PAIRS({PLAN_MARK, mark})});
    store_lock(first.store);
    const bool kept = nominations_keep_for(store_nominations(first.store), "far", "b0");
    store_unlock(first.store);
    ck_assert(kept);
    claim_only();
}
END_TEST

/* Nobody ends, and nothing is claimed, while it cannot be read or believed; which is told. */
static void close_claims(void)
{
    g_autoptr(claim_sheet) sheet = fake_claims_sheet();
    g_autofree char *text = claim_sheet_encode(sheet), *sum = claim_sheet_sum(text);

    switch (which) {
    case 0:
        fake_claims.unreadable = true;
        break;
    case 1:
        fake_claims_set("{", sum);
        break;
    case 2: /* changed by hand */
        fake_claims_set(text, "0");
        break;
    case 3:
        fake_claims_set(text, NULL);
        break;
    }
}

START_TEST(what_cannot_be_read_or_believed_ends_nobody)
{
    claim_only();
    const unsigned before = n_tried;
    answer = EVICTION_DONE;
    which = _i;
    close_claims();
    const unsigned writes = fake_claims.n_writes;
    pass(&first, 30);
    pass(&second, 30);
    ck_assert_uint_eq(n_tried, before);
    ck_assert_uint_eq(fake_claims.n_writes, writes);
    g_autofree char *why = store_claims_trouble(first.store);
    ck_assert_ptr_nonnull(why);
    fake_claims.unreadable = false;
    fake_claims_set(NULL, NULL); /* deleted, as the error says */
    pass(&first, 30);
    ck_assert_uint_eq(n_evicted, 1);
    g_autofree char *now = store_claims_trouble(first.store);
    ck_assert_ptr_null(now);
}
END_TEST

/* It is gone a moment before the eviction. */
static void delete_claims(void)
{
    g_clear_pointer(&fake_claims.text, g_free);
    g_clear_pointer(&claims, g_free);
    fake_claims.version++;
}

START_TEST(nobody_ends_for_a_claim_that_is_gone)
{
    claim_only();
    const unsigned before = n_tried;
    answer = EVICTION_DONE;
    at_read = delete_claims;
    pass(&first, 6);
    at_read = NULL;
    ck_assert_uint_eq(n_tried, before);
}
END_TEST

/* Two write at once: what is written last is written against what the other one wrote. */
static unsigned n_conflicts;

static bool conflicts(void)
{
    return n_conflicts > 0 && n_conflicts-- > 0;
}

START_TEST(a_claim_that_meets_a_conflict_is_written_again)
{
    fake_claims.conflicts = conflicts;
    n_conflicts = 3;
    claim_only();
    ck_assert_uint_eq(n_conflicts, 0);
    ck_assert_uint_eq(fake_claims.n_writes, 1);
}
END_TEST

/* It may have been written: then it is taken back, and nobody ends for it. */
START_TEST(a_claim_whose_answer_is_lost_is_taken_back)
{
    fake_claims.lost = true;
    for (int i = 0; i < 10 && fake_claims.lost; i++)
        pass(&first, 1);
    ck_assert(!fake_claims.lost);
    ck_assert_uint_eq(n_claims(), 0);
    pass(&first, 5);
    ck_assert_uint_eq(n_tried, 0);
    pass(&first, 60); /* it is tried again */
    ck_assert_uint_eq(n_evicted, 1);
}
END_TEST

/* It has found a card elsewhere: its Binding is written, and the watch has yet to show it. */
START_TEST(nobody_ends_for_a_pod_whose_binding_is_written)
{
    static const enum allocation_state states[] = {ALLOCATION_BOUND, ALLOCATION_CONFIRMED};

    claim_only();
    pass(&first, 1);
    answer = EVICTION_DONE;
    moment.now_ms += 10 * SECOND_MS; /* after the pause */
    store_lock(first.store);
    struct allocation *held = allocation_new("b0", "b", "b0", 1);
    held->dialect = ledger_node(store_ledger(first.store), "n")->dialect;
    held->shares[0] = (struct share){.card = 1};
    held->state = states[_i];
    ledger_put(store_ledger(first.store), "n", held);
    store_unlock(first.store);
    reclaimer_look(first.reclaimer);
    ck_assert_uint_eq(n_evicted, 0);
    ck_assert_uint_eq(n_claims(), 0);
}
END_TEST

/* --- 429 ------------------------------------------------------------------------------------------ */

START_TEST(a_budget_is_waited_for)
{
    claim_only();
    const unsigned before = n_tried;
    g_autofree char *claim = g_strdup(claims);
    pass(&first, 30);
    ck_assert_uint_gt(n_tried, before + 3); /* every five seconds */
    ck_assert_uint_lt(n_tried, before + 8);
    ck_assert_uint_eq(n_evicted, 0);
    ck_assert_str_eq(claims, claim);
    answer = EVICTION_DONE;
    pass(&first, 6);
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert_str_eq(claims, claim);
}
END_TEST

/* The one that ends, or has ended a moment ago, was evicted by the other replica. */
START_TEST(who_takes_over_counts_whom_others_have_evicted)
{
    const bool ended = _i == 1;

    store_put_quota(second.store,
                    &(struct resource_quota_view){
                        .ns = "a", .name = "q", .elastic = true, .min = PAIRS({GPUS, "0"})});
    const char *const ends[] = {"a1", "a0", NULL};
    struct room_claim *claim =
        claim_new("b0", moment.now_ns / 1000000000 - (ended ? 300 : 0), 0, ends);
    claim->ns = g_strdup("b");
    fake_claims_put("n", claim);
    at_once = ended ? 10 : 1;
    per_minute = ended ? 1 : 10;
    ending[1] = !ended;
    gone[1] = ended;
    reclaimer_free(second.reclaimer);
    second.reclaimer = new_reclaimer(second.store, NULL);
    pass(&second, 30);
    ck_assert_uint_eq(n_evicted, 0);
    gone[1] = true;
    pass(&second, ended ? 32 : 1);
    ck_assert_uint_eq(n_evicted, 1);
}
END_TEST

/* --- nobody knows ---------------------------------------------------------------------------------- */

/* It is not asked of again and again, and takes the place of one that was evicted. */
START_TEST(what_may_have_been_evicted_counts_as_such)
{
    claim_only();
    const unsigned before = n_tried;
    answer = EVICTION_UNKNOWN;
    pass(&first, 50);
    ck_assert_uint_eq(n_tried, before + 1);
    answer = EVICTION_DONE;
    pass(&first, 20); /* it has not ended, so it was not */
    ck_assert_uint_eq(n_tried, before + 2);
    ck_assert_uint_eq(n_evicted, 1);
}
END_TEST

#define BUDGET                                                                                     \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"TooManyRequests\",\"code\":429,"     \
    "\"message\":\"Cannot evict pod as it would violate the pod's disruption budget.\","           \
    "\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption "      \
    "budget b needs 2 healthy pods and has 2 currently\"}]}}"

static struct api_client *client;

static enum eviction evict_by_api(void *data, const struct evictee *evictee, bool try,
                                  GError **error)
{
    const enum eviction eviction = eviction_send(client, evictee, try, error);

    n_tried += !try;
    n_evicted += !try && eviction == EVICTION_DONE;
    return eviction;
}

static void begin_client(struct fake_server *server)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    config->source = g_strdup("test");
    config->ns = g_strdup("default");
    config->server = g_strdup(fake_server_url(server));
    client = api_client_new(config, NULL);
    ck_assert_ptr_nonnull(client);
}

/* What was refused was not done; of what has failed nobody knows. */
START_TEST(what_the_server_says_of_an_eviction)
{
    static const struct {
        unsigned status;
        enum eviction eviction;
    } rows[] = {{201, EVICTION_DONE},   {404, EVICTION_DONE},    {403, EVICTION_FAILED},
                {409, EVICTION_FAILED}, {500, EVICTION_UNKNOWN}, {504, EVICTION_UNKNOWN}};
    const struct evictee evictee = {.ns = (char *)"a", .name = (char *)"a0", .uid = (char *)"a0"};
    struct fake_server *server = fake_server_new();

    begin_client(server);
    fake_server_script(server, &(struct fake_reply){.match = "/eviction",
                                                    .status = rows[_i].status,
                                                    .times = 100,
                                                    .chunks = {"{}"}});
    ck_assert_int_eq(eviction_send(client, &evictee, false, NULL), rows[_i].eviction);
    api_client_free(client);
    fake_server_free(server);
}
END_TEST

/* The same by HTTP: the API server's 429 comes twice, then the pod ends. */
START_TEST(the_servers_429_is_a_budget)
{
    struct fake_server *server = fake_server_new();

    begin_client(server);
    fake_server_script(server,
                       &(struct fake_reply){.match = "/eviction", .status = 201, .chunks = {"{}"}});
    fake_server_script(
        server,
        &(struct fake_reply){.match = "/eviction", .status = 429, .times = 2, .chunks = {BUDGET}});
    fake_server_script(server,
                       &(struct fake_reply){.match = "/eviction", .status = 201, .chunks = {"{}"}});
    reclaimer_free(first.reclaimer);
    first.reclaimer = reclaimer_new(&(struct reclaimer_args){
        .store = first.store,
        .cluster = &cluster,
        .files = &fake_claims_files,
        .evict = evict_by_api,
        .options = {.delay_ms = 3 * SECOND_MS, .at_once = 10, .per_minute = 10},
    });
    for (int i = 0; i < 10 && n_claims() == 0; i++)
        pass(&first, 1);
    ck_assert_uint_eq(n_claims(), 1);
    pass(&first, 14);
    ck_assert_uint_eq(n_evicted, 1);
    ck_assert_uint_le(n_tried, 3);
    ck_assert_uint_ge(fake_server_count(server), 4);
    g_autofree char *dry = fake_server_request(server, 0), *last = fake_server_request(server, 3);
    ck_assert_ptr_nonnull(strstr(dry, "\"dryRun\":[\"All\"]"));
    ck_assert_ptr_null(strstr(last, "dryRun"));
    ck_assert_ptr_nonnull(strstr(last, "\"preconditions\":{\"uid\":\"a"));
    api_client_free(client);
    fake_server_free(server);
}
END_TEST

/* A card is free, and left to an older pod; the other one is borrowed. */
START_TEST(nobody_gives_back_to_who_only_waits_for_an_older_pod)
{
    hold_ms = 60 * SECOND_MS;
    teardown();
    setup();
    hold_ms = 0;
    gone[1] = true;
    store_put_quota(first.store,
                    &(struct resource_quota_view){
                        .ns = "a", .name = "q", .elastic = true, .min = PAIRS({GPUS, "0"})});
    store_apply_pod(first.store,
                    &(struct pod_view){.ns = "c",
                                       .name = "older",
                                       .uid = "older",
                                       .phase = "Pending",
                                       .created = "2026-01-01T00:00:00Z",
                                       CONTAINERS({.name = "c", .limits = PAIRS({MEM, "10"})})});
    store_lock(first.store);
    arrivals_ask(store_arrivals(first.store), "older", moment.now_ms);
    store_unlock(first.store);
    pass(&first, 10);
    ck_assert_uint_eq(n_claims(), 0);
    ck_assert_uint_eq(n_tried, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reclaimer");
    TCase *takeover = tcase_create("takeover"), *budgets = tcase_create("budgets"),
          *notes = tcase_create("notes");

    tcase_add_checked_fixture(takeover, setup, teardown);
    tcase_add_test(takeover, what_only_observes_claims_nothing);
    tcase_add_test(takeover, a_young_pod_is_left_alone_until_it_is_old_enough);
    tcase_add_test(takeover, while_evictions_are_stopped_nothing_is_claimed);
    tcase_add_test(takeover, who_takes_over_goes_on_with_the_claim);
    tcase_add_test(takeover, who_takes_over_evicts_nobody_again);
    tcase_add_test(takeover, both_keep_the_room);
    tcase_add_test(takeover, who_has_not_listed_yet_evicts_nobody);
    tcase_add_test(takeover, nobody_gives_back_to_who_only_waits_for_an_older_pod);
    suite_add_tcase(suite, takeover);
    tcase_add_checked_fixture(notes, setup, teardown);
    tcase_add_test(notes, what_a_node_says_ends_nobody_and_saves_nobody);
    tcase_add_test(notes, a_room_that_a_node_shows_stops_no_claim);
    tcase_add_loop_test(notes, what_cannot_be_read_or_believed_ends_nobody, 0, 4);
    tcase_add_test(notes, nobody_ends_for_a_claim_that_is_gone);
    tcase_add_test(notes, a_claim_that_meets_a_conflict_is_written_again);
    tcase_add_test(notes, a_claim_whose_answer_is_lost_is_taken_back);
    tcase_add_loop_test(notes, nobody_ends_for_a_pod_whose_binding_is_written, 0, 2);
    suite_add_tcase(suite, notes);
    tcase_add_checked_fixture(budgets, setup, teardown);
    tcase_add_test(budgets, a_budget_is_waited_for);
    tcase_add_loop_test(budgets, what_the_server_says_of_an_eviction, 0, 6);
    tcase_add_loop_test(budgets, who_takes_over_counts_whom_others_have_evicted, 0, 2);
    tcase_add_test(budgets, what_may_have_been_evicted_counts_as_such);
    tcase_add_test(budgets, the_servers_429_is_a_budget);
    suite_add_tcase(suite, budgets);
    return suite_run(suite);
}
