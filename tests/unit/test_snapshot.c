/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot.h"

#include "verbs/extender.h"
#include "base/log.h"
#include "inspect/views.h"
#include "suite.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <pthread.h>
#include <string.h>

static char *directory;
static struct store *the_store;
static struct cluster *the_cluster;

static void setup(void)
{
    const struct store_options options = {.patience_ms = 1000};

    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    directory = g_dir_make_tmp("snapshot-XXXXXX", NULL);
    ck_assert(directory);
    the_store = store_new(&options);
}

static void teardown(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
    const char *name;

    ck_assert_msg(ledger_verify(store_lock(the_store), &error), "%s", error ? error->message : "");
    store_unlock(the_store);
    g_clear_pointer(&the_cluster, snapshot_cluster_free);
    store_free(the_store);
    while ((name = g_dir_read_name(dir))) {
        g_autofree char *path = g_build_filename(directory, name, NULL);
        g_unlink(path);
    }
    g_rmdir(directory);
    g_free(directory);
}

static char *write_file(const char *text)
{
    char *path = g_build_filename(directory, "cluster", NULL);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static bool load(const char *text, GError **error)
{
    g_autofree char *path = write_file(text);

    the_cluster = snapshot_cluster_new(path, the_store, error);
    return the_cluster;
}

static void load_good(const char *text)
{
    g_autoptr(GError) error = NULL;
    ck_assert_msg(load(text, &error), "%s", error ? error->message : "");
}

/* Units held of a card; -1: no such card. */
static int64_t used(const char *name, int32_t index)
{
    const struct node *node = ledger_node(store_lock(the_store), name);
    const struct card *card = node ? node_card(node, index) : NULL;
    const int64_t units = card ? card->memory_used / node->memory_unit : -1;
    store_unlock(the_store);
    return units;
}

static bool is_healthy(const char *name, int32_t index)
{
    const struct card *card = node_card(ledger_node(store_lock(the_store), name), index);
    const bool healthy = card && card->healthy;
    store_unlock(the_store);
    return healthy;
}

static bool is_waiting(const char *uid)
{
    store_lock(the_store);
    const bool waiting = store_pending(the_store, uid);
    store_unlock(the_store);
    return waiting;
}

#define NODE(name)                                                                                 \
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\",\"uid\":\"" name \
    "\"},\"status\":{\"capacity\":{\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"}," \
    "\"allocatable\":{\"aliyun.com/gpu-mem\":\"20\",\"aliyun.com/gpu-count\":\"2\"}}}"
#define POD(name, meta, spec, status)                                                              \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name  \
    "\",\"uid\":\"uid-" name "\"" meta "},\"spec\":{\"containers\":[{\"name\":\"c\","              \
    "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"4\"}}}]" spec "},\"status\":{" status     \
    "}}"
#define CONFIGMAP(ns, name, gpus)                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":\"" ns              \
    "\",\"name\":\"" name "\"},\"data\":{\"gpus\":\"" gpus "\"}}"
#define LIST(items) "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" items "]}\n"
#define HELD(card)                                                                                 \
    ",\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"" card                                         \
    "\",\"ALIYUN_COM_GPU_MEM_POD\":\"4\",\"ALIYUN_COM_GPU_MEM_DEV\":\"10\","                       \
    "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}"

/* "held" is on n1's card 1, "free" waits, "done" has ended. */
static const char cluster_text[] = LIST(
    NODE("n1") "," NODE("n2") "," POD("held", HELD("1"), ",\"nodeName\":\"n1\"", "\"phase\":\"Running\"") "," POD(
        "free", "", "",
        "\"phase\":\"Pending\"") "," POD("done", HELD("0"), ",\"nodeName\":\"n1\"",
                                         "\"phase\":\"Succeeded\"") "," CONFIGMAP("kube-system",
                                                                                  "unhealthy-gpu-"
                                                                                  "n2",
                                                                                  "0") "," CONFIGMAP("default",
                                                                                                     "unhealthy-gpu-n1",
                                                                                                     "0") ","
                                                                                                          "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"spec\":7}");

/* --- loading -------------------------------------------------------------------------------- */

