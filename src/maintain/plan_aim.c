/* SPDX-License-Identifier: Apache-2.0 */
#include "maintain/plan_aim.h"

#include "core/fail.h"

#include <gpuledger/quantity.h>
#include <string.h>

void plan_aim_clear(struct plan_aim *aim)
{
    g_free(aim->ns);
    g_free(aim->name);
    card_place_clear(&aim->place);
}

static bool read_pod(struct plan_aim *aim, const char *text, GError **error)
{
    const char *slash = strchr(text, '/');

    if (!slash || slash == text || !slash[1] || strchr(slash + 1, '/'))
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'%s': expected a pod, NAMESPACE/NAME",
                         text);
    aim->ns = g_strndup(text, (gsize)(slash - text));
    aim->name = g_strdup(slash + 1);
    return true;
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

const char *const plan_aim_words[] = {"pod", "empty", "defragment", NULL};

bool plan_aim_read(struct plan_aim *aim, const char *word, const char *text, GError **error)
{
    static bool (*const readers[])(struct plan_aim *aim, const char *text,
                                   GError **error) = {read_pod, read_place, read_less};

    for (size_t i = 0; i < G_N_ELEMENTS(readers); i++) {
        if (strcmp(plan_aim_words[i], word) == 0)
            return readers[i](aim, text, error);
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID, "there is no such word");
}

int plan_aim_count(const struct plan_aim *aim)
{
    return (aim->name != NULL) + (aim->place.node != NULL) + (aim->less > 0);
}
