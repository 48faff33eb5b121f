/* SPDX-License-Identifier: Apache-2.0 */
#include "switch/layout_target.h"

#include "core/fail.h"
#include "switch/layout_advice.h"

static GArray *find_layouts(const struct calendar *calendar, const struct mig_card *card)
{
    GArray *layouts = mig_layouts_new();
    struct mode_value value;
    const char *name;

    for (guint i = 0; (name = calendar_layout(calendar, i, &value)); i++) {
        const struct mig_layout layout = {g_strdup(name), value};
        if (mig_card_suits(card, &value))
            g_array_append_val(layouts, layout);
        else
            g_free(layout.name);
    }
    return layouts;
}

bool layout_target_find(struct store *store, const struct calendar *calendar,
                        const struct node_view *node, struct switch_advice *ret_advice,
                        GError **error)
{
    g_auto(layout_advice) advice = {0};
    struct mig_card card;

    *ret_advice = (struct switch_advice){0};
    if (!mig_card_read(&node->labels, &card))
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "its labels do not tell how large a card is, or the plugin's strategy is "
                         "'single', where nobody knows which instance a pod wants");
    g_autoptr(GArray) layouts = find_layouts(calendar, &card);
    if (layouts->len == 0)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "none of the calendar's layouts is one that its cards can have");
    if (!layout_advise(
            &(struct layout_query){
                .store = store, .node = node->name, .card = &card, .layouts = layouts},
            &advice, error))
        return false;
    const struct layout_row *best = &g_array_index(advice.rows, struct layout_row, advice.best);
    ret_advice->stays = best->is;
    ret_advice->value = best->is ? NULL : g_strdup(best->name);
    return true;
}
