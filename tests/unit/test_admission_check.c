/* SPDX-License-Identifier: Apache-2.0 */
/* The controller against a scripted API server: what it asks, what it writes, and when it writes nothing. */
#include "kueue/controller.h"

#include "base/metrics.h"
#include "kube/clock.h"
#include "kueue_cluster.h"
#include "scripted_api.h"
#include "suite.h"

#define KUEUE "/apis/kueue.x-k8s.io/v1beta2"
#define MANAGER "fieldManager=gpuledger.io-fit&force=true"
#define LIST(items) "{'metadata':{'resourceVersion':'5'},'items':[" items "]}"
#define CHECK_OBJECT                                                                               \
    "{'metadata':{'name':'cards','generation':1},'spec':{'controllerName':'gpuledger.io/fit'}}"
#define ACTIVE_CHECK                                                                               \
    "{'metadata':{'name':'cards','generation':1},'spec':{'controllerName':'gpuledger.io/fit'},"    \
    "'status':{'conditions':[{'type':'Active','status':'True','reason':'Active',"                  \
    "'message':'Workloads are answered by the cards of the cluster','observedGeneration':1}]}}"
#define WORKLOAD(units) PENDING_WORKLOAD("w", POD_SET_OF("main", "2", GPUSHARE(units)))

static struct store *known;
static struct kueue *kueue;
static GPtrArray *texts; /* that the script borrows */

static void setup(void)
{
    api_begin();
    texts = g_ptr_array_new_with_free_func(g_free);
    known = two_cards("20");
}

static void teardown(void)
{
    g_clear_pointer(&kueue, kueue_free);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
    api_end();
    store_free(known);
    g_ptr_array_unref(texts);
}

static const char *text_of(const char *single)
{
    g_ptr_array_add(texts, quoted(single));
    return texts->pdata[texts->len - 1];
}

static void reply(const char *match, int status, const char *body)
{
    script(&(struct fake_reply){.match = match, .status = status, .chunks = {text_of(body)}});
}

static void hang(const char *match)
{
    script(&(struct fake_reply){.match = match, .end = FAKE_HANG, .times = FAKE_ALWAYS});
}

static void start_with(struct leadership *leadership)
{
    static const struct reflector_options quick = {
        .backoff_ms = 20, .backoff_max_ms = 40, .short_watch_ms = 1, .page = 500};
    const struct kueue_options options = {.round_ms = 1, .reflector = &quick};

    kueue = kueue_start(client, known, leadership, &options, NULL);
    ck_assert(kueue);
}

/* The text of the request with that in its first line, the n-th of them, once it has come. */
static char *find_request(const char *part, unsigned n)
{
    for (unsigned i = 0;; i++) {
        expect_requests(i + 1);
        g_autofree char *request = fake_server_request(server, i);
        g_autofree char *line = g_strndup(request, strcspn(request, "\r\n"));
        if (strstr(line, part) && n-- == 0)
            return g_steal_pointer(&request);
    }
}

static void expect_in(const char *text, const char *part)
{
    g_autofree char *json = quoted(part);

    ck_assert_msg(strstr(text, json), "\"%s\" is not in \"%s\"", json, text);
}

static void script_active_check(void)
{
    reply("GET " KUEUE "/admissionchecks?limit", 200, LIST(ACTIVE_CHECK));
    hang("GET " KUEUE "/admissionchecks?watch");
    hang("GET " KUEUE "/workloads?watch");
}

START_TEST(the_check_is_said_to_be_active)
{
    reply("GET " KUEUE "/admissionchecks?limit", 200, LIST(CHECK_OBJECT));
    hang("GET " KUEUE "/admissionchecks?watch");
    reply("GET " KUEUE "/workloads?limit", 200, LIST(""));
    hang("GET " KUEUE "/workloads?watch");
    reply("PATCH " KUEUE "/admissionchecks/cards/status?" MANAGER, 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "Content-Type: application/apply-patch+yaml");
    expect_in(request,
              "{'apiVersion':'kueue.x-k8s.io/"
              "v1beta2','kind':'AdmissionCheck','metadata':{'name':'cards'},"
              "'status':{'conditions':[{'type':'Active','status':'True','reason':'Active'");
    expect_in(request, "'observedGeneration':1");
}
END_TEST

