/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/kubernetes.h"

#include "parsed_json.h"
#include "suite.h"

#include <gpuledger/error.h>
#include <string.h>

/* --- pods ----------------------------------------------------------------------------------- */

#define META "\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\"}"

static struct pod_view decode_pod(const char *text)
{
    g_autoptr(GError) error = NULL;
    struct pod_view pod;

    ck_assert_msg(pod_view_decode(arena, parse(text), &pod, &error), "%s: %s", text,
                  error ? error->message : "");
    return pod;
}

START_TEST(decodes_a_pod)
{
    const struct pod_view pod = decode_pod(
        "{\"metadata\":{\"name\":\"train-0\",\"namespace\":\"ml\",\"uid\":\"7c1d\","
        "\"resourceVersion\":\"90071992547409931234\",\"deletionTimestamp\":\"2026-01-02T15:04:"
        "05Z\","
        "\"labels\":{\"app\":\"train\"},\"annotations\":{\"ALIYUN_COM_GPU_MEM_IDX\":\"1\"}},"
        "\"spec\":{\"nodeName\":\"gpu-1\",\"schedulerName\":\"default-scheduler\","
        "\"priority\":-10,\"initContainers\":["
        "{\"name\":\"fetch\",\"resources\":{\"requests\":{\"cpu\":\"100m\"}}},"
        "{\"name\":\"proxy\",\"restartPolicy\":\"Always\",\"resources\":{}}],"
        "\"containers\":[{\"name\":\"main\",\"restartPolicy\":\"Always\",\"resources\":{"
        "\"limits\":{\"aliyun.com/gpu-mem\":\"8k\"},\"requests\":{\"aliyun.com/gpu-mem\":8000,"
        "\"cpu\":0.5}}},{\"name\":\"side\"}]},"
        "\"status\":{\"phase\":\"Running\",\"nominatedNodeName\":\"gpu-2\","
        "\"startTime\":\"2026-01-02T15:04:06Z\"}}");

    ck_assert_str_eq(pod.name, "train-0");
    ck_assert_str_eq(pod.ns, "ml");
    ck_assert_str_eq(pod.uid, "7c1d");
    ck_assert_str_eq(pod.resource_version, "90071992547409931234");
    ck_assert_str_eq(pod.node_name, "gpu-1");
    ck_assert_str_eq(pod.scheduler_name, "default-scheduler");
    ck_assert_str_eq(pod.phase, "Running");
    ck_assert_str_eq(pod.nominated_node, "gpu-2");
    ck_assert_int_eq(pod.priority, -10);
    ck_assert(pod.terminating);
    ck_assert(pod.started);
    ck_assert_str_eq(pod.started_at, "2026-01-02T15:04:06Z");
    ck_assert_str_eq(string_pairs_get(&pod.labels, "app"), "train");
    ck_assert_str_eq(string_pairs_get(&pod.annotations, "ALIYUN_COM_GPU_MEM_IDX"), "1");

    ck_assert_uint_eq(pod.n_containers, 4);
    const struct container_view *main_container = &pod.containers[0];
    ck_assert_str_eq(main_container->name, "main");
    ck_assert(!main_container->init && !main_container->sidecar);
    ck_assert_str_eq(string_pairs_get(&main_container->limits, "aliyun.com/gpu-mem"), "8k");
    ck_assert_str_eq(string_pairs_get(&main_container->requests, "aliyun.com/gpu-mem"), "8000");
    ck_assert_str_eq(string_pairs_get(&main_container->requests, "cpu"), "0.5");
    ck_assert_str_eq(pod.containers[1].name, "side");
    ck_assert_uint_eq(pod.containers[1].limits.n, 0);
    ck_assert_str_eq(pod.containers[2].name, "fetch");
    ck_assert(pod.containers[2].init && !pod.containers[2].sidecar);
    ck_assert_str_eq(pod.containers[3].name, "proxy");
    ck_assert(pod.containers[3].init && pod.containers[3].sidecar);
}
END_TEST

START_TEST(a_pod_needs_no_more_than_its_identity)
{
    const struct pod_view pod = decode_pod("{" META ",\"spec\":{\"containers\":null},"
                                           "\"status\":null}");

    ck_assert_ptr_null(pod.node_name);
    ck_assert_ptr_null(pod.phase);
    ck_assert_ptr_null(pod.nominated_node);
    ck_assert_ptr_null(pod.resource_version);
    ck_assert(!pod.terminating && !pod.started);
    ck_assert_int_eq(pod.priority, 0);
    ck_assert_uint_eq(pod.annotations.n, 0);
    ck_assert_uint_eq(pod.n_containers, 0);
}
END_TEST

