/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image of the queue that is being taken has whatever changes before its turn as it was, change by change.
 * (queue_image_properties.c has all of them at random.)
 */
#include "literals.h"
#include "suite.h"

#include "core/ledger.h"
#include "queue/arrivals/arrivals.h"
#include "gang/gangs.h"
#include "gate/node_backoff/node_backoff.h"
#include "store/images/queue_state.h"
#include "wire/rejection.h"

#include <string.h>

static int64_t now_ms;

/* What an image has during which that happened is what there was before, and not what there is afterwards. */
static void expect_saved(char *(*account)(void (*change)(void)), void (*change)(void))
{
    g_autofree char *before = account(NULL), *during = account(change), *after = account(NULL);

    ck_assert_str_eq(during, before);
    ck_assert_str_ne(after, before);
}

/* --- groups --------------------------------------------------------------------------------- */

static struct gangs *gangs;

static void drop(void *data, const char *uid)
{
}

static void *keep_nothing(void *data, const char *uid)
{
    return NULL;
}

static char *account_gangs(void (*change)(void))
{
    g_autoptr(gangs_image) image = gangs_image_new(&(struct gang_places){.keep = keep_nothing});
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    gangs_image_begin(image, gangs, 0);
    if (change)
        change();
    while (gangs_image_take(image)) {
    }
    json_writer_init(&writer, text);
    gangs_encode(&writer, image);
    return g_string_free(text, FALSE);
}

static uint64_t take_all(void *data, const char *const *uids, size_t n, bool *ret_taken)
{
    for (size_t i = 0; i < n; i++)
        ret_taken[i] = true;
    return 0;
}

/* Two pods with places. */
static void begin_gangs(void)
{
    static const struct pod_group_claim claim = {.name = "g"};

    now_ms = 5000;
    gangs = gangs_new(&(struct gang_keeper){.drop = drop});
    ck_assert(gangs_declare(
        gangs, &(struct pod_group_view){.ns = "ml", .name = "g", .min = 2, .timeout_ms = 1000}, 0));
    ck_assert(gangs_join(gangs, "ml", &claim, "a", GANG_PENDING, &(struct gang_source){0}));
    ck_assert(gangs_join(gangs, "ml", &claim, "b", GANG_PENDING, &(struct gang_source){0}));
    ck_assert_int_eq(
        gangs_ask(gangs,
                  &(struct gang_ask){.uid = "a", .pool = "p", .now_ms = now_ms, .take = take_all}),
        GANG_YES);
}

static void end_gangs(void)
{
    gangs_free(gangs);
}

static void lose(void)
{
    gangs_lose(gangs, "a");
}

static void depart(void)
{
    gangs_depart(gangs, "a");
}

static void expire(void)
{
    gangs_expire(gangs, now_ms);
}

START_TEST(a_place_that_is_lost)
{
    expect_saved(account_gangs, lose);
}
END_TEST

START_TEST(a_bind_that_waits_no_longer)
{
    ck_assert_int_eq(gangs_arrive(gangs, "a", now_ms, NULL), GANG_WAIT);
    expect_saved(account_gangs, depart);
}
END_TEST

START_TEST(a_group_that_has_rested)
{
    now_ms += 1000; /* its deadline */
    expire();
    g_autofree char *rests = account_gangs(NULL);
    ck_assert_ptr_null(strstr(rests, "\"again\":0"));
    now_ms += 3600 * 1000;
    expect_saved(account_gangs, expire);
}
END_TEST

/* --- pods that wait ------------------------------------------------------------------------- */

static struct ledger *book;
static struct nominations *nominations;
static struct arrivals *arrivals;

static char *account_arrivals(void (*change)(void))
{
    g_autoptr(arrivals_image) image = arrivals_image_new();
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    arrivals_image_begin(image, arrivals, book, nominations);
    if (change)
        change();
    while (arrivals_image_take(image)) {
    }
    json_writer_init(&writer, text);
    queue_state_encode(&writer, image);
    return g_string_free(text, FALSE);
}

static void begin_arrivals(void)
{
    const struct queue_entry entry = {.uid = "a", .until_ms = 7000};
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof entry);

    book = ledger_new();
    nominations = nominations_new(book);
    arrivals = arrivals_new();
    arrivals_add(arrivals, &(struct arrivals_pod){
                               .view = &(struct pod_view){.ns = "ml", .name = "a", .uid = "a"}});
    g_array_append_val(entries, entry);
    arrivals_learn(arrivals, book, nominations, entries);
}

