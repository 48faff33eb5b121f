/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/demand.h"

#include "core/bytes.h"
#include "core/ledger.h"
#include "policy/value_model.h"

/* Pods until the first of them counts 1/e as much as the last. */
#define MEMORY_PODS 10000.0
/* Shares of GPUs that must have been seen before anything is said of them. */
#define KNOWN_MIN 16
/* What follows is worked out again when so many pods are new, or one in so many. */
#define FRESH_MIN 8
#define FRESH_PART 16
/* Counts are brought back to size when a new pod counts so much. */
#define GAIN_MAX 1e6

struct demand {
    GArray *shapes; /* struct shape */
    double gain;    /* what the next pod counts */
    double total;   /* of all shapes, as far as they are remembered */
    double fresh;   /* of it, since the value model was made */
    uint64_t n_gpu; /* pods with GPUs noted so far */
    uint64_t n;     /* changes since it was made */
    uint64_t supply; /* ledger_supply of the ledger that the value model was made for */
    uint64_t version;
    struct value_model *value_model; /* NULL: nothing is known yet */
};

static void shape_clear(gpointer data)
{
    struct shape *shape = data;
    terms_unref(shape->terms);
    g_clear_pointer(&shape->device, g_ref_string_release);
}

/* After a copy of one whose device is whoever's. */
static void shape_ref(struct shape *shape)
{
    terms_ref(shape->terms);
    if (shape->device)
        shape->device = g_ref_string_new_intern(shape->device);
}

/* After a copy: what both refer to has one more reference. */
static void shape_ref_both(struct shape *shape)
{
    terms_ref(shape->terms);
    if (shape->device)
        g_ref_string_acquire(shape->device);
}

struct demand *demand_new(void)
{
    struct demand *demand = g_new0(struct demand, 1);

    demand->shapes = g_array_new(FALSE, TRUE, sizeof(struct shape));
    g_array_set_clear_func(demand->shapes, shape_clear);
    demand->gain = 1;
    return demand;
}

void demand_free(struct demand *demand)
{
    if (!demand)
        return;
    g_array_unref(demand->shapes);
    value_model_unref(demand->value_model);
    g_free(demand);
}

struct demand *demand_dup(const struct demand *demand)
{
    struct demand *copy = g_memdup2(demand, sizeof *demand);

    copy->shapes = g_array_copy(demand->shapes);
    g_array_set_clear_func(copy->shapes, shape_clear);
    for (guint i = 0; i < copy->shapes->len; i++)
        shape_ref_both(&g_array_index(copy->shapes, struct shape, i));
    copy->value_model = value_model_ref(demand->value_model);
    return copy;
}

/* --- shapes --------------------------------------------------------------------------------- */

static bool same_lists(char *const *a, char *const *b)
{
    return a == b || (a && b && g_strv_equal((const char *const *)a, (const char *const *)b));
}

static bool names_models(const struct terms *terms)
{
    return terms && (terms->models || terms->models_not);
}

static bool same_models(const struct terms *a, const struct terms *b)
{
    const bool named = names_models(a);

    if (named != names_models(b))
        return false;
    return !named || (same_lists(a->models, b->models) && same_lists(a->models_not, b->models_not));
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->cards == b->cards && a->cpu == b->cpu && a->core == b->core &&
           a->exclusive == b->exclusive && a->memory.value == b->memory.value &&
           a->memory.kind == b->memory.kind && g_strcmp0(a->device, b->device) == 0 &&
           same_models(a->terms, b->terms);
}

/* A pod as so many equal parts of cards, the largest that it asks for, or as so many devices; init
 * containers give theirs back before most of its life. Borrows. False: it is not about one kind. */
static bool read_shape(const struct request *request, struct shape *ret_shape)
{
    struct shape shape = {.cpu = request->host.cpu, .terms = request->terms};

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        if (ask->init)
            continue;
        if (shape.cards > 0 && g_strcmp0(shape.device, ask->device) != 0)
            return false;
        shape.cards += ask->count;
        shape.exclusive |= ask->exclusive || ask->device;
        shape.device = (char *)ask->device;
        shape.core = MAX(shape.core, ask->core);
        if (ask->memory.value > shape.memory.value)
            shape.memory = ask->memory;
    }
    shape.cards = MIN(shape.cards, SHAPE_CARDS_MAX);
    *ret_shape = shape;
    return true;
}

/* Pods of one shape ask for memory of one class, between two steps, so that one that asks for an absurd
 * amount is told from those that run. No amount that people choose is on a step, where the mean of
 * equal pods could be rounded over it. */
#define MEMORY_STEP_GIB 23.7
#define MEMORY_STEP_TIMES 8
#define MEMORY_CLASSES 8

static int memory_class(double gib)
{
    double step = MEMORY_STEP_GIB;
    int classes = 0;

    while (gib > step && classes < MEMORY_CLASSES) {
        step *= MEMORY_STEP_TIMES;
        classes++;
    }
    return classes;
}

static struct shape *find_shape(struct demand *demand, const struct shape *like, double gib)
{
    const int of = memory_class(gib);

    for (guint i = 0; i < demand->shapes->len; i++) {
        struct shape *shape = &g_array_index(demand->shapes, struct shape, i);
        if (same_shape(shape, like) && memory_class(shape->gib / shape->count) == of)
            return shape;
    }
    return NULL;
}

static struct shape *add_shape(struct demand *demand, const struct shape *new)
{
    struct shape *rarest;

