/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Chance for property tests: a generator whose seed is printed, so that a failure can be played
 * again. GPULEDGER_SEED sets the seed, GPULEDGER_EVENTS how much is tried.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Prints both; the seed is another one in every run unless it is set. */
void chance_init(const char *property, unsigned default_events);

/* What happens from here on has a seed of its own, which a failure names. */
void chance_restart(uint64_t seed);
uint64_t chance_seed(void);
/* How many events are to be tried in all. */
unsigned chance_events(void);

/* How many events of those to be tried are left; counts one off. */
bool chance_next_event(void);

/* 0 to n - 1. */
uint32_t chance_below(uint32_t n);
/* From min to max, both included. */
int64_t chance_between(int64_t min, int64_t max);
bool chance_percent(uint32_t percent);
/* Puts the numbers from 0 to n - 1 into any order. */
void chance_order(uint32_t *ret_order, uint32_t n);

/* One of several actions, each as often as its weight says; ends with a NULL function. */
struct chance_action {
    const char *name;
    unsigned weight;
    void (*run)(void *world);
};
void chance_act(const struct chance_action *actions, void *world);

/* Ends the program, naming seed, event and action, if a property does not hold. */
#define HOLDS(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            chance_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                              \
    } while (0)

void chance_fail(const char *file, int line, const char *condition, const char *format, ...)
    G_GNUC_PRINTF(4, 5) G_GNUC_NORETURN;