/* Written once: what it says does not depend on when it is said. */
START_TEST(a_check_that_cannot_be_read_is_told_so)
{
    reply("GET " KUEUE "/admissionchecks?limit", 200,
          LIST("{'metadata':{'name':'cards','creationTimestamp':'2026-01-01T00:00:00Z',"
               "'generation':'one'},'spec':{'controllerName':'gpuledger.io/fit'}}"));
    hang("GET " KUEUE "/admissionchecks?watch");
    reply("GET " KUEUE "/workloads?limit", 200, LIST(""));
    hang("GET " KUEUE "/workloads?watch");
    reply("PATCH " KUEUE "/admissionchecks/cards/status?" MANAGER, 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "'type':'Active','status':'False','reason':'Unreadable','message':");
    expect_in(request, "metadata.generation");
    expect_in(request, "'lastTransitionTime':'2026-01-01T00:00:00Z'");
}
END_TEST

START_TEST(who_fits_is_let_in)
{
    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, LIST(WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status?" MANAGER, 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request,
              "'metadata':{'namespace':'ml','name':'w','uid':'uid-w','resourceVersion':'7'},"
              "'status':{'admissionChecks':[{'name':'cards','state':'Ready','message':'all 2 pods "
              "with a GPU fit',"
              "'lastTransitionTime':'");
    ck_assert_ptr_null(strstr(request, "requeueAfterSeconds"));
}
END_TEST

START_TEST(who_does_not_fit_is_sent_back)
{
    script_active_check();
    occupy(known, "other", "other", "6", "0");
    reply("GET " KUEUE "/workloads?limit", 200, LIST(WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status?" MANAGER, 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "'state':'Retry','message':'pod set ");
    ck_assert_msg(strstr(request, "1 of 2 pods"), "%s", request);
    expect_in(request, "'requeueAfterSeconds':5");
}
END_TEST

START_TEST(a_conflict_is_tried_again_with_the_new_version)
{
    g_autofree char *newer = g_strdup(WORKLOAD("6"));

    memcpy(strstr(newer, "'resourceVersion':'7'"), "'resourceVersion':'8'",
           strlen("'resourceVersion':'8'"));
    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, LIST(WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 409,
          "{'kind':'Status','reason':'Conflict','message':'changed'}");
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, newer);
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 1);
    expect_in(request, "'resourceVersion':'8'");
}
END_TEST

/* It has been evicted meanwhile: the answer is for nobody. */
START_TEST(an_answer_for_another_reservation_is_not_given)
{
    script_active_check();
    reply(
        "GET " KUEUE "/workloads?limit", 200,
        LIST(WORKLOAD("6") "," PENDING_WORKLOAD("x", POD_SET_OF("main", "1", "'containers':[]"))));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 409,
          "{'kind':'Status','reason':'Conflict','message':'changed'}");
    reply(
        "GET " KUEUE "/namespaces/ml/workloads/w ", 200,
        WORKLOAD_OF(
            "w", "",
            "'conditions':[{'type':'QuotaReserved','status':'False'}],'admissionChecks':[" CHECK_OF(
                "cards", "Pending") "]"));
    reply("GET " KUEUE "/namespaces/ml/workloads/x ", 200,
          PENDING_WORKLOAD("x", POD_SET_OF("main", "1", "'containers':[]")));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/x/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 1);
    expect_in(request, "'name':'x'");
    expect_in(request, "'state':'Ready','message':'none of its pods asks for a GPU'");
}
END_TEST

/* It has been sent away and has quota again: cards are looked at once more before it is answered. */
START_TEST(a_later_reservation_is_answered_anew)
{
    static const char later[] = WORKLOAD_OF("w", POD_SET_OF("main", "2", GPUSHARE("6")),
                                            "'conditions':[{'type':'QuotaReserved','status':'True',"
                                            "'lastTransitionTime':'2026-11-25T10:01:00Z'}],"
                                            "'admissionChecks':[" CHECK_OF("cards", "Pending") "]");

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, LIST(WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 409,
          "{'kind':'Status','reason':'Conflict','message':'changed'}");
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, later);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, later);
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    G_GNUC_UNUSED g_autofree char *third =
        find_request("GET " KUEUE "/namespaces/ml/workloads/w ", 2);
    G_GNUC_UNUSED g_autofree char *request = find_request("PATCH", 1);
}
END_TEST