START_TEST(fills_the_store)
{
    ck_assert(!store_is_synced(the_store));
    load_good(cluster_text);
    ck_assert(store_is_synced(the_store));
    ck_assert_str_eq(the_cluster->ops->name, "snapshot");
    ck_assert_int_eq(used("n1", 0), 0);
    ck_assert_int_eq(used("n1", 1), 4);
    ck_assert(is_waiting("uid-free"));
    ck_assert(is_healthy("n1", 0));
    ck_assert(!is_healthy("n2", 0));
}
END_TEST

#define YAML_NODE                                                                                  \
    "kind: Node\nmetadata: {name: n1}\n"                                                           \
    "status: {capacity: {aliyun.com/gpu-mem: 20, aliyun.com/gpu-count: 2}}\n"

/* Each has node n1 with two cards of ten units. */
static const char *const forms[] = {
    LIST(NODE("n1")),
    NODE("n1"),
    " \n" NODE("n1"),
    "{\"kind\":\"List\",\"items\":[" LIST(NODE("n1")) "]}",
    /* As the API server writes lists: the items do not say what they are. */
    "{\"kind\":\"NodeList\",\"items\":[{\"metadata\":{\"name\":\"n1\"},\"status\":{\"capacity\":"
    "{\"aliyun.com/gpu-mem\":20,\"aliyun.com/gpu-count\":2}}}]}",
    "{\"items\":[{\"metadata\":{\"name\":\"n1\"},\"status\":{\"capacity\":"
    "{\"aliyun.com/gpu-mem\":20,\"aliyun.com/gpu-count\":2}}}],\"kind\":\"NodeList\"}",
    YAML_NODE,
    "kind: PodList\nitems: []\n---\n" YAML_NODE "---\n",
    "kind: List\nitems:\n- kind: Node\n  metadata: {name: n1}\n"
    "  status: {capacity: {aliyun.com/gpu-mem: 20, aliyun.com/gpu-count: 2}}\n",
    "kind: NodeList\nitems:\n- metadata: {name: n1}\n"
    "  status: {capacity: {aliyun.com/gpu-mem: 20, aliyun.com/gpu-count: 2}}\n",
};

START_TEST(reads_what_kubectl_writes)
{
    load_good(forms[_i]);
    ck_assert_int_eq(used("n1", 1), 0);
    ck_assert_int_eq(used("n1", 2), -1);
}
END_TEST

struct refused {
    const char *text;
    const char *message;
};

static const struct refused refused[] = {
    {"", "the file is empty"},
    {"---\n", "the file is empty"},
    {"[]", "field 'kind': missing"},
    {"{}", "field 'kind': missing"},
    {"No resources found\n", "field 'kind': missing"},
    {"{\"kind\":\"List\",\"items\":[", "the JSON ends in the middle"},
    {"{\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\",}]}", "invalid JSON"},
    {"{\"kind\":\"List\",\"items\":[{}]}", "field 'kind': missing"},
    {LIST(NODE("n1")) LIST(NODE("n2")), "after the end of the list"},
    {"kind: List\nitems: [a: b: c]\n", "line 2"},
    {LIST("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"b\"},\"spec\":7}"),
     "Pod a/b: field 'spec': expected an object"},
    {LIST("{\"kind\":\"Node\"}"), "Node /: field 'metadata.name': missing"},
    {LIST("{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"}},"
          "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"labels\":{\"a\":\"b\"}}}"),
     "Node n1 is there twice, and the two differ"},
    {LIST("{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"b\",\"uid\":\"u\"}},"
          "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"c\",\"uid\":\"u\"}}"),
     "field 'metadata.uid': Pods a/b and a/c have the same, \"u\""},
};

START_TEST(says_what_is_wrong_with_a_file)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!load(refused[_i].text, &error));
    ck_assert_msg(strstr(error->message, refused[_i].message), "%s", error->message);
    ck_assert_msg(strstr(error->message, directory), "%s", error->message);
}
END_TEST

/* Files that were joined. */
START_TEST(the_same_twice_is_no_harm)
{
    load_good(LIST(NODE("n1") "," NODE("n1")));
    ck_assert_int_eq(used("n1", 1), 0);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    g_autoptr(GError) error = NULL;

    ck_assert(!snapshot_cluster_new("/nonexistent/cluster.json", the_store, &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO));
    ck_assert_msg(strstr(error->message, "/nonexistent/cluster.json"), "%s", error->message);
}
END_TEST