/* The keys of API objects have one spelling. */
START_TEST(a_pod_is_read_with_regard_to_case)
{
    const struct pod_view pod = decode_pod("{" META ",\"spec\":{\"NodeName\":\"x\","
                                           "\"Containers\":[{}]},\"Status\":{"
                                           "\"phase\":\"Failed\"}}");

    ck_assert_ptr_null(pod.node_name);
    ck_assert_ptr_null(pod.phase);
    ck_assert_uint_eq(pod.n_containers, 0);
}
END_TEST

static const struct {
    const char *text;
    const char *message;
} bad_pods[] = {
    {"[]", "expected a JSON object"},
    {"{}", "field 'metadata.name': missing"},
    {"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}", "field 'metadata.namespace': missing"},
    {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"\"}}",
     "field 'metadata.namespace': must not be empty"},
    {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}", "field 'metadata.uid': missing"},
    {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"\"}}",
     "field 'metadata.uid': must not be empty"},
    {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":7}}",
     "field 'metadata.uid': expected a string"},
    {"{" META ",\"spec\":[]}", "field 'spec': expected an object"},
    {"{" META ",\"spec\":{\"priority\":\"1\"}}", "field 'spec.priority': expected a number"},
    {"{" META ",\"spec\":{\"containers\":{}}}", "field 'spec.containers': expected an array"},
    {"{" META ",\"spec\":{\"containers\":[{},null]}}",
     "field 'spec.containers': item 1: expected a JSON object"},
    {"{" META ",\"spec\":{\"initContainers\":[{\"resources\":{\"limits\":{\"x\":true}}}]}}",
     "field 'spec.initContainers': item 0: field 'resources.limits': value of 'x' is not a string "
     "or a number"},
    {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"annotations\":{\"x\":1}}}",
     "field 'metadata.annotations': value of 'x' is not a string"},
};

START_TEST(says_what_is_wrong_with_a_pod)
{
    g_autoptr(GError) error = NULL;
    struct pod_view pod = {.name = "untouched"};

    ck_assert_msg(!pod_view_decode(arena, parse(bad_pods[_i].text), &pod, &error), "%s",
                  bad_pods[_i].text);
    ck_assert_str_eq(error->message, bad_pods[_i].message);
    ck_assert_str_eq(pod.name, "untouched");
}
END_TEST

START_TEST(an_anonymous_pod_may_lack_its_uid)
{
    g_autoptr(GError) error = NULL;
    struct pod_view pod;
    const cJSON *object = parse("{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}");

    ck_assert(pod_view_decode_anonymous(arena, object, &pod, &error));
    ck_assert_ptr_null(pod.uid);
    ck_assert(!pod_view_decode_anonymous(arena, parse("{}"), &pod, &error));
    ck_assert_str_eq(error->message, "field 'metadata.name': missing");
}
END_TEST

static char *pod_with_containers(size_t n, size_t n_init)
{
    GString *text = g_string_new("{" META ",\"spec\":{\"containers\":[");

    for (size_t i = 0; i < n; i++)
        g_string_append(text, i ? ",{}" : "{}");
    g_string_append(text, "],\"initContainers\":[");
    for (size_t i = 0; i < n_init; i++)
        g_string_append(text, i ? ",{}" : "{}");
    g_string_append(text, "]}}");
    return g_string_free(text, FALSE);
}

START_TEST(further_containers_are_not_read)
{
    g_autofree char *all = pod_with_containers(POD_CONTAINERS_MAX - 1, 1);
    g_autofree char *more = pod_with_containers(POD_CONTAINERS_MAX, 1);
    g_autofree char *many = pod_with_containers(POD_CONTAINERS_MAX + 5, 0);
    struct pod_view pod = decode_pod(all);

    ck_assert_uint_eq(pod.n_containers, POD_CONTAINERS_MAX);
    ck_assert(!pod.truncated);
    ck_assert(pod.containers[POD_CONTAINERS_MAX - 1].init);
    pod = decode_pod(more);
    ck_assert_uint_eq(pod.n_containers, POD_CONTAINERS_MAX);
    ck_assert(pod.truncated);
    ck_assert(decode_pod(many).truncated);
}
END_TEST