/* A Workload that this check has let in just now. */
static char *let_in_now(const char *name)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *time = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");

    return g_strdup_printf(
        "{'metadata':{'namespace':'ml','name':'%s','uid':'uid-%s','resourceVersion':'7'},"
        "'spec':{'podSets':[" POD_SET_OF(
            "main", "2",
            GPUSHARE("6")) "]},'status':{" RESERVED
                           ",'admissionChecks':[{'name':'cards','state':'Ready','message':'m',"
                           "'lastTransitionTime':'%s'}]}}",
        name, name, time);
}

/* Another replica has done it, or this one before it was started again. */
START_TEST(what_was_let_in_before_takes_its_cards)
{
    g_autofree char *before = let_in_now("r");
    g_autofree char *list = g_strdup_printf(LIST("%s,%s"), WORKLOAD("6"), before);

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, list);
    reply("GET " KUEUE "/namespaces/ml/workloads/r ", 200, before);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "'state':'Retry'");
    ck_assert_msg(strstr(request, "0 of 2 pods"), "%s", request);
    ck_assert_msg(strstr(request, "beside 2 pods of Workloads that were let in before"), "%s",
                  request);
}
END_TEST

START_TEST(who_was_answered_meanwhile_is_not_answered_again)
{
    g_autofree char *answered = let_in_now("w");
    const char *other = PENDING_WORKLOAD("x", POD_SET_OF("main", "1", "'containers':[]"));
    g_autofree char *list = g_strdup_printf(LIST("%s,%s"), WORKLOAD("6"), other);

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, list);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 409,
          "{'kind':'Status','reason':'Conflict','message':'changed'}");
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, answered);
    reply("GET " KUEUE "/namespaces/ml/workloads/x ", 200, other);
    reply("PATCH " KUEUE "/namespaces/ml/workloads/x/status", 200, "{}");
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, answered);
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 1);
    expect_in(request, "'name':'x'");
    G_GNUC_UNUSED g_autofree char *remembered =
        find_request("GET " KUEUE "/namespaces/ml/workloads/w ", 2);
}
END_TEST

START_TEST(checks_of_others_are_left_alone)
{
    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200,
          LIST(WORKLOAD_OF(
              "w", POD_SET_OF("main", "1", GPUSHARE("6")),
              RESERVED ",'admissionChecks':[" CHECK_OF("money", "Pending") "]") "," WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200,
          WORKLOAD_OF("w", POD_SET_OF("main", "2", GPUSHARE("6")),
                      RESERVED ",'admissionChecks':[" CHECK_OF("cards", "Pending") "," CHECK_OF(
                          "money", "Pending") "]"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    ck_assert_ptr_null(strstr(request, "money"));
}
END_TEST

START_TEST(a_flavor_that_may_not_be_read_is_said)
{
    const char *workload =
        WORKLOAD_OF("w", POD_SET_OF("main", "1", GPUSHARE("6")),
                    RESERVED ",'admission':{'podSetAssignments':[{'name':'main','count':1,'flavors'"
                             ":{'aliyun.com/gpu-mem':'f'}}]},"
                             "'admissionChecks':[" CHECK_OF("cards", "Pending") "]");
    g_autofree char *list = g_strdup_printf(LIST("%s"), workload);

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, list);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, workload);
    reply("GET " KUEUE "/resourceflavors/f ", 403, "{'kind':'Status','message':'not you'}");
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "'state':'Retry'");
    ck_assert_msg(strstr(request, "ResourceFlavor 'f': not you"), "%s", request);
    expect_in(request, "'requeueAfterSeconds':300");
}
END_TEST

/* Nothing of it can be placed, but its check is there: it is told what is wrong, not left waiting. */
START_TEST(one_that_cannot_be_decoded_is_told)
{
    g_autoptr(GString) sets = g_string_new(NULL);

    for (int i = 0; i <= WORKLOAD_POD_SETS_MAX; i++)
        g_string_append_printf(sets, "%s{'name':'s%d','count':1}", i ? "," : "", i);
    g_autofree char *workload = g_strdup_printf(PENDING_WORKLOAD("w", "%s"), sets->str);
    g_autofree char *list = g_strdup_printf(LIST("%s"), workload);
    const uint64_t before = metrics_counted(COUNTER_KUEUE, KUEUE_RESULT_UNREADABLE);

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, list);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, workload);
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "'state':'Retry'");
    ck_assert_msg(strstr(request, "field 'spec.podSets': 19 items, at most 18 are read"), "%s",
                  request);
    expect_in(request, "'requeueAfterSeconds':300");
    g_clear_pointer(&kueue, kueue_free);
    ck_assert_uint_eq(metrics_counted(COUNTER_KUEUE, KUEUE_RESULT_UNREADABLE), before + 1);
}
END_TEST