/* --- bind ----------------------------------------------------------------------------------- */

static enum outcome bind_pod(const char *name, const char *uid, const char *node, const char *card,
                             GError **error)
{
    g_auto(annotations) written = {0};
    const struct binding binding = {
        .ns = "ns", .name = name, .uid = uid, .node = node, .annotations = &written};

    annotations_add(&written, "ALIYUN_COM_GPU_MEM_IDX", g_strdup(card));
    annotations_add(&written, "ALIYUN_COM_GPU_MEM_POD", g_strdup("4"));
    annotations_add(&written, "ALIYUN_COM_GPU_MEM_DEV", g_strdup("10"));
    annotations_add(&written, "ALIYUN_COM_GPU_MEM_ASSIGNED", g_strdup("false"));
    annotations_add(&written, "ALIYUN_COM_GPU_MEM_ASSUME_TIME", g_strdup("2"));
    return the_cluster->ops->bind(the_cluster, &binding, 0, error);
}

static enum outcome get_pod(struct json_arena *arena, const char *name, struct pod_view *ret_pod)
{
    return the_cluster->ops->get_pod(the_cluster, arena, "ns", name, 0, ret_pod, NULL);
}

START_TEST(binds_and_plays_the_node_side)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    load_good(cluster_text);
    ck_assert_int_eq(get_pod(arena, "free", &pod), OUTCOME_OK);
    ck_assert(!pod_view_is_bound(&pod));
    ck_assert_int_eq(bind_pod("free", "uid-free", "n1", "0", &error), OUTCOME_OK);

    ck_assert_int_eq(get_pod(arena, "free", &pod), OUTCOME_OK);
    ck_assert_str_eq(pod.node_name, "n1");
    ck_assert_str_eq(pod.phase, "Running");
    ck_assert(pod.started);
    ck_assert_str_eq(string_pairs_get(&pod.annotations, "ALIYUN_COM_GPU_MEM_IDX"), "0");
    ck_assert_str_eq(string_pairs_get(&pod.annotations, "ALIYUN_COM_GPU_MEM_ASSIGNED"), "true");

    ck_assert_int_eq(used("n1", 0), 4);
    ck_assert(!is_waiting("uid-free"));
    const struct allocation *allocation = ledger_get(store_lock(the_store), "uid-free");
    ck_assert(allocation && allocation->state == ALLOCATION_CONFIRMED && allocation->assigned &&
              !allocation->waiting);
    store_unlock(the_store);
}
END_TEST

/* As elastic-gpu's, which only reads. */
START_TEST(a_node_side_may_write_nothing)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_auto(annotations) written = {0};
    const struct binding binding = {
        .ns = "ns", .name = "e", .uid = "uid-e", .node = "n1", .annotations = &written};
    struct pod_view pod;

    load_good("{\"kind\":\"List\",\"items\":[{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},"
              "\"status\":{\"capacity\":{\"elasticgpu.io/gpu-core\":\"200\"}}},"
              "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"e\",\"uid\":\"uid-e\"},"
              "\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":"
              "{\"elasticgpu.io/gpu-core\":\"30\"}}}]}}]}");
    annotations_add(&written, "elasticgpu.io/assumed", g_strdup("true"));
    annotations_add(&written, "elasticgpu.io/container-c", g_strdup("1"));
    ck_assert_int_eq(the_cluster->ops->bind(the_cluster, &binding, 0, NULL), OUTCOME_OK);
    ck_assert_int_eq(get_pod(arena, "e", &pod), OUTCOME_OK);
    ck_assert_str_eq(pod.phase, "Running");
    const struct allocation *allocation = ledger_get(store_lock(the_store), "uid-e");
    ck_assert(allocation && allocation->assigned && allocation->shares[0].card == 1);
    store_unlock(the_store);
}
END_TEST

