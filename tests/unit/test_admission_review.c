/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods that ask for memory of a MIG instance get a profile by its name before they exist.
 */
#include "literals.h"

#include "verbs/admission.h"
#include "suite.h"
#include "wire/admission.h"

#include <gpuledger/error.h>
#include <string.h>

#define MIG "nvidia.com/mig-"

static struct extender extender;
static struct json_arena *arena;
static GString *reply;

static void add_node(const char *name, bool cordoned, struct string_pairs capacity)
{
    store_apply_node(extender.store,
                     &(struct node_view){.name = name, .cordoned = cordoned, .capacity = capacity});
}

static void hold(const char *uid, const char *node, const char *resource)
{
    store_apply_pod(extender.store,
                    &(struct pod_view){.ns = "ml", .name = uid, .uid = uid, .node_name = node,
                                       .phase = "Running",
                                       CONTAINERS({.name = "c", .limits = PAIRS({resource, "1"})})});
}

static void setup(void)
{
    extender = (struct extender){.store = store_new(&(struct store_options){.patience_ms = 1}), .admits = true};
    arena = json_arena_new();
    reply = g_string_new(NULL);
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_begin(extender.store, feed);
    add_node("a100", false,
             PAIRS({MIG "1g.5gb", "2"}, {MIG "2g.10gb", "1"}, {MIG "3g.20gb", "1"},
                   {MIG "1g.10gb", "1"}, {MIG "1g.5gb.me", "1"}, {MIG "7g.80gb.shared", "9"}));
    add_node("idle", true, PAIRS({MIG "7g.40gb", "1"}));
    for (int feed = 0; feed < FEED_N; feed++)
        store_list_end(extender.store, feed);
}

static void teardown(void)
{
    store_free(extender.store);
    json_arena_free(arena);
    g_string_free(reply, TRUE);
}

/* Asks about a pod with this spec. */
static bool review(const char *spec, GError **error)
{
    g_autofree char *body = g_strdup_printf(
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"r1\",\"operation\":\"CREATE\",\"object\":{\"metadata\":{\"generateName\":"
        "\"p-\"},\"spec\":%s}}}", spec);

    g_string_truncate(reply, 0);
    return extender_admit_mig(&extender, body, strlen(body), reply, error);
}

static const cJSON *response(bool allowed)
{
    const cJSON *answer = json_parse(arena, reply->str, reply->len, NULL);
    const cJSON *part = cJSON_GetObjectItem(answer, "response");

    ck_assert_str_eq(cJSON_GetObjectItem(answer, "kind")->valuestring, "AdmissionReview");
    ck_assert_str_eq(cJSON_GetObjectItem(part, "uid")->valuestring, "r1");
    ck_assert_msg(cJSON_IsTrue(cJSON_GetObjectItem(part, "allowed")) == allowed, "%s", reply->str);
    return part;
}

static void expect_patch(const char *spec, const char *expected)
{
    ck_assert(review(spec, NULL));
    const cJSON *patch = cJSON_GetObjectItem(response(true), "patch");
    gsize length = 0;
    g_autofree char *text =
        patch ? (char *)g_base64_decode(patch->valuestring, &length) : g_strdup("");
    g_autofree char *terminated = g_strndup(text, patch ? length : 0);
    ck_assert_str_eq(terminated, expected);
}

static void expect_refusal(const char *spec, const char *message)
{
    ck_assert(review(spec, NULL));
    const cJSON *status = cJSON_GetObjectItem(response(false), "status");
    const char *text = cJSON_GetObjectItem(status, "message")->valuestring;
    ck_assert_msg(strstr(text, message) != NULL, "%s", text);
}

/* One container that asks so, and for nothing else. */
#define ASKS(more) "{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{" more "}}}]}"
#define MEMORY(text) "\"gpuledger.io/mig-memory\":\"" text "\""

static void expect_profile(const char *asks, const char *profile)
{
    const char *slices = strstr(asks, "mig-slices")
                             ? "{\"op\":\"remove\",\"path\":\"/spec/containers/0/resources/"
                               "requests/gpuledger.io~1mig-slices\"},"
                             : "";
    g_autofree char *expected = g_strdup_printf(
        "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits\",\"value\":{\"" MIG
        "%s\":\"1\"}},{\"op\":\"remove\",\"path\":\"/spec/containers/0/resources/requests/"
        "gpuledger.io~1mig-memory\"},%s{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/"
        "requests/nvidia.com~1mig-%s\",\"value\":\"1\"}]", profile, slices, profile);

    expect_patch(asks, expected);
}

START_TEST(the_smallest_profile_that_is_enough)
{
    expect_profile(ASKS(MEMORY("1Mi")), "1g.5gb");
    expect_profile(ASKS(MEMORY("5Gi")), "1g.5gb");
    expect_profile(ASKS(MEMORY("6Gi")), "1g.10gb");
    expect_profile(ASKS(MEMORY("10Gi") ",\"gpuledger.io/mig-slices\":\"2\""), "2g.10gb");
    expect_profile(ASKS(MEMORY("10Gi") ",\"gpuledger.io/mig-slices\":3"), "3g.20gb");
    expect_profile(ASKS(MEMORY("15Gi")), "3g.20gb");
}
END_TEST