/* --- other objects -------------------------------------------------------------------------- */

START_TEST(decodes_a_node)
{
    g_autoptr(GError) error = NULL;
    struct node_view node;

    ck_assert(node_view_decode(
        arena,
        parse("{\"kind\":\"Node\",\"metadata\":{\"name\":\"gpu-1\",\"labels\":{\"gpushare\":"
              "\"true\"},"
              "\"annotations\":{\"a\":\"b\"}},\"spec\":{},\"status\":{\"capacity\":{"
              "\"aliyun.com/gpu-mem\":\"32\",\"aliyun.com/gpu-count\":2},"
              "\"allocatable\":{\"aliyun.com/gpu-mem\":\"30\"}}}"),
        &node, &error));
    ck_assert_str_eq(node.name, "gpu-1");
    ck_assert_str_eq(string_pairs_get(&node.labels, "gpushare"), "true");
    ck_assert_str_eq(string_pairs_get(&node.annotations, "a"), "b");
    ck_assert_str_eq(string_pairs_get(&node.capacity, "aliyun.com/gpu-mem"), "32");
    ck_assert_str_eq(string_pairs_get(&node.capacity, "aliyun.com/gpu-count"), "2");
    ck_assert_str_eq(string_pairs_get(&node.allocatable, "aliyun.com/gpu-mem"), "30");

    ck_assert(!node_view_decode(arena, parse("{\"metadata\":{}}"), &node, &error));
    ck_assert_str_eq(error->message, "field 'metadata.name': missing");
    ck_assert_str_eq(node.name, "gpu-1");
    g_clear_error(&error);
    ck_assert(!node_view_decode(
        arena, parse("{\"metadata\":{\"name\":\"n\"},\"status\":{\"capacity\":[1]}}"), &node,
        &error));
    ck_assert_str_eq(error->message, "field 'status.capacity': expected an object");
}
END_TEST

START_TEST(decodes_a_configmap)
{
    g_autoptr(GError) error = NULL;
    struct configmap_view configmap;

    ck_assert(configmap_view_decode(
        arena,
        parse(
            "{\"metadata\":{\"name\":\"c\",\"namespace\":\"kube-system\"},\"data\":{\"k\":\"0,1\"},"
            "\"binaryData\":{\"b\":\"AA==\"}}"),
        &configmap, &error));
    ck_assert_str_eq(configmap.ns, "kube-system");
    ck_assert_str_eq(configmap.name, "c");
    ck_assert_uint_eq(configmap.data.n, 1);
    ck_assert_str_eq(string_pairs_get(&configmap.data, "k"), "0,1");

    ck_assert(!configmap_view_decode(
        arena, parse("{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\"},\"data\":{\"k\":1}}"),
        &configmap, &error));
    ck_assert_str_eq(error->message, "field 'data': value of 'k' is not a string");
    g_clear_error(&error);
    ck_assert(!configmap_view_decode(arena, parse("{\"metadata\":{\"name\":\"c\"}}"), &configmap,
                                     &error));
    ck_assert_str_eq(error->message, "field 'metadata.namespace': missing");
}
END_TEST

START_TEST(decodes_a_status)
{
    g_autoptr(GError) error = NULL;
    struct status_view status;

    ck_assert(status_view_decode(
        arena,
        parse("{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"slow down\","
              "\"reason\":\"TooManyRequests\",\"code\":429,\"details\":{\"retryAfterSeconds\":2}}"),
        &status, &error));
    ck_assert_str_eq(status.reason, "TooManyRequests");
    ck_assert_str_eq(status.message, "slow down");
    ck_assert_int_eq(status.code, 429);
    ck_assert_int_eq(status.retry_after_s, 2);

    ck_assert(status_view_decode(arena, parse("{}"), &status, &error));
    ck_assert_ptr_null(status.reason);
    ck_assert_ptr_null(status.message);
    ck_assert_int_eq(status.code, 0);
    ck_assert_int_eq(status.retry_after_s, 0);

    ck_assert(!status_view_decode(arena, parse("{\"details\":\"x\"}"), &status, &error));
    ck_assert_str_eq(error->message, "field 'details': expected an object");
}
END_TEST