static void end_arrivals(void)
{
    arrivals_free(arrivals);
    nominations_free(nominations);
    ledger_free(book);
}

static void renew(void)
{
    arrivals_renew(arrivals, "a");
}

START_TEST(a_pod_that_is_waited_for_anew)
{
    expect_saved(account_arrivals, renew);
}
END_TEST

/* --- nodes that have rejected pods ---------------------------------------------------------- */

static struct part_base base;
static void *backoff; /* the state of part_node_backoff */
static struct node_own own = {.node = {.name = "n"}};

static char *account_rejects(void (*change)(void))
{
    const struct part_image *row = part_node_backoff.image;
    void *image = row->begin(backoff);
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    if (change)
        change();
    while (row->take(image)) {
    }
    json_writer_init(&writer, text);
    row->encode(&writer, image);
    row->free(image);
    return g_string_free(text, FALSE);
}

static void begin_rejects(void)
{
    now_ms = 1000;
    book = ledger_new();
    base.ledger = book;
    backoff = part_node_backoff.start(&base, &(struct node_backoff_settings){1, 1000});
}

static void end_rejects(void)
{
    part_node_backoff.stop(backoff);
    ledger_free(book);
}

static struct allocation allocation_of(const char *uid, const char *dialect)
{
    return (struct allocation){.uid = (char *)uid,
                               .ns = (char *)"ml",
                               .node = &own.node,
                               .dialect = dialect_find(dialect)};
}

static void reject(const char *uid, const char *dialect)
{
    const struct allocation allocation = allocation_of(uid, dialect);
    const struct rejection rejection = {0};

    part_node_backoff.pod(backoff, &(struct pod_change){POD_CHANGE_REJECTED, allocation.uid,
                                                        &allocation, &rejection});
}

static void settle(void)
{
    part_node_backoff.settle(backoff, now_ms);
}

static const char *started; /* a pod, of which dialect */

static void start(void)
{
    const struct allocation allocation = allocation_of("new", started);

    ck_assert(part_node_backoff.pod(
        backoff, &(struct pod_change){POD_CHANGE_STARTED, allocation.uid, &allocation}));
}

/* Both sharing rest until one pod is admitted. */
static void let_try(void)
{
    reject("u1", "gpushare");
    reject("u2", "hami");
    settle();
    now_ms += NODE_BACKOFF_MS;
    settle();
}

static const char *const sharing[] = {"gpushare", "hami"};

START_TEST(a_rest_that_ends)
{
    let_try();
    started = sharing[_i];
    expect_saved(account_rejects, start);
}
END_TEST

/* Of two sharing of a node one has nothing more to be known. */
START_TEST(a_dialect_of_a_node_that_is_forgotten)
{
    let_try();
    started = sharing[_i];
    start();
    expect_saved(account_rejects, settle);
    g_autofree char *left = account_rejects(NULL);
    ck_assert_ptr_null(strstr(left, sharing[_i]));
    ck_assert_ptr_nonnull(strstr(left, sharing[!_i]));
    /* And the other one. */
    started = sharing[!_i];
    start();
    expect_saved(account_rejects, settle);
}
END_TEST

static void add_case(Suite *suite, const char *name, void (*begin)(void), void (*end)(void),
                     const TTest *const *tests, int n_loops)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, begin, end);
    for (; *tests; tests++)
        tcase_add_loop_test(tcase, *tests, 0, n_loops);
    suite_add_tcase(suite, tcase);
}

int main(void)
{
    Suite *suite = suite_create("queue_changes");
    const TTest *const of_gangs[] = {a_place_that_is_lost, a_bind_that_waits_no_longer,
                                     a_group_that_has_rested, NULL};
    const TTest *const of_arrivals[] = {a_pod_that_is_waited_for_anew, NULL};
    const TTest *const of_rejects[] = {a_rest_that_ends, a_dialect_of_a_node_that_is_forgotten,
                                       NULL};

    add_case(suite, "gangs", begin_gangs, end_gangs, of_gangs, 1);
    add_case(suite, "arrivals", begin_arrivals, end_arrivals, of_arrivals, 1);
    add_case(suite, "rejects", begin_rejects, end_rejects, of_rejects, 2);
    return suite_run(suite);
}
