/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long the store's lock is held, by which function, in CPU time of the thread that holds it: what
 * a hold costs whoever waits, but for what the machine does to the holder meanwhile. For benchmarks;
 * the program itself does not measure. All but holds_new, holds_free and holds_print are called under
 * the store's lock.
 */
#include <stdbool.h>
#include <stdio.h>

struct holds;

struct holds *holds_new(void);
void holds_free(struct holds *holds);

/* The lock was taken, or taken again after waiting. `who` is a function's name, which stays. */
void holds_begin(struct holds *holds, const char *who, bool decides);
/* It is about to be given back. */
void holds_end(struct holds *holds);

/* A line for each holder, those of the longest holds first; nobody may hold the lock any more. Returns
 * how many hold it for longer than so many microseconds in one of a thousand holds, decisions apart. */
unsigned holds_print(const struct holds *holds, unsigned limit_us, FILE *file);