START_TEST(a_free_instance_goes_first)
{
    hold("a", "a100", MIG "1g.10gb");
    expect_profile(ASKS(MEMORY("10Gi")), "2g.10gb");
    hold("b", "a100", MIG "2g.10gb");
    expect_profile(ASKS(MEMORY("10Gi")), "3g.20gb");
    hold("c", "a100", MIG "3g.20gb");
    expect_profile(ASKS(MEMORY("10Gi")), "1g.10gb"); /* it is waited for */
    store_delete_pod(extender.store, "b");
    expect_profile(ASKS(MEMORY("10Gi")), "2g.10gb");
}
END_TEST

#define ASK(container, memory)                                                                     \
    "{\"name\":\"" container "\",\"resources\":{\"requests\":{" MEMORY(memory) "}}}"
#define ASK_BY_NAME "{\"name\":\"n\",\"resources\":{\"limits\":{\"" MIG "1g.5gb\":\"2\"}}}"
#define ASK_DEFAULTED                                                                              \
    "{\"name\":\"n\",\"resources\":{\"limits\":{\"" MIG "2g.10gb\":\"1\"},\"requests\":{\"" MIG    \
    "2g.10gb\":\"1\"}}}"
#define POD(containers) "{\"containers\":[" containers "]}"

/* What the containers of the pod are made to ask for, in their order. */
static char *profiles_of(const char *spec)
{
    g_autoptr(GString) profiles = g_string_new(NULL);
    gsize length;

    ck_assert(review(spec, NULL));
    const cJSON *item, *patch = cJSON_GetObjectItem(response(true), "patch");
    g_autofree char *text = (char *)g_base64_decode(patch->valuestring, &length);
    cJSON_ArrayForEach(item, json_parse(arena, text, length, NULL))
    {
        const cJSON *value = cJSON_GetObjectItem(item, "value");
        if (cJSON_IsObject(value))
            g_string_append_printf(profiles, "%s%s", profiles->len ? " " : "",
                                   value->child->string + strlen(MIG));
    }
    return g_string_free(g_steal_pointer(&profiles), FALSE);
}

static const struct {
    const char *spec, *profiles;
} pods[] = {
    {POD(ASK("a", "5Gi") "," ASK("b", "5Gi")), "1g.5gb 1g.5gb"},
    {POD(ASK("a", "5Gi") "," ASK("b", "5Gi") "," ASK("c", "5Gi")), "1g.5gb 1g.5gb 1g.5gb.me"},
    {POD(ASK("a", "10Gi") "," ASK("b", "10Gi")), "1g.10gb 2g.10gb"},
    {POD(ASK("a", "10Gi") "," ASK("b", "10Gi") "," ASK("c", "10Gi")), "1g.10gb 2g.10gb 3g.20gb"},
    {POD(ASK("a", "5Gi") "," ASK("b", "5Gi") "," ASK("c", "5Gi") "," ASK("d", "5Gi") "," ASK(
         "e", "20Gi") "," ASK("f", "5Gi")),
     "1g.5gb 1g.5gb 1g.5gb.me 1g.10gb 3g.20gb 2g.10gb"},
    {POD(ASK("a", "5Gi") "," ASK_BY_NAME), "1g.5gb.me"},
    /* The API server has set the request to the limit: that is one instance, all that there are. */
    {POD(ASK("a", "5Gi") "," ASK_DEFAULTED), "1g.5gb"},
    /* An init container is gone before the others start. */
    {"{\"initContainers\":[" ASK("i", "20Gi") "],"
                                              "\"containers\":[" ASK("a", "20Gi") "]}",
     "3g.20gb 3g.20gb"},
};

START_TEST(one_node_has_what_a_pod_gets)
{
    g_autofree char *profiles = profiles_of(pods[_i].spec);

    ck_assert_str_eq(profiles, pods[_i].profiles);
}
END_TEST

START_TEST(several_nodes_are_not_one)
{
    add_node("a30", false, PAIRS({MIG "1g.6gb", "1"}));
    add_node("h100", false, PAIRS({MIG "1g.6gb", "1"}));
    /* 1g.6gb would be the least for each, but no node has it twice. */
    g_autofree char *profiles = profiles_of(POD(ASK("a", "6Gi") "," ASK("b", "6Gi")));
    ck_assert_str_eq(profiles, "1g.10gb 2g.10gb");
    expect_profile(ASKS(MEMORY("6Gi")), "1g.6gb");
    /* Those that some node has free go before smaller ones that are all taken. */
    hold("h", "a30", MIG "1g.6gb");
    hold("i", "h100", MIG "1g.6gb");
    expect_profile(ASKS(MEMORY("6Gi")), "1g.10gb");
    /* Who comes first gives way to who can have no other. */
    store_delete_node(extender.store, "a100");
    store_delete_node(extender.store, "h100");
    add_node("a30", false, PAIRS({MIG "2g.10gb", "1"}, {MIG "1g.20gb", "1"}));
    g_autofree char *swapped = profiles_of(
        POD(ASK("a", "10Gi") ",{\"resources\":{\"requests\":{" MEMORY("5Gi")
            ",\"gpuledger.io/mig-slices\":\"2\"}}}"));
    ck_assert_str_eq(swapped, "1g.20gb 2g.10gb");
    expect_refusal(POD(ASK("a", "20Gi") "," ASK("b", "20Gi")),
                   "no node has MIG instances for all 2 containers of the pod");
    expect_refusal("{\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{"
                   MEMORY("20Gi") "}}}],\"containers\":[" ASK("a", "20Gi") "]}", "all 2 containers");
    expect_refusal(POD(ASK("a", "5Gi") "," ASK("b", "21Gi")), "container 'b': no node has a MIG");
}
END_TEST

