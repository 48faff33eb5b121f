/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long the store's lock is held, by which function, in CPU time of the thread that holds it: what
 * a hold costs whoever waits, but for what the machine does to the holder meanwhile.
 */
#include "store/store.h"

#include <stdio.h>

struct holds;

struct holds *holds_new(void);
void holds_free(struct holds *holds);

/* Before anybody else knows the store. Borrows. */
void holds_measure(struct holds *holds, struct store *store);

/* A line for each holder, those of the longest holds first; nobody may hold the lock any more. Returns
 * how many hold it for longer than so many microseconds in one of a thousand holds, decisions apart. */
unsigned holds_print(const struct holds *holds, unsigned limit_us, FILE *file);
