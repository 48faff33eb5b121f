/* SPDX-License-Identifier: Apache-2.0 */
/* What policies have learned (policy/demand.h), where a record's file begins, and in a replay from there. */
#include "policy/demand.h"
#include "store/images/learned.h"
#include "store/store_state.h"

struct lesson {
    struct demand *demand;
    bool bare; /* a model is made of it before decisions go by one */
};

void store_drop_outlook(struct store *store)
{
    store->draft.dropped = true;
    store->apart = store->bare = false;
}

/* What was worked out before: who plays the record again has not. */
static void forget_outcome(struct store *store)
{
    hints_forget_all(store->hints);
    passes_forget_all(store->unsearched);
    node_books_forget(store->verdicts);
    node_books_forget(store->ratings);
}

void store_take_lesson(struct store *store, const struct demand *demand, bool bare)
{
    const struct learned_demand learned = demand_tell(demand);

    demand_learn(store->demand, &learned);
    store_drop_outlook(store);
    store->apart = store->bare = bare;
    forget_outcome(store);
}

/* If a thread makes the models, decisions go without one until it has made the next. */
static void *begin(void *self)
{
    struct store *store = self;
    struct lesson *lesson = g_new(struct lesson, 1);
    const bool apart = store->apart;

    demand_unsettle(store->demand); /* as whoever learns it does, all of this */
    store_drop_outlook(store);
    store->apart = store->bare = apart;
    forget_outcome(store);
    *lesson = (struct lesson){demand_dup(store->demand), apart};
    return lesson;
}

static void encode(struct json_writer *writer, void *image)
{
    const struct lesson *lesson = image;

    learned_encode(writer, lesson->demand, lesson->bare);
}

static void free_image(void *image)
{
    demand_free(((struct lesson *)image)->demand);
    g_free(image);
}

static bool learn(void *self, struct json_arena *arena, const cJSON *object, GError **error)
{
    bool bare;
    g_autoptr(demand) demand = learned_decode(arena, object, &bare, error);

    if (demand)
        store_take_lesson(self, demand, bare);
    return demand != NULL;
}

static const struct part_image image = {.kind = "learned",
                                        .begin = begin,
                                        .encode = encode,
                                        .free = free_image,
                                        .compared = "what policies have learned",
                                        .learn = learn};

const struct part part_learned = {
    .name = "learned",
    .source = PART_OF_CALLS,
    .start = store_as_part,
    .image = &image,
};