/* --- bodies that we send -------------------------------------------------------------------- */

START_TEST(encodes_a_binding)
{
    char value[] = "say \"1\"", card[] = "example.com/card", empty[] = "example.com/empty";
    const struct annotations annotations = {.n = 2,
                                            .items = {{card, value}, {empty, value + 7}}};
    struct binding binding = {
        .ns = "ml", .name = "train-0", .uid = "7c1d", .node = "gpu-1", .annotations = &annotations};
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    binding_encode(&writer, &binding);
    ck_assert_str_eq(
        text->str, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"train-0\","
                   "\"namespace\":\"ml\",\"uid\":\"7c1d\",\"annotations\":{\"example.com/card\":"
                   "\"say \\\"1\\\"\",\"example.com/empty\":\"\"}},"
                   "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"gpu-1\"}}");
    g_string_free(text, TRUE);
}
END_TEST

START_TEST(a_binding_can_label_the_pod)
{
    g_autofree char *longest = g_strnfill(LABEL_VALUE_MAX, 'n');
    g_autofree char *longer = g_strnfill(LABEL_VALUE_MAX + 1, 'n');
    const struct {
        const char *node, *labels; /* NULL: none */
    } cases[] = {{"gpu-1", "\"labels\":{\"example.com/node\":\"gpu-1\"}"},
                 {longest, "\"labels\":"},
                 {longer, NULL}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        struct json_writer writer;
        json_writer_init(&writer, text);
        binding_encode(&writer, &(struct binding){.ns = "a", .name = "b", .uid = "c",
                                                  .node = cases[i].node,
                                                  .node_label = "example.com/node"});
        const char *found = strstr(text->str, cases[i].labels ? cases[i].labels : "labels");
        ck_assert_msg((found != NULL) == (cases[i].labels != NULL), "%s", text->str);
    }
}
END_TEST

START_TEST(a_plain_binding_has_no_annotations)
{
    const struct annotations none = {.n = 0};
    const struct annotations *const plain[] = {NULL, &none};

    for (size_t i = 0; i < G_N_ELEMENTS(plain); i++) {
        const struct binding binding = {
            .ns = "a", .name = "b", .uid = "c", .node = "d", .annotations = plain[i]};
        GString *text = g_string_new(NULL);
        struct json_writer writer;

        json_writer_init(&writer, text);
        binding_encode(&writer, &binding);
        ck_assert_str_eq(text->str,
                         "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"b\","
                         "\"namespace\":\"a\",\"uid\":\"c\"},"
                         "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"d\"}}");
        g_string_free(text, TRUE);
    }
}
END_TEST

START_TEST(encodes_an_annotation)
{
    const struct pod_annotation annotation = {
        .ns = "ml", .name = "a", .uid = "7c1d", .key = "example.com/x", .value = "\"1\""};
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    pod_annotation_encode(&writer, &annotation);
    ck_assert_str_eq(text->str, "{\"metadata\":{\"uid\":\"7c1d\",\"annotations\":"
                                "{\"example.com/x\":\"\\\"1\\\"\"}}}");

    g_auto(annotations) several = {0};
    annotations_add(&several, "example.com/x", g_strdup("1"));
    annotations_add(&several, "example.com/y", g_strdup("2"));
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    pod_annotation_encode(&writer, &(struct pod_annotation){"ml", "a", "7c1d", .all = &several});
    ck_assert_str_eq(text->str, "{\"metadata\":{\"uid\":\"7c1d\",\"annotations\":"
                                "{\"example.com/x\":\"1\",\"example.com/y\":\"2\"}}}");
}
END_TEST

START_TEST(encodes_an_annotation_of_a_node)
{
    struct node_annotation wanted = {
        .node = "n1", .version = "17", .key = "example.com/x", .value = "t,ns,\"p\""};
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    node_annotation_encode(&writer, &wanted);
    ck_assert_str_eq(text->str, "{\"metadata\":{\"resourceVersion\":\"17\",\"annotations\":"
                                "{\"example.com/x\":\"t,ns,\\\"p\\\"\"}}}");
    wanted.value = NULL;
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    node_annotation_encode(&writer, &wanted);
    ck_assert_str_eq(text->str, "{\"metadata\":{\"resourceVersion\":\"17\",\"annotations\":"
                                "{\"example.com/x\":null}}}");
}
END_TEST

