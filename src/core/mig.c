/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/mig.h>

#define ROUNDING 1e-4F

struct mig_profiles *mig_profiles_new(int32_t n)
{
    struct mig_profiles *profiles = g_atomic_rc_box_alloc0(
        sizeof *profiles + (gsize)n * sizeof profiles->items[0]);

    profiles->n = n;
    return profiles;
}

struct mig_profiles *mig_profiles_ref(struct mig_profiles *profiles)
{
    return profiles ? g_atomic_rc_box_acquire(profiles) : NULL;
}

static void clear(gpointer data)
{
    g_free(((struct mig_profiles *)data)->future);
}

void mig_profiles_unref(struct mig_profiles *profiles)
{
    if (profiles)
        g_atomic_rc_box_release_full(profiles, clear);
}

bool mig_place_equal(struct mig_place a, struct mig_place b)
{
    return a.layout == b.layout && a.start == b.start && a.size == b.size;
}

/* --- what is taken --------------------------------------------------------------------------- */

static uint64_t slices_of(struct mig_place place)
{
    const uint64_t ones = place.size >= MIG_SLICES_MAX ? ~UINT64_C(0)
                                                       : (UINT64_C(1) << place.size) - 1;
    return place.start >= MIG_SLICES_MAX ? 0 : ones << place.start;
}

void mig_take(struct mig_taken *taken, struct mig_place place)
{
    taken->all |= place.size == 0 || (taken->any && taken->layout != place.layout);
    taken->any = true;
    taken->layout = place.layout;
    taken->slices |= slices_of(place);
}

void mig_leave_out(struct mig_left_out *left_out, struct mig_place place)
{
    if (left_out->layout != place.layout)
        *left_out = (struct mig_left_out){.layout = place.layout};
    left_out->slices |= slices_of(place);
}

static bool is_left_out(const struct mig_left_out *left_out, struct mig_place place)
{
    return left_out->layout == place.layout && (left_out->slices & slices_of(place)) != 0;
}

bool mig_is_free(const struct mig_taken *taken, struct mig_place place)
{
    return !taken->all && !is_left_out(&taken->left_out, place) &&
           (!taken->any ||
            (taken->layout == place.layout && (taken->slices & slices_of(place)) == 0));
}

struct mig_taken mig_taken_of(const struct node *node, const struct card *card,
                              const struct allocation *except)
{
    struct mig_taken taken = {.left_out = card->left_out};

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        for (uint32_t j = 0; other != except && j < other->n_shares; j++) {
            const struct share *share = &other->shares[j];
            const struct card *held = node_share_card(node, share);
            if (held == card)
                mig_take(&taken, share->place);
            else if (!held && !share->device)
                taken.all = true;
        }
    }
    return taken;
}

/* --- what fits ------------------------------------------------------------------------------- */

static int32_t largest_core(const struct mig_profiles *profiles)
{
    int32_t largest = 0;

    for (int32_t i = 0; i < profiles->n; i++)
        largest = MAX(largest, profiles->items[i].core);
    return largest;
}

int64_t mig_bytes(const struct node *node, const struct card *card, struct amount amount)
{
    int64_t largest = 0;

    for (int32_t i = 0; i < card->mig->n; i++)
        largest = MAX(largest, card->mig->items[i].memory);
    return MIN(card_bytes(node, card, amount),
               amount.kind == AMOUNT_THOUSANDTHS ? largest / 1000 * amount.value +
                                                       largest % 1000 * amount.value / 1000
                                                 : AMOUNT_BYTES_MAX);
}

/* Whether a profile is large enough and better than the one found before. */
static bool is_better(const struct mig_profile *profile, int64_t bytes, int32_t core,
                      const struct mig_profile *best)
{
    if (profile->memory < bytes || profile->core < core || profile->n_places == 0)
        return false;
    return !best || profile->memory < best->memory ||
           (profile->memory == best->memory && profile->core < best->core);
}

const struct mig_profile *mig_smallest(const struct mig_profiles *profiles, int64_t bytes,
                                       int32_t core)
{
    const struct mig_profile *best = NULL;

    core = MIN(core, largest_core(profiles));
    for (int32_t i = 0; i < profiles->n; i++) {
        if (is_better(&profiles->items[i], bytes, core, best))
            best = &profiles->items[i];
    }
    return best;
}

/* --- what may still come ----------------------------------------------------------------------- */

/* So many slices has the card, if all places are of one layout and few enough; else 0. */
static int slices_in_use(const struct mig_profiles *profiles)
{
    const struct mig_place *first = NULL;
    int n = 0;

    for (int32_t i = 0; i < profiles->n; i++) {
        for (int32_t j = 0; j < profiles->items[i].n_places; j++) {
            const struct mig_place *place = &profiles->items[i].places[j];
            first = first ? first : place;
            n = MAX(n, place->start + place->size);
            if (place->layout != first->layout || place->size == 0 || n > MIG_FUTURE_SLICES_MAX)
                return 0;
        }
    }
    return n;
}

