/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An extender that keeps quotas, and whom it lets pass. */
#include "literals.h"

#include "verbs/extender.h"

#include <check.h>
#include <string.h>

static struct extender extender;

static inline void teardown(void)
{
    g_clear_pointer(&extender.store, store_free);
}

/* filter passes of all nodes ("a,b,c") exactly the wanted ones, and says `refusal` if it leaves any
 * out. */
static inline void expect_filter(const char *body, const char *all, const char *wanted,
                                 const char *refusal)
{
    g_auto(GStrv) nodes = g_strsplit(all, ",", -1);
    g_autoptr(GString) reply = g_string_new(NULL);
    g_autoptr(GString) got = g_string_new(NULL);

    extender_filter(&extender, body, strlen(body), reply);
    const char *end = strstr(reply->str, "]");
    for (char **node = nodes; *node; node++) {
        g_autofree char *name = g_strdup_printf("\"%s\"", *node);
        const char *at = strstr(reply->str, name);
        if (at && at < end)
            g_string_append_printf(got, "%s%s", got->len ? "," : "", *node);
    }
    ck_assert_msg(g_str_equal(got->str, wanted), "%s: %s: %s", body, got->str, reply->str);
    ck_assert_int_eq(strstr(reply->str, refusal) == NULL, g_str_equal(wanted, all));
}
