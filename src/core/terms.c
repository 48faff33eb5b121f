/* SPDX-License-Identifier: Apache-2.0 */
#include "core/card.h"

#include <gpuledger/ledger.h>
#include <gpuledger/terms.h>
#include <stdlib.h>
#include <string.h>

static const char *const isolation_names[ISOLATION_N] = {
    [ISOLATION_NONE] = "none",
    [ISOLATION_HOOK] = "hook",
    [ISOLATION_KERNEL] = "kernel",
    [ISOLATION_HARDWARE] = "hardware",
};

struct terms *terms_new(void)
{
    return g_atomic_rc_box_new0(struct terms);
}

struct terms *terms_ref(struct terms *terms)
{
    return terms ? g_atomic_rc_box_acquire(terms) : NULL;
}

static void terms_clear(gpointer data)
{
    struct terms *terms = data;
    g_strfreev(terms->models);
    g_strfreev(terms->models_not);
    g_strfreev(terms->uuids);
    g_strfreev(terms->uuids_not);
    g_strfreev(terms->containers);
    g_strfreev(terms->devices);
    g_free(terms->mode);
    g_free(terms->tenant);
    work_class_unref(terms->work_class);
}

void terms_unref(struct terms *terms)
{
    if (terms)
        g_atomic_rc_box_release_full(terms, terms_clear);
}

static bool same_lists(char *const *a, char *const *b)
{
    return a == b || (a && b && g_strv_equal((const char *const *)a, (const char *const *)b));
}

/* What is not compared here byte by byte is compared above it, so that nothing that terms will say
 * one day is left out. */
bool terms_equal(const struct terms *a, const struct terms *b)
{
    struct terms rest[2];

    if (a == b || !a || !b)
        return a == b;
    if (!same_lists(a->models, b->models) || !same_lists(a->models_not, b->models_not) ||
        !same_lists(a->uuids, b->uuids) || !same_lists(a->uuids_not, b->uuids_not) ||
        !same_lists(a->devices, b->devices) || !same_lists(a->containers, b->containers) ||
        g_strcmp0(a->mode, b->mode) != 0 || g_strcmp0(a->tenant, b->tenant) != 0)
        return false;
    memcpy(&rest[0], a, sizeof *a);
    memcpy(&rest[1], b, sizeof *b);
    for (size_t i = 0; i < G_N_ELEMENTS(rest); i++) {
        rest[i].models = rest[i].models_not = rest[i].uuids = rest[i].uuids_not = NULL;
        rest[i].devices = rest[i].containers = NULL;
        rest[i].mode = rest[i].tenant = NULL;
    }
    return memcmp(&rest[0], &rest[1], sizeof *a) == 0;
}

static bool contains_one_of(const char *text, char **parts)
{
    for (char **part = parts; text && *part; part++) {
        if (strcasestr(text, *part))
            return true;
    }
    return false;
}

bool terms_accept_model(const struct terms *terms, const char *model)
{
    return !terms || ((!terms->models || contains_one_of(model, terms->models)) &&
                      (!terms->models_not || !contains_one_of(model, terms->models_not)));
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_one_of(const char *text, char **all)
{
    return text && bsearch(&text, all, g_strv_length(all), sizeof *all, compare_words);
}

/* A card whose node side says no mode is of any but that which cuts it. */
static bool accepts_mode(const char *wanted, const char *mode)
{
    return mode ? strstr(wanted, mode) != NULL : !g_str_equal(wanted, "mig");
}

bool terms_accept_but_model(const struct terms *terms, const struct card *card)
{
    return card->memory >= terms->memory_min &&
           (!terms->uuids || is_one_of(card->uuid, terms->uuids)) &&
           (!terms->uuids_not || !is_one_of(card->uuid, terms->uuids_not)) &&
           (!terms->mode || accepts_mode(terms->mode, card->mode));
}

bool terms_accept_card(const struct terms *terms, const struct card *card)
{
    return !terms ||
           (terms_accept_model(terms, card->model) && terms_accept_but_model(terms, card));
}

const struct policy *terms_rating(const struct terms *terms, const struct policy *policy)
{
    if (terms && terms->node_policy)
        return terms->node_policy;
    return terms && terms->policy ? terms->policy : policy;
}

const char *isolation_name(enum isolation isolation)
{
    return isolation_names[(unsigned)isolation < ISOLATION_N ? isolation : ISOLATION_NONE];
}

bool isolation_find(const char *name, enum isolation *ret_isolation)
{
    for (unsigned i = 0; i < ISOLATION_N; i++) {
        if (g_strcmp0(isolation_names[i], name) == 0) {
            *ret_isolation = i;
            return true;
        }
    }
    return false;
}

/* --- classes of work ---------------------------------------------------------------------------- */

struct work_class *work_class_new(void)
{
    return g_atomic_rc_box_new0(struct work_class);
}

struct work_class *work_class_ref(struct work_class *work_class)
{
    return work_class ? g_atomic_rc_box_acquire(work_class) : NULL;
}

static void work_class_clear(gpointer data)
{
    struct work_class *work_class = data;

    g_free(work_class->name);
}

void work_class_unref(struct work_class *work_class)
{
    if (work_class)
        g_atomic_rc_box_release_full(work_class, work_class_clear);
}

static bool accepts(const struct work_class *own, const struct work_class *other)
{
    return !own || (own->shares_with >> (other ? other->number : 0) & 1);
}

bool work_class_mixes(const struct work_class *a, const struct work_class *b)
{
    return accepts(a, b) && accepts(b, a);
}

bool work_class_is_choosy(const struct work_class *work_class)
{
    return work_class && work_class->shares_with != WORK_CLASS_ANY;
}