static const char obstacles_text[] =
    LIST(NODE("n1") "," POD("bound", "", ",\"nodeName\":\"n1\"", "") "," POD(
        "ending", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "",
        "") "," POD("gated", "", ",\"schedulingGates\":[{\"name\":\"x\"}]",
                    "") "," POD("fine", "", ",\"schedulingGates\":[]", ""));

struct obstacle {
    const char *name;
    const char *uid;
    enum outcome outcome;
    const char *message;
};

static const struct obstacle obstacles[] = {
    {"absent", "u", OUTCOME_NOT_FOUND, "pods \"absent\" not found"},
    {"bound", "uid-bound", OUTCOME_CONFLICT, "pod bound is already assigned to node \"n1\""},
    {"ending", "uid-ending", OUTCOME_CONFLICT, "pod ending is being deleted"},
    {"gated", "uid-gated", OUTCOME_CONFLICT, "schedulingGates"},
    {"fine", "uid-other", OUTCOME_CONFLICT, "UID in precondition: uid-other"},
};

START_TEST(refuses_as_the_api_server_does)
{
    const struct obstacle *row = &obstacles[_i];
    g_autoptr(GError) error = NULL;
    const bool known = row->outcome != OUTCOME_NOT_FOUND;

    load_good(obstacles_text);
    ck_assert_int_eq(bind_pod(row->name, row->uid, "n1", "0", &error), row->outcome);
    ck_assert_msg(strstr(error->message, row->message), "%s", error->message);
    ck_assert_int_eq(error->code, known ? GPULEDGER_ERROR_CONFLICT : GPULEDGER_ERROR_NOT_FOUND);
    ck_assert_int_eq(bind_pod("fine", "uid-fine", "n1", "0", NULL), OUTCOME_OK);
}
END_TEST

START_TEST(serves_the_verbs)
{
    struct extender extender = {.bind_timeout_ms = 1000};
    g_autoptr(GString) reply = g_string_new(NULL);
    static const char body[] =
        "{\"PodName\":\"free\",\"PodNamespace\":\"ns\",\"PodUID\":\"uid-free\",\"Node\":\"n1\"}";

    load_good(cluster_text);
    extender.store = the_store;
    extender.cluster = the_cluster;
    extender_bind(&extender, body, strlen(body), reply);
    ck_assert_str_eq(reply->str, "{\"Error\":\"\"}");
    /* Best fit: beside the pod that is there. */
    ck_assert_int_eq(used("n1", 1), 8);
}
END_TEST

/* --- pods that come and go ------------------------------------------------------------------ */

static bool add_pod(const char *body, GString *reply, GError **error)
{
    return snapshot_add_pod(the_cluster, body, strlen(body), reply, error);
}

START_TEST(adds_a_pod_and_fills_in_what_lacks)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    load_good(cluster_text);
    ck_assert_msg(add_pod("{\"metadata\":{\"name\":\"new\"},\"spec\":{\"containers\":[{\"name\":"
                          "\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}}}]}}",
                          reply, &error),
                  "%s", error ? error->message : "");
    ck_assert(pod_view_decode(arena, json_parse(arena, reply->str, reply->len, NULL), &pod, NULL));
    ck_assert_str_eq(pod.ns, "default");
    ck_assert_str_eq(pod.phase, "Pending");
    ck_assert_uint_eq(strlen(pod.uid), 36);
    ck_assert(pod.resource_version);
    ck_assert(is_waiting(pod.uid));
}
END_TEST

static char *version_of(const char *body)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    struct pod_view pod;

    ck_assert(add_pod(body, reply, NULL));
    ck_assert(pod_view_decode(arena, json_parse(arena, reply->str, reply->len, NULL), &pod, NULL));
    return g_strdup(pod.resource_version);
}

START_TEST(each_change_has_a_version_of_its_own)
{
    load_good(cluster_text);
    g_autofree char *one = version_of("{\"metadata\":{\"name\":\"one\"},\"spec\":{\"containers\":[{"
                                      "\"name\":\"c\"}]}}");
    g_autofree char *two = version_of("{\"metadata\":{\"name\":\"two\"},\"spec\":{\"containers\":[{"
                                      "\"name\":\"c\"}]}}");
    ck_assert_str_ne(one, two);
}
END_TEST

