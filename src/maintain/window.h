/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When pods may be moved: "22:00-06:00", "Mon-Fri 22:00-06:00", "Sat,Sun 00:00-24:00 Europe/Berlin". Times are of
 * the clock on the wall, of UTC without a zone; days are those on which the window begins. Pure.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define WINDOW_MAX 100 /* bytes of its text */

struct window;

/* NULL, with an error: that is no window. */
struct window *window_parse(const char *text, GError **error);
void window_free(struct window *window); /* NULL is ignored */
typedef struct window window;            /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(window, window_free)

bool window_is_open(const struct window *window, int64_t unix_s);
