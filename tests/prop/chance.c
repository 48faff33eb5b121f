/* SPDX-License-Identifier: Apache-2.0 */
#include "chance.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
    const char *property;
    const char *action;
    uint64_t seed, state;
    unsigned events, done;
} chance;

static uint64_t read_number(const char *name, uint64_t otherwise)
{
    const char *text = g_getenv(name);
    guint64 value;

    if (!text)
        return otherwise;
    if (g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &value, NULL))
        return value;
    fprintf(stderr, "%s: '%s' is not a number\n", name, text);
    exit(2);
}

void chance_init(const char *property, unsigned default_events)
{
    chance.property = property;
    chance.action = "start";
    chance.done = 0;
    chance.seed = read_number("GPULEDGER_SEED", (uint64_t)g_get_real_time());
    chance.state = chance.seed;
    chance.events = (unsigned)MIN(read_number("GPULEDGER_EVENTS", default_events), G_MAXUINT);
    printf("%s: GPULEDGER_SEED=%" G_GUINT64_FORMAT " GPULEDGER_EVENTS=%u\n", property, chance.seed,
           chance.events);
    fflush(stdout);
}

void chance_restart(uint64_t seed)
{
    chance.seed = chance.state = seed;
    chance.done = 0;
}

uint64_t chance_seed(void)
{
    return chance.seed;
}

unsigned chance_events(void)
{
    return chance.events;
}

bool chance_next_event(void)
{
    if (chance.done == chance.events)
        return false;
    chance.done++;
    return true;
}

/* SplitMix64 (Steele, Lea, Flood, 2014; public domain). */
static uint64_t next(void)
{
    uint64_t z = chance.state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t chance_below(uint32_t n)
{
    return (uint32_t)(next() % n);
}

int64_t chance_between(int64_t min, int64_t max)
{
    return min + (int64_t)(next() % ((uint64_t)(max - min) + 1));
}

bool chance_percent(uint32_t percent)
{
    return chance_below(100) < percent;
}

void chance_order(uint32_t *ret_order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = chance_below(i + 1);
        ret_order[i] = ret_order[j];
        ret_order[j] = i;
    }
}

void chance_act(const struct chance_action *actions, void *world)
{
    unsigned total = 0;

    for (const struct chance_action *action = actions; action->run; action++)
        total += action->weight;
    unsigned drawn = chance_below(total);
    for (const struct chance_action *action = actions; action->run; action++) {
        if (drawn < action->weight) {
            chance.action = action->name;
            action->run(world);
            return;
        }
        drawn -= action->weight;
    }
}

void chance_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    fprintf(stderr,
            "%s:%d: %s does not hold\n  %s\n  property '%s', event %u (%s), "
            "GPULEDGER_SEED=%" G_GUINT64_FORMAT "\n",
            file, line, condition, what, chance.property, chance.done, chance.action, chance.seed);
    abort();
}
