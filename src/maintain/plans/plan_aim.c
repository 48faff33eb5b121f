/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plans/plan_aim.h"

#include "core/fail.h"

#include <gpuledger/quantity.h>
#include <string.h>

void plan_aim_clear(struct plan_aim *aim)
{
    g_free(aim->ns);
    g_free(aim->name);
    g_free(aim->group_ns);
    g_free(aim->group);
    card_place_clear(&aim->place);
}

static bool read_title(const char *text, const char *what, char **ret_ns, char **ret_name,
                       GError **error)
{
    const char *slash = strchr(text, '/');

    if (!slash || slash == text || !slash[1] || strchr(slash + 1, '/'))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'%s': expected a %s, NAMESPACE/NAME",
                         text, what);
    *ret_ns = g_strndup(text, (gsize)(slash - text));
    *ret_name = g_strdup(slash + 1);
    return true;
}

static bool read_pod(struct plan_aim *aim, const char *text, GError **error)
{
    return read_title(text, "pod", &aim->ns, &aim->name, error);
}

static bool read_group(struct plan_aim *aim, const char *text, GError **error)
{
    return read_title(text, "group", &aim->group_ns, &aim->group, error);
}

static bool read_place(struct plan_aim *aim, const char *text, GError **error)
{
    return card_place_parse(text, &aim->place, error);
}

static bool read_less(struct plan_aim *aim, const char *text, GError **error)
{
    if (quantity_parse_thousandths(text, &aim->less, NULL) && aim->less > 0)
        return true;
    aim->less = 0;
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "'%s': expected a number of GPUs above 0, such as 1.5", text);
}

bool plan_aim_read_time(const char *text, int64_t *ret_ms, GError **error)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}};
    char *end;
    const gint64 n = g_ascii_strtoll(text, &end, 10);

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        if (!g_ascii_isdigit(*text) || *end != units[i].unit || end[1] ||
            n > 86400000 / units[i].ms)
            continue;
        *ret_ms = n * units[i].ms;
        return true;
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID,
                     "'%s': expected a time of at most a day, such as 90s or 10m", text);
}

static bool read_waiting(struct plan_aim *aim, const char *text, GError **error)
{
    aim->waits = plan_aim_read_time(text, &aim->waited_ms, error);
    return aim->waits;
}

const char *const plan_aim_words[] = {"pod", "group", "empty", "waiting", "defragment", NULL};

bool plan_aim_read(struct plan_aim *aim, const char *word, const char *text, GError **error)
{
    static bool (*const readers[])(struct plan_aim *aim, const char *text, GError **error) = {
        read_pod, read_group, read_place, read_waiting, read_less};

    for (size_t i = 0; i < G_N_ELEMENTS(readers); i++) {
        if (strcmp(plan_aim_words[i], word) == 0)
            return readers[i](aim, text, error);
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID, "there is no such word");
}

int plan_aim_count(const struct plan_aim *aim)
{
    return (aim->name != NULL) + (aim->group != NULL) + (aim->place.node != NULL) + aim->waits +
           (aim->less > 0);
}
