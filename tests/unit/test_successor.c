/* SPDX-License-Identifier: Apache-2.0 */
/* Whether another pod of the Deployment is there, by what a scripted API server says. */
#include "cmd/serve/successor.h"

#include "kube/clock.h"
#include "scripted_api.h"
#include "suite.h"

#define OWN "GET /api/v1/namespaces/ns/pods/gl-0 "
#define ALL "GET /api/v1/namespaces/ns/pods?labelSelector=app%3Dgl%2Crelease%3Done"
#define POD(name, phase)                                                                           \
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"u-" name \
    "\",\"labels\":{\"app\":\"gl\",\"pod-template-hash\":\"5f\",\"release\":\"one\"}},\"spec\":{}" \
    ","                                                                                            \
    "\"status\":{\"phase\":\"" phase "\"}}"
#define LIST(items) "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[" items "]}"

static struct succession *succession;

static void setup(void)
{
    g_autoptr(GError) error = NULL;

    api_begin();
    succession = successor_new(client, "ns", "gl-0", &error);
    ck_assert_msg(succession, "%s", error ? error->message : "");
}

static void teardown(void)
{
    successor_free(succession);
    api_end();
}

static void say(const char *match, unsigned status, const char *body)
{
    script(&(struct fake_reply){.match = match, .status = status, .chunks = {body}});
}

static void expect(enum succession_state wanted)
{
    ck_assert_int_eq(succession->find(succession, clock_ms() + 300), wanted);
}

START_TEST(it_is_alone_until_another_pod_is_there)
{
    say(OWN, 200, POD("gl-0", "Running"));
    say(ALL, 200, LIST(POD("gl-0", "Running")));
    say(ALL, 200, LIST(POD("gl-0", "Running") "," POD("gl-old", "Failed")));
    say(ALL, 200, LIST(POD("gl-1", "Pending") "," POD("gl-0", "Running")));
    expect(SUCCESSION_NONE);
    expect(SUCCESSION_NONE);
    expect(SUCCESSION_THERE);
    expect(SUCCESSION_THERE); /* and it stays so, without a call */
    ck_assert_uint_eq(fake_server_count(server), 4);
    ck_assert_uint_eq(fake_server_unscripted(server), 0);
}
END_TEST

START_TEST(whose_own_pod_is_gone_is_followed)
{
    say(OWN, 404, "{\"kind\":\"Status\",\"code\":404}");
    expect(SUCCESSION_THERE);
    expect(SUCCESSION_THERE);
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

/* For as long as that lasts. */
START_TEST(what_is_not_told_is_unknown)
{
    say(OWN, 403, "{\"kind\":\"Status\",\"code\":403}");
    say(OWN, 200, "{\"kind\":\"Pod\"}");
    say(OWN, 200, POD("gl-0", "Running"));
    say(ALL, 403, "{\"kind\":\"Status\",\"code\":403}");
    say(ALL, 200, "{}");
    say(ALL, 200, LIST(POD("gl-0", "Running")));
    for (int i = 0; i < 4; i++)
        expect(SUCCESSION_UNKNOWN);
    expect(SUCCESSION_NONE);
}
END_TEST

/* Every pod of the namespace would be another one of its kind. */
START_TEST(a_pod_without_labels_may_be_followed)
{
    say(OWN, 200,
        "{\"metadata\":{\"name\":\"gl-0\",\"namespace\":\"ns\",\"uid\":\"u\","
        "\"labels\":{\"pod-template-hash\":\"5f\"}}}");
    expect(SUCCESSION_UNKNOWN);
    ck_assert_uint_eq(fake_server_count(server), 1);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("successor");
    TCase *tc = tcase_create("successor");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, it_is_alone_until_another_pod_is_there);
    tcase_add_test(tc, whose_own_pod_is_gone_is_followed);
    tcase_add_test(tc, what_is_not_told_is_unknown);
    tcase_add_test(tc, a_pod_without_labels_may_be_followed);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