/* The API server refuses a message of more than 32 KiB, and nobody reads one. */
START_TEST(a_tenant_cannot_make_the_message_long)
{
    g_autofree char *amount = g_strnfill(20000, 'x');
    g_autofree char *workload =
        g_strdup_printf(PENDING_WORKLOAD("w", POD_SET_OF("main", "1", GPUSHARE("%s"))), amount);
    g_autofree char *list = g_strdup_printf(LIST("%s"), workload);

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, list);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, workload);
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    ck_assert_msg(strstr(request, "pod set 'main': "), "%s", request);
    ck_assert_uint_lt(strlen(request), 2000);
}
END_TEST

START_TEST(a_flavor_says_where_the_pods_may_go)
{
    const char *workload =
        WORKLOAD_OF("w", POD_SET_OF("main", "1", GPUSHARE("6")),
                    RESERVED ",'admission':{'podSetAssignments':[{'name':'main','count':1,'flavors'"
                             ":{'aliyun.com/gpu-mem':'f'}}]},"
                             "'admissionChecks':[" CHECK_OF("cards", "Pending") "]");
    g_autofree char *list = g_strdup_printf(LIST("%s"), workload);

    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, list);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, workload);
    reply("GET " KUEUE "/resourceflavors/f ", 200, "{'spec':{'nodeLabels':{'pool':'elsewhere'}}}");
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(NULL);
    g_autofree char *request = find_request("PATCH", 0);
    expect_in(request, "'state':'Retry'");
    expect_in(request, "of 1 nodes 1 node_selector (n1)");
}
END_TEST

/* An older Kueue has objects of the same names. They are not asked for, and so nobody is let in; once the newer
 * version is served, all is as usual. */
START_TEST(where_only_v1beta1_is_served_nobody_is_answered)
{
    for (int i = 0; i < 3; i++)
        reply("GET " KUEUE "/admissionchecks?limit", 404, "404 page not found");
    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, LIST(WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status?" MANAGER, 200, "{}");
    script(&(struct fake_reply){
        .match = "/apis/kueue.x-k8s.io/v1beta1/", .times = FAKE_ALWAYS, .chunks = {"{}"}});
    start_with(NULL);
    g_autofree char *patch = find_request("PATCH", 0);
    expect_in(patch, "'apiVersion':'kueue.x-k8s.io/v1beta2'");
    expect_in(patch, "'state':'Ready'");
    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        ck_assert_msg(!strstr(request, "v1beta1"), "%s", request);
        ck_assert_msg(i >= 4 || g_str_has_prefix(request, "GET " KUEUE "/admissionchecks?"),
                      "%u: %s", i, request);
    }
}
END_TEST

START_TEST(without_the_crd_it_looks_again)
{
    for (int i = 0; i < 3; i++)
        reply("GET " KUEUE "/admissionchecks?limit", 404,
              "{'kind':'Status','message':'the server could not find the requested resource'}");
    script_active_check();
    reply("GET " KUEUE "/workloads?limit", 200, LIST(""));
    start_with(NULL);
    G_GNUC_UNUSED g_autofree char *request = find_request("/workloads?limit", 0);
}
END_TEST

/* --- two replicas --------------------------------------------------------------------------- */

/* A replica that leads in the term of that number, or stands by. */
struct replica {
    struct leadership leadership;
    gint term; /* atomic */
};

static uint64_t term_of(struct leadership *leadership)
{
    return (uint64_t)g_atomic_int_get(&((struct replica *)leadership)->term);
}

static int64_t hour(struct leadership *leadership, uint64_t term)
{
    return term == term_of(leadership) ? clock_ms() + 3600000 : 0;
}

