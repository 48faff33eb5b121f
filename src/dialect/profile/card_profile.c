/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/profile/card_profile.h"

#include "dialect/digits.h"
#include "dialect/profile/label_selector.h"

#include <gpuledger/quantity.h>
#include <string.h>

#define SLOTS_MAX 65536

/* What is looked for in the list. */
struct sought {
    const struct dialect_options *options;
    const struct string_pairs *labels;
    struct profile_words words; /* of the first that matches */
    bool found;
};

/* --- the list --------------------------------------------------------------------------------- */

static bool read_number(const char *text, int64_t max, int64_t *number)
{
    return *number == 0 && digits_parse(text, max, number) && *number > 0;
}

/* One "KEY=VALUE", which no other has; the profile borrows the text. */
static bool read_field(char *text, struct card_profile *profile)
{
    char *sign = strchr(text, '=');

    if (!sign)
        return false;
    *sign = '\0';
    const char *key = g_strstrip(text), *value = g_strstrip(sign + 1);
    if (g_str_equal(key, "cards"))
        return read_number(value, NODE_CARDS_MAX, &profile->cards);
    if (g_str_equal(key, "slots"))
        return read_number(value, SLOTS_MAX, &profile->slots);
    if (g_str_equal(key, "memory"))
        return profile->memory == 0 && quantity_parse(value, &profile->memory, NULL) &&
               profile->memory > 0 && profile->memory <= AMOUNT_BYTES_MAX;
    if (!g_str_equal(key, "model") || profile->model || !*value)
        return false;
    profile->model = value;
    return true;
}

/* "DIALECT, cards=N, memory=SIZE …"; the profile borrows the fields. */
static bool read_profile(char **fields, struct card_profile *ret_profile)
{
    const struct dialect *dialect = *fields ? dialect_find(g_strstrip(*fields)) : NULL;
    struct card_profile profile = {.dialect = dialect};

    if (!dialect || !dialect->write_profile)
        return false;
    for (char **field = fields + 1; *field; field++) {
        if (!read_field(*field, &profile))
            return false;
    }
    *ret_profile = profile;
    return profile.cards > 0 && profile.memory > 0;
}

static bool read_item(const char *item, void *into)
{
    static const struct dialect_options none;
    struct sought *sought = into;
    const struct dialect_options *options = sought ? sought->options : &none;
    const char *sign = strchr(item, ':');
    struct profile_words words = {0};
    struct card_profile profile;

    if (!sign)
        return false;
    g_autofree char *selector = g_strndup(item, (gsize)(sign - item));
    g_auto(GStrv) fields = g_strsplit(sign + 1, ",", -1);
    if (!label_selector_check(selector) || !read_profile(fields, &profile))
        return false;
    const bool told = profile.dialect->write_profile(&profile, options, &words);
    if (told && sought && !sought->found && label_selector_matches(selector, sought->labels)) {
        sought->found = true;
        sought->words = words;
        words.n = 0;
    }
    profile_words_clear(&words);
    return told;
}

const struct item_list card_profiles_list = {
    .form = "SELECTOR: DIALECT, cards=N, memory=SIZE, and as far as that dialect's nodes say them "
            "slots=N, model=NAME",
    .example =
        "pool=l4: hami, cards=1, memory=24Gi, slots=10, model=NVIDIA L4; pool=a10: gpushare, "
        "cards=4, memory=24Gi",
    .separator = ';',
    .sign = ':',
    .take = read_item,
};

/* --- the template ----------------------------------------------------------------------------- */

/* Adds the words of that place, but for keys that are there. */
static void add_words(const struct profile_words *words, enum word_place place,
                      struct json_arena *arena, struct string_pairs *pairs)
{
    struct string_pair *items = json_arena_alloc(arena, (pairs->n + words->n) * sizeof *items);
    size_t n = pairs->n;

    if (n > 0)
        memcpy(items, pairs->items, n * sizeof *items);
    for (size_t i = 0; i < words->n; i++) {
        const struct profile_word *word = &words->items[i];
        if (word->place != place || string_pairs_get(pairs, word->key))
            continue;
        const size_t size = strlen(word->value) + 1;
        items[n++] = (struct string_pair){word->key,
                                          memcpy(json_arena_alloc(arena, size), word->value, size)};
    }
    *pairs = (struct string_pairs){items, n};
}

bool card_profile_apply(const struct dialect_options *options, struct json_arena *arena,
                        struct node_view *template)
{
    struct sought sought = {.options = options, .labels = &template->labels};

    if (!options->card_profiles || !*options->card_profiles)
        return false;
    item_list_read(&card_profiles_list, options->card_profiles, &sought, NULL);
    add_words(&sought.words, WORD_LABEL, arena, &template->labels);
    add_words(&sought.words, WORD_ANNOTATION, arena, &template->annotations);
    add_words(&sought.words, WORD_RESOURCE, arena, &template->capacity);
    add_words(&sought.words, WORD_RESOURCE, arena, &template->allocatable);
    profile_words_clear(&sought.words);
    return sought.found;
}