START_TEST(makes_up_a_name)
{
    g_autoptr(GString) reply = g_string_new(NULL);

    load_good(cluster_text);
    ck_assert(add_pod("{\"metadata\":{\"generateName\":\"job-\"}}", reply, NULL));
    ck_assert_msg(strstr(reply->str, "\"name\":\"job-"), "%s", reply->str);
}
END_TEST

struct unwanted {
    const char *body;
    int code;
    const char *message;
};

static const struct unwanted unwanted[] = {
    {"{", GPULEDGER_ERROR_INVALID, "invalid JSON"},
    {"[]", GPULEDGER_ERROR_INVALID, "field 'kind': expected \"Pod\""},
    {"{\"kind\":\"Node\"}", GPULEDGER_ERROR_INVALID, "field 'kind': expected \"Pod\""},
    {"{}", GPULEDGER_ERROR_INVALID, "'metadata.name'"},
    {"{\"metadata\":{\"name\":\"A_b\"}}", GPULEDGER_ERROR_INVALID, "'metadata.name'"},
    {"{\"metadata\":{\"name\":\"a\",\"namespace\":\"../x\"}}", GPULEDGER_ERROR_INVALID,
     "'metadata.namespace'"},
    {"{\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":7}}", GPULEDGER_ERROR_INVALID,
     "Pod default/a: field 'spec.containers'"},
    {POD("free", "", "", ""), GPULEDGER_ERROR_CONFLICT, "pods \"free\" already exists"},
    {"{\"metadata\":{\"name\":\"a\",\"uid\":\"uid-free\"}}", GPULEDGER_ERROR_CONFLICT,
     "is another pod's"},
};

START_TEST(refuses_pods_that_cannot_be)
{
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    load_good(cluster_text);
    ck_assert(!add_pod(unwanted[_i].body, reply, &error));
    ck_assert_int_eq(error->code, unwanted[_i].code);
    ck_assert_msg(strstr(error->message, unwanted[_i].message), "%s", error->message);
    ck_assert_uint_eq(reply->len, 0);
}
END_TEST

START_TEST(deletes_a_pod)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    load_good(cluster_text);
    ck_assert(snapshot_delete_pod(the_cluster, "ns", "held", &error));
    ck_assert_int_eq(used("n1", 1), 0);
    ck_assert_int_eq(get_pod(arena, "held", &pod), OUTCOME_NOT_FOUND);
    ck_assert(!snapshot_delete_pod(the_cluster, "ns", "held", &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_NOT_FOUND));
}
END_TEST

/* --- saving --------------------------------------------------------------------------------- */

