/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lists that people write into one text, "whole=1,quarter=4": the one way in which they are cut into
 * items. It is strict, since an item that is passed over in silence is a rule that does not hold. Pure
 * functions.
 */
#include <glib.h>
#include <stdbool.h>

struct item_list {
    const char *form;    /* of one item, to follow "expected" */
    const char *example; /* of a whole list */
    char separator;      /* between items; 0: there is one item at most */
    char sign;           /* ends the name of an item, which no other item has; 0: it is all of it */
    /* Reads an item, without blanks around it. `into` NULL: only says whether it can be read. */
    bool (*take)(const char *item, void *into);
};

/* "" is a list without items. The error names the item and the form; what came before it has been
 * read by then. */
bool item_list_read(const struct item_list *list, const char *text, void *into, GError **error);

/* What is accepted, to follow "expected". Free with g_free. */
char *item_list_accepts(const struct item_list *list);

/* Lists of names, and one label's key (or none). */
extern const struct item_list item_list_names, item_list_label;
