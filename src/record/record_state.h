/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a store that has seen all records so far knows, kept as text: the beginning of a file that is
 * not the first. It has no part in any decision; one thread.
 */
#include "record/record.h"

struct record_state;

struct record_state *record_state_new(void);
void record_state_free(struct record_state *state);

/* In the order of numbers. */
void record_state_note(struct record_state *state, const struct record *record);

/* Some records are missing here: what is known counts for a guess until the next lists. */
void record_state_lose(struct record_state *state);

/* Appends lines, without numbers, that bring a new store to what is known. */
void record_state_write(const struct record_state *state, GString *text);
