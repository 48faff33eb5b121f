/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The claims as the ConfigMap had them when it was read or written last (wire/claim_sheet.h), which the store keeps
 * room by. Each change is written against the version that was read. What cannot be read, or was changed by somebody
 * else, is no claim: nobody ends, and nothing is written until it is deleted or can be read again.
 *
 * One thread.
 */
#include "reclaim/claim_config_map.h"
#include "store/store.h"
#include "wire/claim_sheet.h"

struct claim_book;

/* Borrows all of them. */
struct claim_book *claim_book_new(struct store *store, const struct claim_files *files, void *data);
void claim_book_free(struct claim_book *book);

/* Reads it. False: nobody knows what it says now, or it cannot be believed; that is logged, counted, and told to the
 * store (store_set_claims_trouble). */
bool claim_book_read(struct claim_book *book);

/* What it said when it was read or written last; without claims if it could not be believed. The book's, until the next
 * call. */
const struct claim_sheet *claim_book_sheet(const struct claim_book *book);

/* Whether it says now that the pod ends for the other one's claim. */
bool claim_book_names(struct claim_book *book, const char *node, const char *uid,
                      const char *ending);

/* Changes and writes it; the change may be made several times, each time of what is there then. False, with an error:
 * it is not known to be written, or does not fit. */
bool claim_book_change(struct claim_book *book,
                       void (*change)(struct claim_sheet *sheet, void *data), void *data,
                       GError **error);
