/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api_cluster.h"

#include "kube/clock.h"
#include "scripted_api.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

static struct cluster *cluster;
static struct store *filled;

static void setup(void)
{
    static const struct store_options options = {.policy = policies};
    api_begin();
    cluster = api_cluster_new(client);
    filled = store_new(&options);
}

static void teardown(void)
{
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    store_free(filled);
    api_cluster_free(cluster);
    api_end();
}

static enum outcome list(enum feed feed, GError **error)
{
    return cluster->ops->list(cluster, feed, filled, error);
}

static size_t pods(void)
{
    size_t n = ledger_size(store_lock(filled));
    store_unlock(filled);
    return n;
}

/* --- lists ---------------------------------------------------------------------------------- */

#define POD(name, card)                                                                            \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name                \
    "\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" card                                       \
    "\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\",\"resources\":{"           \
    "\"limits\":{\"aliyun.com/gpu-mem\":\"4\"}}}]},\"status\":{\"phase\":\"Running\"}}"
#define LIST(more, items)                                                                          \
    "{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"" more "\"},\"items\":[" items "]}"
#define GONE_STATUS                                                                                \
    "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}"

START_TEST(a_list_is_read_page_by_page)
{
    g_autoptr(GError) error = NULL;

    script(&(struct fake_reply){.match = "limit=1000&continue=next%2F1 ",
                                .chunks = {LIST("", POD("b", "1"))}});
    script(&(struct fake_reply){.match = "/api/v1/pods?limit=1000 ",
                                .chunks = {LIST("next/1", POD("a", "0"))}});
    ck_assert_msg(list(FEED_PODS, &error) == OUTCOME_OK, "%s", error ? error->message : "");
    ck_assert_uint_eq(pods(), 2);
    g_autofree char *unsynced = store_unsynced(filled);
    ck_assert_str_eq(unsynced, "nodes, configmaps");
}
END_TEST

START_TEST(an_object_that_cannot_be_read_is_left_out)
{
    script(&(struct fake_reply){.chunks = {LIST("", "{\"metadata\":{\"name\":7}}," POD("a", "0"))}});
    ck_assert_int_eq(list(FEED_PODS, NULL), OUTCOME_OK);
    ck_assert_uint_eq(pods(), 1);
}
END_TEST

/* As `POD`, and with a label that no label can be. */
#define UNREADABLE(name, node)                                                                     \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name                \
    "\",\"labels\":{\"a\":7}},\"spec\":{" node "\"containers\":[]}}"
#define ON_N1 "\"nodeName\":\"n1\","
#define WITH_GRACE(name, grace)                                                                    \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"uid-" name                \
    "\"},\"spec\":{\"nodeName\":\"n1\",\"terminationGracePeriodSeconds\":" grace                   \
    ",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/"                    \
    "gpu-mem\":\"4\"}}}]}}"

static void list_of(const char *body)
{
    script(&(struct fake_reply){.chunks = {body}});
    ck_assert_int_eq(list(FEED_PODS, NULL), OUTCOME_OK);
}

/* NULL: it is not in the ledger. */
static struct allocation *held(const char *uid)
{
    const struct allocation *allocation = ledger_get(store_lock(filled), uid);
    struct allocation *copy = allocation ? allocation_dup(allocation) : NULL;

    store_unlock(filled);
    return copy;
}

START_TEST(what_cannot_be_read_counts_as_it_was_known)
{
    list_of(LIST("", POD("a", "1")));
    list_of(LIST("", UNREADABLE("a", ON_N1)));
    g_autoptr(allocation) same = held("uid-a");
    ck_assert_ptr_nonnull(same);
    ck_assert_int_eq(same->shares[0].card, 1);
    ck_assert_int_eq(same->distrust, DISTRUST_NONE);
    list_of(LIST("", ""));
    ck_assert_uint_eq(pods(), 0);
}
END_TEST

START_TEST(what_was_never_known_counts_on_every_card)
{
    list_of(LIST("", UNREADABLE("b", ON_N1) "," UNREADABLE("waits", "")));
    g_autoptr(allocation) unread = held("uid-b");
    ck_assert_ptr_nonnull(unread);
    ck_assert_int_eq(unread->distrust, DISTRUST_UNREAD); /* which audit finds */
    ck_assert_int_eq(unread->shares[0].card, CARD_UNKNOWN);
    ck_assert(unread->shares[0].exclusive);
    ck_assert_uint_eq(pods(), 1);
    list_of(LIST("", UNREADABLE("b", ON_N1)));
    ck_assert_uint_eq(pods(), 1);
}
END_TEST