START_TEST(what_there_is_not_is_refused)
{
    expect_refusal(ASKS(MEMORY("21Gi")), "container 'c': no node has a MIG profile with 21Gi of "
                                         "memory and 0 slices; the largest is " MIG "3g.20gb");
    expect_refusal(ASKS(MEMORY("1Gi") ",\"gpuledger.io/mig-slices\":\"4\""), "and 4 slices");
    store_delete_node(extender.store, "a100");
    expect_refusal(ASKS(MEMORY("1Gi")), "no node has any");
}
END_TEST

START_TEST(mistakes_are_told)
{
    expect_refusal(ASKS(MEMORY("much")), "is 'much': write an amount of memory");
    expect_refusal(ASKS(MEMORY("5")), "write an amount of memory"); /* a forgotten unit */
    expect_refusal(ASKS("\"gpuledger.io/mig-slices\":\"2\""), "write an amount of memory");
    expect_refusal(ASKS(MEMORY("5Gi") ",\"gpuledger.io/mig-slices\":\"0\""), "a whole number");
    expect_refusal("{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" MEMORY(
                       "10Gi") "},\"requests\":{" MEMORY("5Gi") "}}}]}",
                   "is '10Gi' in limits and '5Gi' in requests");
    expect_refusal(ASKS(MEMORY("5Gi") ",\"" MIG "1g.5gb\":\"1\""), "keep one");
}
END_TEST

START_TEST(each_container_gets_its_own)
{
    expect_patch("{\"initContainers\":[{\"name\":\"i\"},{\"name\":\"j\",\"resources\":{\"limits\":{"
                 MEMORY("5Gi") "},\"requests\":{" MEMORY("5Gi") ",\"cpu\":\"1\"}}}],"
                 "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":\"1\"}}}]}",
                 "[{\"op\":\"remove\",\"path\":\"/spec/initContainers/1/resources/limits/"
                 "gpuledger.io~1mig-memory\"},{\"op\":\"add\",\"path\":\"/spec/initContainers/1/"
                 "resources/limits/nvidia.com~1mig-1g.5gb\",\"value\":\"1\"},{\"op\":\"remove\","
                 "\"path\":\"/spec/initContainers/1/resources/requests/gpuledger.io~1mig-memory\"},"
                 "{\"op\":\"add\",\"path\":\"/spec/initContainers/1/resources/requests/"
                 "nvidia.com~1mig-1g.5gb\",\"value\":\"1\"}]");
    expect_patch("{\"containers\":[{\"name\":\"c\"}]}", "");
}
END_TEST

START_TEST(what_is_no_review_is_an_error)
{
    static const char *const bodies[] = {
        "", "{}", "[]",
        "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"request\":{\"uid\":\"r\",\"object\":{"
        "\"spec\":{\"containers\":[]}}}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"r\"}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":\"r\",\"object\":{"
        "\"spec\":{\"containers\":[7]}}}}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert(!extender_admit_mig(&extender, bodies[i], strlen(bodies[i]), reply, &error));
        ck_assert_ptr_nonnull(error);
        ck_assert_uint_eq(reply->len, 0);
    }
    g_autoptr(GError) error = NULL;
    store_list_begin(extender.store, FEED_NODES);
    store_free(extender.store);
    extender.store = store_new(&(struct store_options){.patience_ms = 1});
    ck_assert(!review(ASKS(MEMORY("5Gi")), &error));
    ck_assert(g_error_matches(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission_review");
    TCase *tcase = tcase_create("admission_review");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_smallest_profile_that_is_enough);
    tcase_add_test(tcase, a_free_instance_goes_first);
    tcase_add_loop_test(tcase, one_node_has_what_a_pod_gets, 0, G_N_ELEMENTS(pods));
    tcase_add_test(tcase, several_nodes_are_not_one);
    tcase_add_test(tcase, what_there_is_not_is_refused);
    tcase_add_test(tcase, mistakes_are_told);
    tcase_add_test(tcase, each_container_gets_its_own);
    tcase_add_test(tcase, what_is_no_review_is_an_error);
    suite_add_tcase(suite, tcase);

    return suite_run(suite);
}
