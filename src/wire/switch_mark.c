/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/switch_mark.h"

#include "dialect/marks/node_marks.h"

#include <glib.h>
#include <string.h>

#define TEXT_MAX 512 /* bytes of the annotation */
#define COME_NS 1    /* long ago */
#define NS_PER_S INT64_C(1000000000)
#define TIME_MAX_S (INT64_MAX / NS_PER_S)

char *switch_time_format(int64_t time_s)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(time_s);

    return time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ") : NULL;
}

bool switch_time_parse(const char *text, int64_t *ret_time_s)
{
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(text, NULL);

    if (!time)
        return false;
    *ret_time_s = g_date_time_to_unix(time);
    return *ret_time_s > 0 && *ret_time_s < TIME_MAX_S;
}

/* Of a label's key or value. */
static bool is_word(const char *text, const char *also)
{
    for (const char *at = text; *at; at++) {
        if (!g_ascii_isalnum(*at) && !strchr(also, *at))
            return false;
    }
    return *text;
}

bool switch_value_is_valid(const char *value)
{
    return strlen(value) <= SWITCH_VALUE_MAX && is_word(value, "-_.");
}

bool switch_mark_parse(const char *text, struct switch_mark *ret_mark)
{
    struct switch_mark mark;

    if (strnlen(text, TEXT_MAX) == TEXT_MAX)
        return false;
    const char *sign = strchr(text, '=');
    const char *at = strrchr(text, '@');
    if (!sign || !at || at < sign || (size_t)(sign - text) > SWITCH_LABEL_MAX ||
        (size_t)(at - sign - 1) > SWITCH_VALUE_MAX)
        return false;
    g_strlcpy(mark.label, text, (gsize)(sign - text) + 1);
    g_strlcpy(mark.value, sign + 1, (gsize)(at - sign));
    if (!is_word(mark.label, "-_./") || !switch_value_is_valid(mark.value) ||
        !switch_time_parse(at + 1, &mark.at_s))
        return false;
    *ret_mark = mark;
    return true;
}

char *switch_mark_format(const struct switch_mark *mark)
{
    g_autofree char *time = switch_time_format(mark->at_s);

    return g_strdup_printf("%s=%s@%s", mark->label, mark->value, time);
}

static void warn(char **ret_warning, const char *text, const char *expected)
{
    if (ret_warning && !*ret_warning)
        *ret_warning = g_strdup_printf("annotation '" SWITCH_KEY "': '%.64s' is not like '%s'; the "
                                       "node takes no pods",
                                       text, expected);
}

struct switch_ahead switch_mark_ahead(const struct node_view *view, char **ret_warning)
{
    static const struct switch_ahead none = {0}, come = {.at_ns = COME_NS};
    const char *text = string_pairs_get(&view->annotations, SWITCH_KEY);
    const char *slots = string_pairs_get(&view->annotations, NODE_SLOTS_KEY);
    struct switch_mark mark;

    if (view->as_new)
        return none;
    if (string_pairs_get(&view->annotations, SWITCH_STATE_KEY))
        return come;
    if (!text)
        return none;
    if (!switch_mark_parse(text, &mark)) {
        warn(ret_warning, text, "LABEL=VALUE@2026-11-25T20:00:00Z");
        return come;
    }
    if (!g_str_equal(mark.label, NODE_SLOTS_KEY))
        return (struct switch_ahead){.at_ns = mark.at_s * NS_PER_S};
    const struct node_slots wanted = node_slots_parse(mark.value);
    if (!wanted.readable) {
        warn(ret_warning, text, NODE_SLOTS_KEY "=4@2026-11-25T20:00:00Z");
        return come;
    }
    return node_slots_shrink(slots, mark.value)
               ? (struct switch_ahead){mark.at_s * NS_PER_S, wanted.most}
               : none;
}
