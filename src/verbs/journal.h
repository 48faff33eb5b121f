/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bookings whose Bindings may still be carried out, as text that one replica leaves to the next
 * in an annotation of the Lease. A booking is in the journal from its reservation until its fate is
 * known: the API server has carried it out or never will.
 *
 * Format: {"bookings":[{"uid":…,"namespace":…,"name":…,"node":…,"dialect":…,"amount":N,
 * "time":"NANOSECONDS","shares":[{"memory":N,"units":BOOL,"card":N,"core":N,"container":N,
 * "exclusive":BOOL}]}]}. Readers ignore fields that they do not know.
 *
 * Any thread. The journal is guarded by its store's lock.
 */
#include "store/store.h"

/* Some 400 bookings. All annotations of an object may have 256 KiB together, and who takes over a
 * full journal may have one of its own. */
#define JOURNAL_MAX ((size_t)120 << 10)

struct journal;

/* Borrows the store. */
struct journal *journal_new(struct store *store);
void journal_free(struct journal *journal);
typedef struct journal journal; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(journal, journal_free)

/* Under the store's lock: takes in a booking of the ledger. False: too many are open, in all or of its namespace,
 * whose bookings take no more room than is free beside them. */
bool journal_add(struct journal *journal, const struct allocation *booking);

/* Appends the text of all bookings whose fate is open, and forgets the others. Nothing is appended
 * if there are none. */
void journal_encode(struct journal *journal, GString *text);

/* Books what another replica's journal holds, each as an allocation whose Binding has an unknown
 * outcome, but for pods that the ledger knows already. Returns how many; bookings that cannot be
 * understood are left out, and `ret_bad` is how many those were, -1 for the whole text. */
unsigned journal_decode(struct journal *journal, const char *text, int *ret_bad);
