/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/effort/work_meter.h"

#include "core/card.h"

#include <string.h>

void work_begin(struct work_meter *work)
{
    *work = (struct work_meter){.left = WORK_CALL};
}

static int64_t n_words(char *const *words)
{
    return words ? (int64_t)g_strv_length((char **)words) : 0;
}

/* Whether the terms accept the model, remembered for the next card of it. */
static bool accepts_model(struct work_meter *work, const struct terms *terms,
                          const struct card *card)
{
    struct work_model *found = &work->models[card->kind % WORK_MODELS];

    if (work->terms != terms) {
        work->terms = terms;
        for (size_t i = 0; i < WORK_MODELS; i++)
            *work->models[i].model = '\0';
    }
    if (g_str_equal(found->model, card->model))
        return found->accepted;
    work_do(work, n_words(terms->models) + n_words(terms->models_not));
    const bool accepted = terms_accept_model(terms, card->model);
    if (strlen(card->model) < sizeof found->model) {
        g_strlcpy(found->model, card->model, sizeof found->model);
        found->accepted = accepted;
    }
    return accepted;
}

bool work_accept_card(struct work_meter *work, const struct terms *terms, const struct card *card)
{
    if (!terms)
        return true;
    if (!work || !card->model || !*card->model || (!terms->models && !terms->models_not))
        return terms_accept_card(terms, card);
    return accepts_model(work, terms, card) && terms_accept_but_model(terms, card);
}

bool work_afford(struct work_meter *work, int64_t n)
{
    const int64_t beyond = MAX(n - WORK_NODE, 0);
    const bool afforded = beyond == 0 || beyond <= work->left;

    work->cut |= !afforded;
    if (afforded) {
        work->left -= beyond;
        work_do(work, n);
    }
    return afforded;
}