    if (demand->shapes->len < DEMAND_SHAPES_MAX) {
        g_array_append_val(demand->shapes, *new);
        rarest = &g_array_index(demand->shapes, struct shape, demand->shapes->len - 1);
    } else {
        rarest = &g_array_index(demand->shapes, struct shape, 0);
        for (guint i = 1; i < demand->shapes->len; i++) {
            struct shape *shape = &g_array_index(demand->shapes, struct shape, i);
            if (shape->count < rarest->count)
                rarest = shape;
        }
        demand->total -= rarest->count;
        shape_clear(rarest);
        *rarest = *new;
    }
    rarest->terms = names_models(new->terms) ? new->terms : NULL;
    shape_ref(rarest);
    return rarest;
}

static void shrink(struct demand *demand)
{
    for (guint i = 0; i < demand->shapes->len; i++) {
        struct shape *shape = &g_array_index(demand->shapes, struct shape, i);
        shape->count /= demand->gain;
        shape->gib /= demand->gain;
        shape->gib_squares /= demand->gain;
    }
    demand->total /= demand->gain;
    demand->fresh /= demand->gain;
    demand->gain = 1;
}

void demand_note(struct demand *demand, const struct request *request)
{
    const double gib = (double)request->host.memory / GIB;
    struct shape like, *shape;

    if (!read_shape(request, &like))
        return;
    shape = find_shape(demand, &like, gib);
    if (!shape)
        shape = add_shape(demand, &like);
    shape->count += demand->gain;
    shape->gib += demand->gain * gib;
    shape->gib_squares += demand->gain * gib * gib;
    demand->total += demand->gain;
    demand->fresh += demand->gain;
    demand->n_gpu += like.cards > 0;
    demand->n++;
    demand->gain *= 1 + 1 / MEMORY_PODS;
    if (demand->gain > GAIN_MAX)
        shrink(demand);
}

/* --- elsewhere ------------------------------------------------------------------------------ */

struct learned_demand demand_tell(const struct demand *demand)
{
    return (struct learned_demand){
        .shapes = (const struct shape *)(const void *)demand->shapes->data,
        .n = demand->shapes->len,
        .gain = demand->gain,
        .total = demand->total,
        .n_gpu = demand->n_gpu,
    };
}

void demand_learn(struct demand *demand, const struct learned_demand *learned)
{
    g_assert(learned->n <= DEMAND_SHAPES_MAX);
    g_array_set_size(demand->shapes, 0);
    for (size_t i = 0; i < learned->n; i++) {
        struct shape shape = learned->shapes[i];
        shape_ref(&shape);
        g_array_append_val(demand->shapes, shape);
    }
    demand->gain = learned->gain;
    demand->total = learned->total;
    demand->n_gpu = learned->n_gpu;
    demand_unsettle(demand);
}

/* --- what follows --------------------------------------------------------------------------- */

bool demand_is_settled(const struct demand *demand, const struct ledger *ledger)
{
    const bool new_pods =
        demand->fresh >= MAX(FRESH_MIN * demand->gain, demand->total / FRESH_PART);

    return demand->n_gpu < KNOWN_MIN ||
           (demand->value_model && !new_pods && demand->supply == ledger_supply(ledger));
}

bool demand_follows(const struct demand *copy, const struct demand *demand,
                    const struct ledger *ledger)
{
    return copy->version == demand->version + 1 && copy->supply == ledger_supply(ledger) &&
           copy->n == demand->n;
}

struct demand *demand_dup_outcome(const struct demand *demand)
{
    struct demand *copy = demand_new();

    copy->version = demand->version;
    copy->supply = demand->supply;
    copy->value_model = value_model_ref(demand->value_model);
    return copy;
}

void demand_settle(struct demand *demand, struct ledger *ledger)
{
    if (!demand_is_settled(demand, ledger))
        demand_settle_now(demand, ledger);
}

void demand_unsettle(struct demand *demand)
{
    demand->n++; /* no copy follows it */
    demand->fresh = 0;
    demand->supply = 0;
    g_clear_pointer(&demand->value_model, value_model_unref);
    demand->version += demand->version > 0; /* whoever knows it knows that it has changed */
}

static void settle(struct demand *demand, struct value_model *take_model, uint64_t supply)
{
    value_model_unref(demand->value_model);
    demand->value_model = take_model;
    demand->fresh = 0;
    demand->supply = supply;
    demand->version++;
}

bool demand_is_known(const struct demand *demand)
{
    return demand->n_gpu >= KNOWN_MIN;
}

struct demand *demand_draft(struct demand *demand, const struct ledger *ledger)
{
    demand->fresh = 0;
    demand->supply = ledger_supply(ledger);
    return demand_dup(demand);
}

void demand_adopt(struct demand *demand, const struct demand *draft)
{
    value_model_unref(demand->value_model);
    demand->value_model = value_model_ref(draft->value_model);
    demand->version++;
}

void demand_settle_now(struct demand *demand, struct ledger *ledger)
{
    const struct learned_demand learned = demand_tell(demand);

    if (demand->n_gpu >= KNOWN_MIN)
        settle(demand, value_model_new(learned.shapes, learned.n, ledger), ledger_supply(ledger));
}

void demand_settle_for(struct demand *demand, const struct supplies *supplies)
{
    const struct learned_demand learned = demand_tell(demand);

    if (demand->n_gpu >= KNOWN_MIN)
        settle(demand, value_model_of(learned.shapes, learned.n, supplies),
               supplies_hardware(supplies));
}

uint64_t demand_version(const struct demand *demand)
{
    return demand ? demand->version : 0;
}

const struct value_model *demand_value_model(const struct demand *demand)
{
    return demand ? demand->value_model : NULL;
}
