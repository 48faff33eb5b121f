/* SPDX-License-Identifier: Apache-2.0 */
/* Pods as people write them down. */
#include "suite.h"

#include "snapshot/manifest.h"

#include <string.h>

#define POD "\"spec\":{\"containers\":[{\"name\":\"c\"}]}"
#define DEPLOYMENT(metadata_, spec_)                                                               \
    "{\"kind\":\"Deployment\",\"metadata\":{" metadata_ "},\"spec\":{" spec_                       \
    "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}}," POD "}}}"

static const struct {
    const char *text;
    const char *kind, *ns;
    int64_t replicas;
    const char *error; /* part of it; NULL: it is read */
} manifests[] = {
    {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}," POD "}", "Pod", "default", 1, NULL},
    {"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\"}," POD "}", "Pod", "ml",
     1, NULL},
    {DEPLOYMENT("", ""), "Deployment", "default", 1, NULL},
    {DEPLOYMENT("\"namespace\":\"ml\"", "\"replicas\":3,"), "Deployment", "ml", 3, NULL},
    {DEPLOYMENT("", "\"replicas\":0,"), "Deployment", "default", 0, NULL},
    {DEPLOYMENT("", "\"replicas\":-1,"), NULL, NULL, 0, "expected 0 or more"},
    {DEPLOYMENT("", "\"replicas\":1000000,"), "Deployment", "default", 1000000, NULL},
    {DEPLOYMENT("", "\"replicas\":1000001,"), NULL, NULL, 0, "at most 1000000 are accepted"},
    {"{\"kind\":\"List\",\"items\":[{\"kind\":\"Service\"}," DEPLOYMENT("", "") "]}", "Deployment",
     "default", 1, NULL},
    {"{\"kind\":\"List\",\"items\":[" DEPLOYMENT("", "") "," DEPLOYMENT("", "") "]}", NULL, NULL, 0,
     "2 objects make pods"},
    {"{\"kind\":\"List\",\"items\":[{\"kind\":\"Service\"}]}", NULL, NULL, 0, "expected a Pod"},
    {"kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n---\nkind: Pod\nmetadata: "
     "{name: q}\nspec: {containers: [{name: c}]}\n",
     NULL, NULL, 0, "2 objects make pods"},
};

START_TEST(a_manifest_is_read_or_refused)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(GError) error = NULL;
    struct manifest manifest;
    const char *text = manifests[_i].text;
    const bool ok = manifest_parse(arena, text, strlen(text), &manifest, &error);

    if (manifests[_i].error) {
        ck_assert(!ok);
        ck_assert_msg(strstr(error->message, manifests[_i].error), "%s", error->message);
        return;
    }
    ck_assert_msg(ok, "%s", error ? error->message : "");
    ck_assert_str_eq(manifest.kind, manifests[_i].kind);
    ck_assert_str_eq(manifest.pod.ns, manifests[_i].ns);
    ck_assert_int_eq(manifest.replicas, manifests[_i].replicas);
    ck_assert_uint_eq(manifest.pod.n_containers, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tests = tcase_create("manifests");

    tcase_add_loop_test(tests, a_manifest_is_read_or_refused, 0, G_N_ELEMENTS(manifests));
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