/* What the profile adds when it comes to a card with these slices taken. */
static float after_next(const struct mig_profiles *profiles, const struct mig_profile *profile,
                        uint64_t taken)
{
    float most = 0;

    for (int32_t i = 0; i < profile->n_places; i++) {
        const uint64_t slices = slices_of(profile->places[i]);
        if ((taken & slices) == 0)
            most = MAX(most, 1 + profiles->future[taken | slices]);
    }
    return most;
}

void mig_profiles_settle(struct mig_profiles *profiles)
{
    const int n_slices = slices_in_use(profiles);

    g_clear_pointer(&profiles->future, g_free);
    if (n_slices == 0)
        return;
    profiles->future = g_new0(float, 1 << MIG_FUTURE_SLICES_MAX);
    /* More slices are a larger number: those are known first. */
    for (int taken = (1 << n_slices) - 1; taken >= 0; taken--) {
        float sum = 0;
        for (int32_t i = 0; i < profiles->n; i++)
            sum += after_next(profiles, &profiles->items[i], (uint64_t)taken);
        profiles->future[taken] = sum / (float)profiles->n;
    }
}

/* Slices of all places that are left, each counted for itself: a large one is worth more. */
static float count_left(const struct mig_profiles *profiles, const struct mig_taken *taken)
{
    int32_t n = 0;

    for (int32_t i = 0; i < profiles->n; i++) {
        for (int32_t j = 0; j < profiles->items[i].n_places; j++) {
            const struct mig_place place = profiles->items[i].places[j];
            n += mig_is_free(taken, place) ? place.size : 0;
        }
    }
    return (float)n;
}

static float future_of(const struct mig_profiles *profiles, const struct mig_taken *taken)
{
    return profiles->future && !taken->all
               ? profiles->future[taken->slices & ((1 << MIG_FUTURE_SLICES_MAX) - 1)]
               : count_left(profiles, taken);
}

/* Of the profile's places the one after which most may come; false: none is free. */
static bool choose_place(const struct mig_profiles *profiles, const struct mig_profile *profile,
                         const struct mig_taken *taken, struct mig_place *ret_place)
{
    float most = -1;

    for (int32_t i = 0; i < profile->n_places; i++) {
        struct mig_taken after = *taken;
        if (!mig_is_free(taken, profile->places[i]))
            continue;
        mig_take(&after, profile->places[i]);
        const float left = future_of(profiles, &after);
        if (left <= most + ROUNDING)
            continue;
        most = left;
        *ret_place = profile->places[i];
    }
    return most >= 0;
}

const struct mig_profile *mig_choose(const struct mig_profiles *profiles,
                                     const struct mig_taken *taken, int64_t bytes, int32_t core,
                                     struct mig_place *ret_place)
{
    const struct mig_profile *best = NULL;

    core = MIN(core, largest_core(profiles));
    for (int32_t i = 0; i < profiles->n; i++) {
        const struct mig_profile *profile = &profiles->items[i];
        struct mig_place place;
        if (!is_better(profile, bytes, core, best) ||
            !choose_place(profiles, profile, taken, &place))
            continue;
        best = profile;
        *ret_place = place;
    }
    return best;
}

/* Who is counted with so much compute has no less than the profile, and more only if there is none with
 * more. */
static bool is_closer(const struct mig_profile *profile, int32_t core,
                      const struct mig_profile *found)
{
    const bool enough = profile->core <= core;

    if (!found || enough != (found->core <= core))
        return !found || enough;
    return enough ? profile->core > found->core : profile->core < found->core;
}

const struct mig_profile *mig_find(const struct mig_profiles *profiles, struct mig_place place,
                                   int64_t bytes, int32_t core)
{
    const struct mig_profile *found = NULL;

    for (int32_t i = 0; i < profiles->n; i++) {
        const struct mig_profile *profile = &profiles->items[i];
        if (profile->memory != bytes || !is_closer(profile, core, found))
            continue;
        for (int32_t j = 0; j < profile->n_places; j++) {
            if (mig_place_equal(profile->places[j], place))
                found = profile;
        }
    }
    return found;
}

void mig_place_most(const struct mig_profiles *profiles, struct mig_place place, int64_t *ret_bytes,
                    int32_t *ret_core)
{
    bool found = false;

    *ret_bytes = *ret_core = 0;
    for (int32_t i = 0; i < profiles->n; i++) {
        const struct mig_profile *profile = &profiles->items[i];
        for (int32_t j = 0; j < profile->n_places; j++) {
            if (!mig_place_equal(profile->places[j], place))
                continue;
            found = true;
            *ret_bytes = MAX(*ret_bytes, profile->memory);
            *ret_core = MAX(*ret_core, profile->core);
        }
    }
    *ret_bytes = found ? *ret_bytes : AMOUNT_BYTES_MAX;
    *ret_core = found ? *ret_core : CORE_WHOLE;
}
