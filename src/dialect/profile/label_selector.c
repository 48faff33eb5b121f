/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/profile/label_selector.h"

#include <glib.h>
#include <string.h>

struct term {
    char *key;
    const char *value; /* NULL: whether the key is there */
    bool negated;
};

static bool has_only(const char *text, const char *besides)
{
    for (const char *at = text; *at; at++) {
        if (!g_ascii_isalnum(*at) && !strchr(besides, *at))
            return false;
    }
    return true;
}

/* Cuts the text, which the term borrows. */
static bool read_term(char *text, struct term *ret_term)
{
    struct term term = {.key = g_strstrip(text)};
    char *sign = strpbrk(text, "=!");

    if (sign == term.key && *sign == '!') {
        term.negated = true;
        term.key = g_strstrip(term.key + 1);
    } else if (sign) {
        char *value = sign + 1;
        term.negated = *sign == '!';
        if (term.negated ? *value != '=' : false)
            return false;
        value += *value == '=';
        *sign = '\0';
        term.key = g_strstrip(term.key);
        term.value = g_strstrip(value);
    }
    if (!*term.key || !has_only(term.key, "-_./") || (term.value && !has_only(term.value, "-_.")))
        return false;
    *ret_term = term;
    return true;
}

/* As in Kubernetes, a label that is not there is not equal to anything. */
static bool holds(const struct term *term, const struct string_pairs *labels)
{
    const char *value = string_pairs_get(labels, term->key);
    const bool found = value && (!term->value || g_str_equal(value, term->value));

    return found != term->negated;
}

/* `labels` NULL: whether all terms can be read. */
static bool all_hold(const char *selector, const struct string_pairs *labels)
{
    g_auto(GStrv) terms = g_strsplit(selector, ",", -1);
    struct term term;

    for (char **text = terms; *text; text++) {
        if (!read_term(*text, &term) || (labels && !holds(&term, labels)))
            return false;
    }
    return *terms;
}

bool label_selector_check(const char *selector)
{
    return all_hold(selector, NULL);
}

bool label_selector_matches(const char *selector, const struct string_pairs *labels)
{
    return all_hold(selector, labels);
}
