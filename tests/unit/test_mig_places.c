/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an instance is put, against brute force on every layout that a card can have: all ways in which
 * instances may be on it, whatever came and went. Right is the place after which the most instances still
 * come, by trying everything that may come.
 *
 * Places as `nvidia-smi mig -lgipp` prints them: drivers R525 to R560 on A100 (40 and 80 GB), A30 and H100.
 * "+me" apart, of which a card has one.
 */
#include "suite.h"

#include <gpuledger/mig.h>
#include <string.h>

#define SLICES 8
#define SAME 1e-9 /* sums of a few fractions */
#define GIB ((int64_t)1 << 30)

struct published {
    const char *name;
    int gib, sms, size; /* sms: of so many parts as the largest has */
    const char *starts;
};

struct model {
    const char *name;
    int slices, sms, n;
    struct published profiles[6];
};

static const struct model models[] = {
    {"A100-40GB",
     8,
     7,
     6,
     {{"1g.5gb", 5, 1, 1, "0123456"},
      {"1g.10gb", 10, 1, 2, "0246"},
      {"2g.10gb", 10, 2, 2, "024"},
      {"3g.20gb", 20, 3, 4, "04"},
      {"4g.20gb", 20, 4, 4, "0"},
      {"7g.40gb", 40, 7, 8, "0"}}},
    {"A100-80GB, H100-80GB",
     8,
     7,
     6,
     {{"1g.10gb", 10, 1, 1, "0123456"},
      {"1g.20gb", 20, 1, 2, "0246"},
      {"2g.20gb", 20, 2, 2, "024"},
      {"3g.40gb", 40, 3, 4, "04"},
      {"4g.40gb", 40, 4, 4, "0"},
      {"7g.80gb", 80, 7, 8, "0"}}},
    {"A30",
     4,
     4,
     3,
     {{"1g.6gb", 6, 1, 1, "0123"}, {"2g.12gb", 12, 2, 2, "02"}, {"4g.24gb", 24, 4, 4, "0"}}},
};

/* Some profiles of a model, as an administrator allows them, and what is on the card: a slice each. */
struct card_world {
    const struct model *model;
    int allowed[6], n;
    char slices[SLICES + 1]; /* '.': free */
    GHashTable *known;       /* char * -> double * */
};

static bool fits(const struct card_world *world, const struct published *profile, int start)
{
    for (int i = start; i < start + profile->size; i++) {
        if (i >= world->model->slices || world->slices[i] != '.')
            return false;
    }
    return true;
}

static void mark(struct card_world *world, const struct published *profile, int start, char with)
{
    for (int i = start; i < start + profile->size; i++)
        world->slices[i] = with;
}

static const struct published *profile_of(const struct card_world *world, int i)
{
    return &world->model->profiles[world->allowed[i]];
}

static double expect(struct card_world *world);

/* After the best place for it; -1: it has none. */
static double expect_with(struct card_world *world, const struct published *profile)
{
    double most = -1;

    for (const char *start = profile->starts; *start; start++) {
        if (!fits(world, profile, *start - '0'))
            continue;
        mark(world, profile, *start - '0', 'x');
        most = MAX(most, expect(world));
        mark(world, profile, *start - '0', '.');
    }
    return most;
}

/* So many instances come, in the mean, until one finds no place. */
static double expect(struct card_world *world)
{
    const double *known = g_hash_table_lookup(world->known, world->slices);
    double sum = 0;

    for (int i = 0; !known && i < world->n; i++) {
        const double rest = expect_with(world, profile_of(world, i));
        sum += rest < 0 ? 0 : (1 + rest) / world->n;
    }
    if (!known) {
        known = g_memdup2(&sum, sizeof sum);
        g_hash_table_insert(world->known, g_strdup(world->slices), (gpointer)known);
    }
    return *known;
}

/* --- against the program ----------------------------------------------------------------------- */

static struct mig_profiles *make_profiles(const struct card_world *world)
{
    struct mig_profiles *profiles = mig_profiles_new(world->n);

    for (int i = 0; i < world->n; i++) {
        const struct published *from = profile_of(world, i);
        struct mig_profile *profile = &profiles->items[i];
        g_strlcpy(profile->name, from->name, sizeof profile->name);
        profile->memory = from->gib * GIB;
        profile->core = from->sms * 1000 / world->model->sms;
        for (const char *start = from->starts; *start; start++)
            profile->places[profile->n_places++] =
                (struct mig_place){0, (uint8_t)(*start - '0'), (uint8_t)from->size};
    }
    mig_profiles_settle(profiles);
    return profiles;
}

static struct mig_taken read_taken(const struct card_world *world)
{
    struct mig_taken taken = {0};

