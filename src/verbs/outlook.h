/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The thread that makes value models (store_refresh_outlook), so that no call of a scheduler does. It takes at most a
 * tenth of a core, however fast nodes change and pods come; decisions go by the last model meanwhile.
 */
#include "store/store.h"

struct outlook;

/* Borrows the store. NULL with an error: no thread can be had. */
struct outlook *outlook_start(struct store *store, GError **error);
void outlook_free(struct outlook *outlook); /* waits for its thread; NULL is ignored */