START_TEST(encodes_an_event)
{
    struct event_object event = {
        .ns = "ml",
        .name = "a.17",
        .pod = "a",
        .pod_uid = "7c1d",
        .time = "2026-01-02T15:04:05.000000Z",
        .reason = "Why",
        .action = "Looking",
        .controller = "example.com/x",
        .instance = "x-0",
        .note = "So.",
    };
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    event_encode(&writer, &event);
    ck_assert_str_eq(
        text->str,
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{"
        "\"name\":\"a.17\",\"namespace\":\"ml\"},"
        "\"eventTime\":\"2026-01-02T15:04:05.000000Z\",\"type\":\"Warning\",\"reason\":\"Why\","
        "\"action\":\"Looking\",\"reportingController\":\"example.com/x\","
        "\"reportingInstance\":\"x-0\",\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
        "\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"7c1d\"},\"note\":\"So.\"}");
    event.kind = "Namespace";
    event.pod = "ml";
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    event_encode(&writer, &event);
    ck_assert(strstr(text->str, "\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
                                "\"namespace\":\"ml\",\"name\":\"ml\"},"));
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    event_series_encode(&writer, 2, "2026-01-02T15:04:05.000000Z");
    ck_assert_str_eq(text->str, "{\"series\":{\"count\":2,\"lastObservedTime\":"
                                "\"2026-01-02T15:04:05.000000Z\"}}");
}
END_TEST

START_TEST(a_micro_time_has_six_digits)
{
    g_autofree char *whole = micro_time_format(INT64_C(1767366245000000));
    g_autofree char *odd = micro_time_format(INT64_C(1767366245000042));
    g_autofree char *early = micro_time_format(INT64_C(-30673295940000000));

    ck_assert_str_eq(whole, "2026-01-02T15:04:05.000000Z");
    ck_assert_str_eq(odd, "2026-01-02T15:04:05.000042Z");
    ck_assert_str_eq(early, "0998-01-01T00:01:00.000000Z");
}
END_TEST

/* What is written of a view reads back as the same view. */
START_TEST(a_view_is_written_as_it_was_read)
{
    static const char pod_text[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\",\"uid\":\"7c1d\","
        "\"resourceVersion\":\"5\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\","
        "\"deletionTimestamp\":true,\"labels\":{\"l\":\"1\"},\"annotations\":{\"k\":\"v\"}},"
        "\"spec\":{\"nodeName\":\"n1\",\"schedulerName\":\"s\",\"priority\":7,"
        "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"x/y\":\"2\"},"
        "\"requests\":{\"cpu\":\"1\"}}}],"
        "\"initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\"},{\"name\":\"j\"}]},"
        "\"status\":{\"phase\":\"Running\",\"nominatedNodeName\":\"n2\",\"startTime\":true,"
        "\"startedAt\":\"2026-01-02T00:00:00Z\"}}";
    static const char node_text[] =
        "{\"metadata\":{\"name\":\"n1\",\"resourceVersion\":\"6\",\"labels\":{\"l\":\"1\"},"
        "\"annotations\":{\"k\":\"v\"}},\"status\":{\"capacity\":{\"x/y\":\"4\"},"
        "\"allocatable\":{\"x/y\":\"3\"}}}";
    static const char configmap_text[] =
        "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\"},\"data\":{\"k\":\"v\"}}";
    g_autoptr(GString) text = g_string_new(NULL);
    struct configmap_view configmap = {0};
    struct node_view node = {0};
    struct pod_view pod = {0};
    struct json_writer writer;

    ck_assert(pod_view_decode(arena, parse(pod_text), &pod, NULL));
    json_writer_init(&writer, text);
    pod_view_encode(&writer, &pod);
    ck_assert_str_eq(text->str, pod_text);
    ck_assert(node_view_decode(arena, parse(node_text), &node, NULL));
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    node_view_encode(&writer, &node);
    ck_assert_str_eq(text->str, node_text);
    ck_assert(configmap_view_decode(arena, parse(configmap_text), &configmap, NULL));
    g_string_truncate(text, 0);
    json_writer_init(&writer, text);
    configmap_view_encode(&writer, &configmap);
    ck_assert_str_eq(text->str, configmap_text);
}
END_TEST

START_TEST(what_may_be_secret_is_not_written)
{
    static const char pod_text[] =
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\",\"uid\":\"7c1d\",\"managedFields\":[1],"
        "\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"S\","
        "\"k\":\"v\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"value\":\"S\"}],"
        "\"args\":[\"S\"]}]}}";
    g_autoptr(GString) text = g_string_new(NULL);
    struct pod_view pod = {0};
    struct json_writer writer;

    ck_assert(pod_view_decode(arena, parse(pod_text), &pod, NULL));
    json_writer_init(&writer, text);
    pod_view_encode(&writer, &pod);
    ck_assert_str_eq(text->str,
                     "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\",\"uid\":\"7c1d\","
                     "\"annotations\":{\"k\":\"v\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}],"
                     "\"initContainers\":[]}}");
}
END_TEST

/* Of the environment one variable is read, and written without what else it says. */
START_TEST(a_container_may_switch_its_limits_off)
{
    static const struct {
        const char *environment;
        enum hook_word hook;
        const char *written;
    } cases[] = {
        {"[]", HOOK_UNSAID, ""},
        {"[{\"name\":\"X\",\"value\":\"true\"},{\"value\":\"1\"},7]", HOOK_UNSAID, ""},
        {"[{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"T\"}]", HOOK_OFF, "true"},
        {"[{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"tRUE\"}]", HOOK_NAMED, ""},
        {"[{\"name\":\"CUDA_DISABLE_CONTROL\",\"valueFrom\":{\"a\":\"S\"}}]", HOOK_NAMED, ""},
        {"[{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"0\"},"
         "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"1\"},{\"name\":\"P\",\"value\":\"S\"}]",
         HOOK_OFF, "true"},
    };
    const char *environment = cases[_i].environment;
    g_autofree char *text = g_strdup_printf("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\","
                                            "\"uid\":\"7c1d\"},\"spec\":{\"containers\":["
                                            "{\"name\":\"c\",\"env\":%s},{\"name\":\"d\"}]}}",
                                            environment);
    g_autofree char *written = g_strdup_printf(
        "{\"name\":\"c\"%s%s%s},{\"name\":\"d\"}",
        cases[_i].hook ? ",\"env\":[{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"" : "",
        cases[_i].written, cases[_i].hook ? "\"}]" : "");
    g_autoptr(GString) record = g_string_new(NULL);
    struct pod_view pod = {0}, again = {0};
    struct json_writer writer;

    ck_assert(pod_view_decode(arena, parse(text), &pod, NULL));
    ck_assert_int_eq(pod.containers[0].hook, cases[_i].hook);
    ck_assert_int_eq(pod.containers[1].hook, HOOK_UNSAID);
    json_writer_init(&writer, record);
    pod_view_encode(&writer, &pod);
    ck_assert_ptr_nonnull(strstr(record->str, written));
    ck_assert(pod_view_decode(arena, parse(record->str), &again, NULL));
    ck_assert_int_eq(again.containers[0].hook, cases[_i].hook);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kubernetes");
    TCase *tests = tcase_create("objects");

    suite_add_tcase(suite, tests);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, decodes_a_pod);
    tcase_add_test(tests, a_pod_needs_no_more_than_its_identity);
    tcase_add_test(tests, a_pod_is_read_with_regard_to_case);
    tcase_add_loop_test(tests, says_what_is_wrong_with_a_pod, 0, G_N_ELEMENTS(bad_pods));
    tcase_add_test(tests, an_anonymous_pod_may_lack_its_uid);
    tcase_add_test(tests, further_containers_are_not_read);
    tcase_add_test(tests, decodes_a_node);
    tcase_add_test(tests, decodes_a_configmap);
    tcase_add_test(tests, decodes_a_status);
    tcase_add_test(tests, encodes_a_binding);
    tcase_add_test(tests, a_binding_can_label_the_pod);
    tcase_add_test(tests, a_plain_binding_has_no_annotations);
    tcase_add_test(tests, encodes_an_annotation);
    tcase_add_test(tests, encodes_an_annotation_of_a_node);
    tcase_add_test(tests, encodes_an_event);
    tcase_add_test(tests, a_micro_time_has_six_digits);
    tcase_add_test(tests, a_view_is_written_as_it_was_read);
    tcase_add_test(tests, what_may_be_secret_is_not_written);
    tcase_add_loop_test(tests, a_container_may_switch_its_limits_off, 0, 6);

    return suite_run(suite);
}