static const char *const nameless[] = {
    LIST("", "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":7}}"),
    LIST("", "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"uid-a\"},\"spec\":7}"),
    LIST("", "{\"metadata\":{\"name\":\"a\",}}"),
};

START_TEST(a_list_that_names_nobody_knows_what_sweeps_nothing)
{
    list_of(LIST("", POD("a", "1")));
    list_of(nameless[_i]);
    ck_assert_uint_eq(pods(), 1);
    list_of(LIST("", ""));
    ck_assert_uint_eq(pods(), 0);
}
END_TEST

static const char *const long_graces[] = {
    LIST("", WITH_GRACE("a", "9007199254740992") "," WITH_GRACE("b", "9223372036854775807"))};

START_TEST(a_grace_period_hides_no_pod)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view *on;
    size_t n;

    list_of(long_graces[0]);
    ck_assert_uint_eq(pods(), 2);
    g_autoptr(allocation) a = held("uid-a");
    ck_assert_int_ne(a->distrust, DISTRUST_UNREAD);
    script(&(struct fake_reply){.chunks = {long_graces[0]}});
    ck_assert_msg(cluster->ops->list_pods_on(cluster, arena, "n1", clock_ms() + PATIENT_MS, &on, &n,
                                             &error) == OUTCOME_OK,
                  "%s", error ? error->message : "");
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(on[1].grace_s, (INT64_C(1) << 53) - 1);
    ck_assert_ptr_null(on[1].unread);
}
END_TEST

START_TEST(an_unreadable_pod_is_on_its_node_all_the_same)
{
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view *on;
    size_t n;

    script(&(struct fake_reply){.chunks = {LIST("", UNREADABLE("a", ON_N1) "," POD("b", "0"))}});
    ck_assert_int_eq(
        cluster->ops->list_pods_on(cluster, arena, "n1", clock_ms() + PATIENT_MS, &on, &n, NULL),
        OUTCOME_OK);
    ck_assert_uint_eq(n, 2);
    ck_assert_ptr_nonnull(on[0].unread);
}
END_TEST

START_TEST(an_expired_page_is_read_again_as_a_whole)
{
    script(&(struct fake_reply){.match = "limit=1000&continue=next ",
                                .status = 410,
                                .chunks = {GONE_STATUS}});
    script(&(struct fake_reply){.match = "limit=1000 ", .chunks = {LIST("next", POD("a", "0"))}});
    script(&(struct fake_reply){.match = "/api/v1/pods ", .chunks = {LIST("", POD("b", "0"))}});
    ck_assert_int_eq(list(FEED_PODS, NULL), OUTCOME_OK);
    ck_assert_uint_eq(pods(), 1); /* what the first page said does not count */
    ck_assert_ptr_nonnull(ledger_get(store_lock(filled), "uid-b"));
    store_unlock(filled);
}
END_TEST

static const struct {
    struct fake_reply reply;
    enum outcome outcome;
    const char *text;
} failures[] = {
    {{.status = 403, .chunks = {"{\"kind\":\"Status\",\"message\":\"pods is forbidden\"}"}},
     OUTCOME_REFUSED,
     "cannot list pods: pods is forbidden"},
    {{.status = 503}, OUTCOME_UNKNOWN, "cannot list pods: "},
    {{.chunks = {"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{"}, .end = FAKE_CUT},
     OUTCOME_UNKNOWN,
     "cannot list pods: "},
    {{.chunks = {"{\"items\":[]}"}},
     OUTCOME_UNKNOWN,
     "cannot list pods: field 'metadata.resourceVersion'"},
};

START_TEST(a_list_that_fails_is_not_ended)
{
    g_autoptr(GError) error = NULL;

    script(&failures[_i].reply);
    ck_assert_int_eq(list(FEED_PODS, &error), failures[_i].outcome);
    ck_assert_msg(g_str_has_prefix(error->message, failures[_i].text), "%s", error->message);
    g_autofree char *unsynced = store_unsynced(filled);
    ck_assert_ptr_nonnull(strstr(unsynced, "pods"));
}
END_TEST

START_TEST(without_the_right_to_read_configmaps_there_are_none)
{
    script(&(struct fake_reply){.match = "/api/v1/namespaces/kube-system/configmaps?",
                                .status = 403});
    ck_assert_int_eq(list(FEED_CONFIGMAPS, NULL), OUTCOME_OK);
}
END_TEST