static char *nodes_view(void)
{
    g_autoptr(GString) text = g_string_new(NULL);

    ck_assert(view_nodes(the_store, NULL, text));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

START_TEST(what_was_saved_loads_alike)
{
    const struct store_options options = {.patience_ms = 1000};
    g_autofree char *path = g_build_filename(directory, "saved", NULL);
    g_autofree char *again = g_build_filename(directory, "again", NULL);
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    g_autoptr(GError) error = NULL;

    load_good(cluster_text);
    ck_assert_int_eq(bind_pod("free", "uid-free", "n2", "1", NULL), OUTCOME_OK);
    g_autofree char *before = nodes_view();
    ck_assert_msg(snapshot_save(the_cluster, path, &error), "%s", error ? error->message : "");

    snapshot_cluster_free(the_cluster);
    store_free(the_store);
    the_store = store_new(&options);
    the_cluster = snapshot_cluster_new(path, the_store, &error);
    ck_assert_msg(the_cluster, "%s", error ? error->message : "");
    g_autofree char *after = nodes_view();
    ck_assert_str_eq(after, before);

    ck_assert(snapshot_save(the_cluster, again, NULL));
    ck_assert(g_file_get_contents(path, &first, NULL, NULL));
    ck_assert(g_file_get_contents(again, &second, NULL, NULL));
    ck_assert_str_eq(second, first);
}
END_TEST

START_TEST(a_list_fills_another_store_alike)
{
    static const struct store_options options = {.patience_ms = 1000};
    g_autoptr(store) other = store_new(&options);
    g_autoptr(GString) wanted = g_string_new(NULL);
    g_autoptr(GString) got = g_string_new(NULL);

    load_good(LIST(NODE("n1") "," POD("a", HELD("1"), ",\"nodeName\":\"n1\"",
                                      "\"phase\":\"Running\"") ","
                   CONFIGMAP("kube-system", "unhealthy-gpu-n1", "0")));
    for (int feed = 0; feed < FEED_N; feed++)
        ck_assert_int_eq(the_cluster->ops->list(the_cluster, (enum feed)feed, other, NULL),
                         OUTCOME_OK);
    ck_assert(store_is_synced(other));
    view_nodes(the_store, NULL, wanted);
    view_nodes(other, NULL, got);
    ck_assert_str_eq(got->str, wanted->str);
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_named)
{
    g_autoptr(GError) error = NULL;

    load_good(cluster_text);
    ck_assert(!snapshot_save(the_cluster, "/nonexistent/out.json", &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO));
    ck_assert_msg(strstr(error->message, "/nonexistent/out.json"), "%s", error->message);
}
END_TEST

/* --- many at once --------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 40

/* Pods that come, are bound and go; the last one stays. NULL if all went well. */
static void *come_and_go(void *data)
{
    const unsigned thread = GPOINTER_TO_UINT(data);

    for (unsigned round = 0; round < ROUNDS; round++) {
        g_autofree char *name = g_strdup_printf("t%u-%u", thread, round);
        g_autofree char *body = g_strdup_printf(
            "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":"
            "{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}}}]}}",
            name, name);
        g_autoptr(GString) reply = g_string_new(NULL);

        if (!add_pod(body, reply, NULL) ||
            bind_pod(name, name, thread % 2 ? "n1" : "n2", "0", NULL) != OUTCOME_OK ||
            bind_pod(name, name, "n1", "0", NULL) != OUTCOME_CONFLICT)
            return GUINT_TO_POINTER(round + 1);
        if (round + 1 < ROUNDS && !snapshot_delete_pod(the_cluster, "ns", name, NULL))
            return GUINT_TO_POINTER(round + 1);
    }
    return NULL;
}

START_TEST(changes_reach_the_store_in_order)
{
    pthread_t threads[THREADS];

    load_good(LIST(NODE("n1") "," NODE("n2")));
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, GUINT_TO_POINTER(i)), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *failure;

        pthread_join(threads[i], &failure);
        ck_assert_msg(!failure, "round %u failed", GPOINTER_TO_UINT(failure) - 1);
    }
    ck_assert_uint_eq(ledger_size(store_lock(the_store)), THREADS);
    store_unlock(the_store);
    ck_assert_int_eq(used("n1", 0), 4 * THREADS / 2);
    ck_assert_int_eq(used("n2", 0), 4 * THREADS / 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("snapshot");
    TCase *tcase = tcase_create("cluster");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, fills_the_store);
    tcase_add_loop_test(tcase, reads_what_kubectl_writes, 0, G_N_ELEMENTS(forms));
    tcase_add_loop_test(tcase, says_what_is_wrong_with_a_file, 0, G_N_ELEMENTS(refused));
    tcase_add_test(tcase, the_same_twice_is_no_harm);
    tcase_add_test(tcase, a_missing_file_is_named);
    tcase_add_test(tcase, binds_and_plays_the_node_side);
    tcase_add_test(tcase, a_node_side_may_write_nothing);
    tcase_add_loop_test(tcase, refuses_as_the_api_server_does, 0, G_N_ELEMENTS(obstacles));
    tcase_add_test(tcase, serves_the_verbs);
    tcase_add_test(tcase, adds_a_pod_and_fills_in_what_lacks);
    tcase_add_test(tcase, each_change_has_a_version_of_its_own);
    tcase_add_test(tcase, makes_up_a_name);
    tcase_add_loop_test(tcase, refuses_pods_that_cannot_be, 0, G_N_ELEMENTS(unwanted));
    tcase_add_test(tcase, deletes_a_pod);
    tcase_add_test(tcase, what_was_saved_loads_alike);
    tcase_add_test(tcase, a_list_fills_another_store_alike);
    tcase_add_test(tcase, a_file_that_cannot_be_written_is_named);
    tcase_add_test(tcase, changes_reach_the_store_in_order);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