/* The first answers "w"; then the other leads, reads what was promised, and answers "x" beside that. */
START_TEST(of_two_replicas_the_leader_answers_and_the_other_goes_on_from_there)
{
    static const struct leadership_ops ops = {.term = term_of, .until_ms = hour};
    static const char unanswered[] = PENDING_WORKLOAD("x", POD_SET_OF("main", "1", GPUSHARE("6")));
    struct replica first = {{&ops}, 1}, second = {{&ops}, 0};
    g_autofree char *promised = let_in_now("w");
    g_autofree char *later = g_strdup_printf(LIST("%s,%s"), promised, unanswered);

    for (int i = 0; i < 2; i++)
        script_active_check();
    reply("GET " KUEUE "/admissionchecks?limit", 200, LIST(ACTIVE_CHECK));
    hang("GET " KUEUE "/workloads?watch");
    reply("GET " KUEUE "/workloads?limit", 200, LIST(WORKLOAD("6")));
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, WORKLOAD("6"));
    reply("PATCH " KUEUE "/namespaces/ml/workloads/w/status", 200, "{}");
    start_with(&first.leadership);
    struct kueue *one = g_steal_pointer(&kueue);
    start_with(&second.leadership);
    g_autofree char *patch = find_request("PATCH", 0);
    expect_in(patch, "'name':'w'");
    expect_in(patch, "'state':'Ready'");
    const unsigned before = fake_server_count(server);
    reply("GET " KUEUE "/workloads?limit", 200, later);
    reply("GET " KUEUE "/namespaces/ml/workloads/w ", 200, promised);
    reply("GET " KUEUE "/namespaces/ml/workloads/x ", 200, unanswered);
    reply("PATCH " KUEUE "/namespaces/ml/workloads/x/status", 200, "{}");
    g_atomic_int_set(&first.term, 0);
    g_atomic_int_set(&second.term, 2);
    g_autofree char *other = find_request("PATCH", 1);
    ck_assert_uint_gt(fake_server_count(server), before);
    expect_in(other, "'name':'x'");
    expect_in(other, "'state':'Retry'");
    ck_assert_msg(strstr(other, "beside 2 pods of Workloads that were let in before"), "%s", other);
    kueue_free(one);
    g_clear_pointer(&kueue, kueue_free);
    unsigned patches = 0;
    for (unsigned i = 0; i < fake_server_count(server); i++) {
        g_autofree char *request = fake_server_request(server, i);
        patches += g_str_has_prefix(request, "PATCH");
    }
    ck_assert_uint_eq(patches, 2);
}
END_TEST

static int64_t never(struct leadership *leadership, uint64_t term)
{
    return 0;
}
static gint terms_asked;
static uint64_t stand_by(struct leadership *leadership)
{
    g_atomic_int_inc(&terms_asked);
    return 0;
}

START_TEST(a_replica_that_stands_by_only_watches)
{
    static const struct leadership_ops ops = {.term = stand_by, .until_ms = never};
    struct leadership leadership = {&ops};

    reply("GET " KUEUE "/admissionchecks?limit", 200, LIST(CHECK_OBJECT));
    hang("GET " KUEUE "/admissionchecks?watch");
    start_with(&leadership);
    expect_requests(2);
    while (g_atomic_int_get(&terms_asked) < 3)
        g_usleep(1000);
    ck_assert_uint_eq(fake_server_count(server), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission check");
    TCase *tests = tcase_create("admission check");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, the_check_is_said_to_be_active);
    tcase_add_test(tests, a_check_that_cannot_be_read_is_told_so);
    tcase_add_test(tests, who_fits_is_let_in);
    tcase_add_test(tests, who_does_not_fit_is_sent_back);
    tcase_add_test(tests, a_conflict_is_tried_again_with_the_new_version);
    tcase_add_test(tests, an_answer_for_another_reservation_is_not_given);
    tcase_add_test(tests, a_later_reservation_is_answered_anew);
    tcase_add_test(tests, what_was_let_in_before_takes_its_cards);
    tcase_add_test(tests, who_was_answered_meanwhile_is_not_answered_again);
    tcase_add_test(tests, checks_of_others_are_left_alone);
    tcase_add_test(tests, a_flavor_that_may_not_be_read_is_said);
    tcase_add_test(tests, a_tenant_cannot_make_the_message_long);
    tcase_add_test(tests, a_flavor_says_where_the_pods_may_go);
    tcase_add_test(tests, one_that_cannot_be_decoded_is_told);
    tcase_add_test(tests, where_only_v1beta1_is_served_nobody_is_answered);
    tcase_add_test(tests, of_two_replicas_the_leader_answers_and_the_other_goes_on_from_there);
    tcase_add_test(tests, without_the_crd_it_looks_again);
    tcase_add_test(tests, a_replica_that_stands_by_only_watches);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
