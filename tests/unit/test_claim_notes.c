/* SPDX-License-Identifier: Apache-2.0 */
/* Claims as they are written on a Node: beside those of others, and each once. */
#include "literals.h"
#include "suite.h"

#include "reclaim/claim_notes.h"
#include "wire/claim.h"

static char *written; /* on the Node; NULL: there is no such annotation */
static unsigned n_writes;
static unsigned
    conflicts; /* so many writes are made whose sender is told that the Node has changed */

static enum outcome get_node(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error)
{
    struct string_pair *pair = json_arena_alloc(arena, sizeof *pair);

    *pair = (struct string_pair){CLAIM_KEY, written};
    *ret_node = (struct node_view){.name = name, .annotations = {pair, written != NULL}};
    return OUTCOME_OK;
}

static enum outcome annotate_node(struct cluster *cluster, const struct node_annotation *annotation,
                                  int64_t deadline_ms, GError **error)
{
    ck_assert_str_eq(annotation->key, CLAIM_KEY);
    g_free(written);
    written = g_strdup(annotation->value);
    n_writes++;
    if (conflicts == 0)
        return OUTCOME_OK;
    conflicts--;
    g_set_error(error, g_quark_from_static_string("test"), 0, "it has changed");
    return OUTCOME_CONFLICT;
}

static const struct cluster_ops ops = {
    .name = "table", .get_node = get_node, .annotate_node = annotate_node};
static struct cluster cluster = {&ops};

static void setup(void)
{
    n_writes = conflicts = 0;
}

static void teardown(void)
{
    g_clear_pointer(&written, g_free);
}

static bool add(const char *uid, const char *ending)
{
    g_autoptr(GPtrArray) claims = g_ptr_array_new_with_free_func((GDestroyNotify)claim_free);
    const char *const ends[] = {ending, NULL};

    g_ptr_array_add(claims, claim_new(uid, 1764100000, 0, ends));
    return claim_notes_add(&cluster, "n", claims, NULL);
}

/* "b0:a0 b1:a1": each claim, and whom it ends first. */
static void check(const char *expected)
{
    g_autoptr(GPtrArray) claims = claims_decode(written, NULL);
    g_autoptr(GString) text = g_string_new(NULL);

    ck_assert_ptr_nonnull(claims);
    for (guint i = 0; i < claims->len; i++) {
        const struct room_claim *claim = claims->pdata[i];
        g_string_append_printf(text, "%s%s:%s", i ? " " : "", claim->uid, claim->ends[0]);
    }
    ck_assert_str_eq(text->str, expected);
}

START_TEST(a_claim_stands_beside_others)
{
    ck_assert(add("b0", "a0") && add("b1", "a1"));
    check("b0:a0 b1:a1");
    ck_assert(claim_notes_remove(&cluster, "n", "b0", NULL));
    check("b1:a1");
    ck_assert(claim_notes_remove(&cluster, "n", "b1", NULL));
    ck_assert_ptr_null(written);
}
END_TEST

/* A pod has one claim: the latest. */
START_TEST(a_claim_takes_the_place_of_the_same_pods)
{
    ck_assert(add("b0", "a0") && add("b1", "a1") && add("b0", "a2"));
    check("b1:a1 b0:a2");
}
END_TEST

/* What was written after all is read back, and written once. */
START_TEST(a_write_that_is_made_again_is_written_once)
{
    conflicts = 2;
    ck_assert(add("b0", "a0"));
    ck_assert_uint_eq(n_writes, 3);
    check("b0:a0");
}
END_TEST

START_TEST(a_node_that_keeps_changing_is_given_up)
{
    g_autoptr(GError) error = NULL;

    ck_assert(add("b0", "a0"));
    conflicts = 100;
    ck_assert(!claim_notes_remove(&cluster, "n", "b0", &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_uint_lt(n_writes, 20);
}
END_TEST

START_TEST(what_cannot_be_read_is_written_anew)
{
    written = g_strdup("[{\"for\":7}]");
    ck_assert(add("b0", "a0"));
    check("b0:a0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("claim_notes");
    TCase *tests = tcase_create("notes");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_claim_stands_beside_others);
    tcase_add_test(tests, a_claim_takes_the_place_of_the_same_pods);
    tcase_add_test(tests, a_write_that_is_made_again_is_written_once);
    tcase_add_test(tests, a_node_that_keeps_changing_is_given_up);
    tcase_add_test(tests, what_cannot_be_read_is_written_anew);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