    for (int i = 0; i < world->model->slices; i++) {
        if (world->slices[i] != '.')
            mig_take(&taken, (struct mig_place){0, (uint8_t)i, 1});
    }
    return taken;
}

/* Whether one of this profile was to be placed. */
static bool check_choice(struct card_world *world, const struct mig_profiles *profiles,
                         const struct published *profile)
{
    const struct mig_taken taken = read_taken(world);
    const double best = expect_with(world, profile);
    struct mig_place place;
    const struct mig_profile *found = mig_choose(profiles, &taken, profile->gib * GIB,
                                                 profile->sms * 1000 / world->model->sms, &place);

    if (best < 0) {
        ck_assert_msg(!found || strcmp(found->name, profile->name) != 0,
                      "%s %s: %s has no place, and got %d", world->model->name, world->slices,
                      profile->name, place.start);
        return false;
    }
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found->name, profile->name);
    ck_assert_ptr_nonnull(strchr(profile->starts, '0' + place.start));
    ck_assert(fits(world, profile, place.start));
    mark(world, profile, place.start, 'x');
    const double got = expect(world);
    mark(world, profile, place.start, '.');
    ck_assert_msg(got >= best - SAME, "%s %s: %s at %d leaves %f, and not %f", world->model->name,
                  world->slices, profile->name, place.start, got, best);
    return true;
}

/* All layouts from this one on; returns how many choices there were. */
static guint walk(struct card_world *world, const struct mig_profiles *profiles, GHashTable *seen)
{
    guint n = 0;

    if (!g_hash_table_add(seen, g_strdup(world->slices)))
        return 0;
    for (int i = 0; i < world->n; i++) {
        const struct published *profile = profile_of(world, i);
        n += check_choice(world, profiles, profile);
        for (const char *start = profile->starts; *start; start++) {
            if (!fits(world, profile, *start - '0'))
                continue;
            mark(world, profile, *start - '0', 'x');
            n += walk(world, profiles, seen);
            mark(world, profile, *start - '0', '.');
        }
    }
    return n;
}

/* `allowed`: a bit for each profile. */
static void check_model(const struct model *model, unsigned allowed, guint *ret_layouts,
                        guint *ret_choices)
{
    struct card_world world = {.model = model};

    for (int i = 0; i < model->n; i++) {
        if (allowed & 1U << i)
            world.allowed[world.n++] = i;
    }
    memset(world.slices, '.', (size_t)model->slices);
    world.known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(mig_profiles) profiles = make_profiles(&world);
    *ret_choices = walk(&world, profiles, seen);
    *ret_layouts = g_hash_table_size(seen);
    g_hash_table_unref(world.known);
}

START_TEST(every_layout_is_as_good_as_brute_force)
{
    static const guint layouts[] = {192, 192, 16}; /* different sets of slices */
    guint n_layouts, n_choices;

    check_model(&models[_i], (1U << models[_i].n) - 1, &n_layouts, &n_choices);
    ck_assert_uint_eq(n_layouts, layouts[_i]);
    ck_assert_uint_gt(n_choices, n_layouts);
}
END_TEST

/* HAMi's chart allows some of the profiles of each model. */
START_TEST(whatever_is_allowed)
{
    const unsigned all = (1U << models[_i].n) - 1;
    guint n_layouts, n_choices;

    for (unsigned allowed = 1; allowed <= all; allowed++)
        check_model(&models[_i], allowed, &n_layouts, &n_choices);
}
END_TEST

/* With a 1g at 0, a 1g.20gb belongs beside it: elsewhere there would be no 3g any more. */
START_TEST(a_small_one_with_much_memory_leaves_room_for_a_large_one)
{
    struct card_world world = {.model = &models[1], .allowed = {0, 1, 2, 3, 4, 5}, .n = 6};
    struct mig_taken taken = {0};
    struct mig_place place;

    g_autoptr(mig_profiles) profiles = make_profiles(&world);
    mig_take(&taken, (struct mig_place){0, 0, 1});
    ck_assert_str_eq(mig_choose(profiles, &taken, 20 * GIB, 142, &place)->name, "1g.20gb");
    ck_assert_int_eq(place.start, 2);
    mig_take(&taken, place);
    ck_assert_str_eq(mig_choose(profiles, &taken, 40 * GIB, 0, &place)->name, "3g.40gb");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mig_places");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, every_layout_is_as_good_as_brute_force, 0, G_N_ELEMENTS(models));
    tcase_add_loop_test(all, whatever_is_allowed, 0, G_N_ELEMENTS(models));
    tcase_add_test(all, a_small_one_with_much_memory_leaves_room_for_a_large_one);
    suite_add_tcase(suite, all);

    return suite_run(suite);
}
