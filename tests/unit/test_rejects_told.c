/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of nodes whose kubelet rejects pods: to copies, records, people and dashboards.
 */
#include "rejecting_extender.h"
#include "suite.h"

#include "audit/audit.h"
#include "audit/auditor.h"
#include "core/ledger.h"
#include "explain/explain.h"
#include "inspect/views.h"
#include "store/feasibility.h"
#include "part_text.h"

/* --- what is told ----------------------------------------------------------------------------- */

START_TEST(copies_and_records_know_it)
{
    g_autoptr(GString) text = g_string_new(NULL), again = g_string_new(NULL);
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct json_writer writer;

    reject_three("ml");
    reject("p", "web");
    expect("ml", "b");
    pass(10000);
    bind_on("stays", "ml", "a", "0");
    expect("ml", "b");
    json_writer_init(&writer, text);
    write_part(&writer, extender.store, &part_node_backoff);
    struct store *copy = store_copy(extender.store);
    store_free(extender.store);
    extender.store = copy;
    store_set_moment(copy, &moment);
    expect("ml", "b");
    ck_assert(store_learn_part(copy, &part_node_backoff, arena,
                               json_parse(arena, text->str, text->len, NULL), &error));
    json_writer_init(&writer, again);
    write_part(&writer, copy, &part_node_backoff);
    ck_assert_str_eq(again->str, text->str);
    expect("ml", "b");
    start("stays", "ml", "a");
    expect("ml", "a,b");
}
END_TEST

/* Of a node of which nothing is known any more no gate is asked. */
START_TEST(what_a_record_does_not_name_is_not_marked)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const char *nothing = "{\"sites\":[]}";
    const struct node *node = ledger_node(store_lock(extender.store), "a");

    store_unlock(extender.store);
    reject_three("ml");
    expect("ml", "b");
    ck_assert_uint_ne(node_own(node)->pulse->marks, 0);
    ck_assert(store_learn_part(extender.store, &part_node_backoff, arena,
                               json_parse(arena, nothing, strlen(nothing), NULL), NULL));
    ck_assert_uint_eq(node_own(node)->pulse->marks, 0);
    expect("ml", "a,b");
}
END_TEST

START_TEST(the_audit_names_the_node)
{
    reject_three("ml");
    expect("ml", "b");
    g_autoptr(audit_report) report =
        audit_look(extender.store, &(struct audit_options){.stuck_ms = 60000});
    ck_assert_uint_eq(report->counts[AUDIT_LEFT_OUT], 1);
    ck_assert_uint_eq(audit_report_differences(report), 1);
    const struct audit_row *row = report->rows->pdata[0];
    ck_assert_str_eq(row->node, "a");
    ck_assert_ptr_null(row->name);
    ck_assert_str_eq(row->cluster, "rejected pods: 3 (admission)");
    ck_assert_str_eq(row->ledger, "is left out, for pods of namespace ml");
}
END_TEST

START_TEST(a_gauge_names_the_node_once)
{
    g_autoptr(GString) text = g_string_new(NULL);

    reject_three("ml");
    reject_three("web");
    expect("ml", "b");
    view_metrics(extender.store, 100, text);
    const char *found = strstr(text->str, "gpuledger_node_left_out{node=\"a\"} 1\n");
    ck_assert_ptr_nonnull(found);
    ck_assert_ptr_null(strstr(found + 1, "gpuledger_node_left_out{"));
    ck_assert_ptr_nonnull(strstr(text->str, "\ngpuledger_nodes_left_out 1\n"));
}
END_TEST

static char *sentence_of(const char *ns)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const struct pod_view pod = {
        .ns = ns, .name = "x", .uid = "x", CONTAINERS({.name = "c", .limits = PAIRS({MEM, "1"})})};
    g_autoptr(explanation) explanation = explain_pod(extender.store, extender.cluster, &pod);

    explanation_write(text, explanation, true);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

START_TEST(explain_says_for_whom_and_why)
{
    reject_three("ml");
    expect("ml", "b");
    g_autofree char *told = sentence_of("ml");
    ck_assert_msg(strstr(told, ", for pods of namespace ml, for its kubelet has rejected 3 pods "
                               "(admission)"),
                  "%s", told);
    g_autofree char *others = sentence_of("web");
    ck_assert_msg(!strstr(others, "rejected"), "%s", others);
    pass(10000);
    bind_on("trial", "ml", "a", "0");
    expect("ml", "b");
    g_autofree char *what_if = sentence_of("ml");
    ck_assert_msg(strstr(what_if, "takes one pod at a time, until one is admitted"), "%s", what_if);
}
END_TEST

/* ThreadSanitizer sees these locks, and not those of GLib's queues. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t came;
    char *text;
} posted = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL};

static void post_event(struct cluster *cluster, const struct pod_event *event)
{
    pthread_mutex_lock(&posted.mutex);
    g_free(posted.text);
    posted.text =
        g_strdup_printf("%s %s %s %s: %s", pod_event_info(event->cause)->reason,
                        event->ns ? event->ns : "-", event->name, event->uid, event->note);
    pthread_cond_signal(&posted.came);
    pthread_mutex_unlock(&posted.mutex);
}

/* Check's time limit ends it otherwise. */
static char *await_event(void)
{
    pthread_mutex_lock(&posted.mutex);
    while (!posted.text)
        pthread_cond_wait(&posted.came, &posted.mutex);
    char *text = g_steal_pointer(&posted.text);
    pthread_mutex_unlock(&posted.mutex);
    return text;
}

START_TEST(the_node_gets_an_event)
{
    static const struct cluster_ops ops = {.name = "test", .post_event = post_event};
    struct cluster cluster = {&ops};

    extender.cluster = &cluster;
    reject_three("ml");
    expect("ml", "b");
    struct auditor *auditor = auditor_start(&extender, &(struct auditor_options){0}, NULL);
    g_autofree char *text = await_event();
    auditor_free(auditor);
    ck_assert_msg(
        g_str_has_prefix(text, "GPUNodeLeftOut - a a: On node a: its kubelet rejects pods"), "%s",
        text);
    g_free(posted.text);
}
END_TEST

START_TEST(what_is_no_record_is_refused)
{
    static const char *const texts[] = {
        "{}",
        "{\"sites\":7}",
        "{\"sites\":[{}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"none\",\"rejects\":[],\"pauses\":[]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"last\":3,\"rejects\":[],"
        "\"pauses\":[]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"rejects\":[{\"uid\":\"u\","
        "\"namespace\":\"n\",\"card\":-2}],\"pauses\":[]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"rejects\":[],\"pauses\":["
        "{\"card\":0,\"until\":1,\"length\":0}]}]}",
        "{\"sites\":[{\"node\":\"a\",\"dialect\":\"gpushare\",\"rejects\":[],\"pauses\":["
        "{\"card\":0,\"until\":-1,\"length\":1}]}]}",
    };
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;

    ck_assert(!store_learn_part(extender.store, &part_node_backoff, arena,
                                json_parse(arena, texts[_i], strlen(texts[_i]), NULL), &error));
    ck_assert_ptr_nonnull(error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rejects_told");
    TCase *tcase = tcase_create("rejects_told");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, copies_and_records_know_it);
    tcase_add_test(tcase, what_a_record_does_not_name_is_not_marked);
    tcase_add_test(tcase, the_audit_names_the_node);
    tcase_add_test(tcase, a_gauge_names_the_node_once);
    tcase_add_test(tcase, explain_says_for_whom_and_why);
    tcase_add_test(tcase, the_node_gets_an_event);
    tcase_add_loop_test(tcase, what_is_no_record_is_refused, 0, 8);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