static void *stop(void *data)
{
    fake_server_wait(server, 1, PATIENT_MS);
    api_cluster_stop(cluster);
    return NULL;
}

START_TEST(a_list_can_be_stopped)
{
    g_autoptr(GError) error = NULL;
    pthread_t thread;

    script(&(struct fake_reply){.chunks = {"{\"items\":["}, .end = FAKE_HANG});
    pthread_create(&thread, NULL, stop, NULL);
    const int64_t began_ms = clock_ms();
    ck_assert_int_eq(list(FEED_PODS, &error), OUTCOME_UNKNOWN);
    pthread_join(thread, NULL);
    ck_assert_str_eq(error->message, "stopped");
    ck_assert_int_lt(clock_ms() - began_ms, PATIENT_MS);
    ck_assert_int_eq(list(FEED_NODES, NULL), OUTCOME_UNKNOWN); /* and none begins any more */
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

/* --- Bindings ------------------------------------------------------------------------------- */

#define CONFLICT(cause)                                                                            \
    "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\",\"message\":\"Operation cannot be " \
    "fulfilled on pods/binding \\\"p\\\": " cause "\"}"
static const struct {
    const char *body;
    enum outcome outcome;
} conflicts[] = {
    {CONFLICT("pod p is being deleted, cannot be assigned to a host"), OUTCOME_CONFLICT},
    {CONFLICT("pod p is already assigned to node \\\"n2\\\""), OUTCOME_CONFLICT},
    {CONFLICT("pod p has non-empty .spec.schedulingGates"), OUTCOME_CONFLICT},
    {CONFLICT(
         "StorageError: invalid object, Code: 4, Key: /registry/pods/ns/p, ResourceVersion: 0, "
         "AdditionalErrorMsg: Precondition failed: UID in precondition: u1, UID in object meta: "
         "u2"),
     OUTCOME_CONFLICT},
    {CONFLICT("etcdserver: request timed out"), OUTCOME_UNKNOWN},
    {CONFLICT("etcdserver: leader changed"), OUTCOME_UNKNOWN},
    {CONFLICT("context deadline exceeded"), OUTCOME_UNKNOWN},
    {CONFLICT("rpc error: code = Unavailable desc = transport is closing"), OUTCOME_UNKNOWN},
    {"<html>Conflict</html>", OUTCOME_UNKNOWN},
    {"", OUTCOME_UNKNOWN},
};

START_TEST(a_conflict_is_a_no_only_for_known_causes)
{
    const struct binding binding = {.ns = "ns", .name = "p", .uid = "u1", .node = "n1"};
    g_autoptr(GError) error = NULL;

    api_cluster_set_version(cluster, "v1.36.3");
    script(&(struct fake_reply){.match = "POST /api/v1/namespaces/ns/pods/p/binding",
                                .status = 409,
                                .chunks = {conflicts[_i].body}});
    ck_assert_int_eq(cluster->ops->bind(cluster, &binding, clock_ms() + PATIENT_MS, &error),
                     conflicts[_i].outcome);
    ck_assert(g_error_matches(error, GPULEDGER_ERROR,
                              conflicts[_i].outcome == OUTCOME_UNKNOWN ? GPULEDGER_ERROR_UNKNOWN
                                                                       : GPULEDGER_ERROR_CONFLICT));
    ck_assert_uint_eq(fake_server_count(server), 1); /* which repeats it is for bind to say */
}
END_TEST

/* --- annotations ---------------------------------------------------------------------------- */

static const struct pod_annotation annotation = {
    .ns = "ns", .name = "p", .uid = "u1", .key = "example.com/k", .value = "v"};

static enum outcome annotate(const struct pod_annotation *wanted, GError **error)
{
    return cluster->ops->annotate_pod(cluster, wanted, clock_ms() + PATIENT_MS, error);
}

START_TEST(an_annotation_is_a_merge_patch)
{
    script(&(struct fake_reply){.match = "PATCH /api/v1/namespaces/ns/pods/p ", .chunks = {"{}"}});
    ck_assert_int_eq(annotate(&annotation, NULL), OUTCOME_OK);
    g_autofree char *request = fake_server_request(server, 0);
    ck_assert_ptr_nonnull(strstr(request, "\r\nContent-Type: application/merge-patch+json\r\n"));
    ck_assert_msg(g_str_has_suffix(request, "\r\n\r\n{\"metadata\":{\"uid\":\"u1\",\"annotations\":"
                                            "{\"example.com/k\":\"v\"}}}"),
                  "%s", request);
}
END_TEST

static const struct {
    int status;
    enum outcome outcome;
} refusals[] = {{404, OUTCOME_NOT_FOUND}, {409, OUTCOME_CONFLICT}, {422, OUTCOME_REFUSED}};

START_TEST(a_pod_that_is_gone_is_not_annotated)
{
    script(&(struct fake_reply){.match = "PATCH ", .status = refusals[_i].status});
    ck_assert_int_eq(annotate(&annotation, NULL), refusals[_i].outcome);
}
END_TEST

START_TEST(a_node_is_changed_on_a_condition)
{
    const struct node_annotation wanted = {
        .node = "n1", .version = "17", .key = "example.com/k", .value = "v"};
    g_autoptr(json_arena) arena = json_arena_new();
    struct node_view node = {0};

    script(&(struct fake_reply){.match = "GET /api/v1/nodes/n1 ",
                                .chunks = {"{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":"
                                           "\"17\",\"annotations\":{\"a\":\"b\"}}}"}});
    ck_assert_int_eq(cluster->ops->get_node(cluster, arena, "n1", clock_ms() + PATIENT_MS, &node,
                                            NULL),
                     OUTCOME_OK);
    ck_assert_str_eq(node.resource_version, "17");
    ck_assert_str_eq(string_pairs_get(&node.annotations, "a"), "b");
    script(&(struct fake_reply){.match = "PATCH /api/v1/nodes/n1 ", .status = 409});
    ck_assert_int_eq(cluster->ops->annotate_node(cluster, &wanted, clock_ms() + PATIENT_MS, NULL),
                     OUTCOME_CONFLICT);
    g_autofree char *request = fake_server_request(server, 1);
    ck_assert_msg(g_str_has_suffix(request, "\r\n\r\n{\"metadata\":{\"resourceVersion\":\"17\","
                                            "\"annotations\":{\"example.com/k\":\"v\"}}}"),
                  "%s", request);
    script(&(struct fake_reply){.match = "GET /api/v1/nodes/gone ", .status = 404});
    ck_assert_int_eq(cluster->ops->get_node(cluster, arena, "gone", clock_ms() + PATIENT_MS, &node,
                                            NULL),
                     OUTCOME_NOT_FOUND);
}
END_TEST

START_TEST(names_cannot_lead_elsewhere)
{
    const struct pod_annotation odd = {.ns = "..", .name = "p", .uid = "u", .key = "k", .value = "v"};

    ck_assert_int_eq(annotate(&odd, NULL), OUTCOME_REFUSED);
    ck_assert_uint_eq(fake_server_count(server), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_cluster");
    TCase *tests = tcase_create("calls");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_list_is_read_page_by_page);
    tcase_add_test(tests, an_object_that_cannot_be_read_is_left_out);
    tcase_add_test(tests, what_cannot_be_read_counts_as_it_was_known);
    tcase_add_test(tests, what_was_never_known_counts_on_every_card);
    tcase_add_loop_test(tests, a_list_that_names_nobody_knows_what_sweeps_nothing, 0,
                        G_N_ELEMENTS(nameless));
    tcase_add_test(tests, a_grace_period_hides_no_pod);
    tcase_add_test(tests, an_unreadable_pod_is_on_its_node_all_the_same);
    tcase_add_test(tests, an_expired_page_is_read_again_as_a_whole);
    tcase_add_loop_test(tests, a_list_that_fails_is_not_ended, 0, G_N_ELEMENTS(failures));
    tcase_add_test(tests, without_the_right_to_read_configmaps_there_are_none);
    tcase_add_test(tests, a_list_can_be_stopped);
    tcase_add_loop_test(tests, a_conflict_is_a_no_only_for_known_causes, 0,
                        G_N_ELEMENTS(conflicts));
    tcase_add_test(tests, an_annotation_is_a_merge_patch);
    tcase_add_loop_test(tests, a_pod_that_is_gone_is_not_annotated, 0, G_N_ELEMENTS(refusals));
    tcase_add_test(tests, a_node_is_changed_on_a_condition);
    tcase_add_test(tests, names_cannot_lead_elsewhere);

    return suite_run(suite);
}
