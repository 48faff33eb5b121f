/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a card may be cut into MIG instances, and where there is room for another.
 *
 * Source of the terms: NVIDIA's NVML. A profile is a size of instance; each has a few places on the
 * card where it may be, in slices of the card's memory. Two instances never overlap.
 *
 * Pure functions; profiles are immutable once made and shared by reference.
 */
#include <gpuledger/names.h>
#include <gpuledger/ledger.h>

#pragma GCC visibility push(default)

#define MIG_PROFILES_MAX 64
#define MIG_PLACES_MAX 32
#define MIG_SLICES_MAX 64
#define MIG_FUTURE_SLICES_MAX 8 /* no card has more; with more the future is only estimated */
#define MIG_NAME_MAX 32

struct mig_profile {
    char name[MIG_NAME_MAX]; /* "2g.10gb" */
    int64_t memory;          /* bytes of one instance */
    int32_t core;            /* thousandths of the card */
    int32_t n_places;
    struct mig_place places[MIG_PLACES_MAX];
};

struct mig_profiles {
    int32_t n;
    float *future; /* by taken slices: instances that are still to be expected; NULL: not known */
    struct mig_profile items[];
};

/* Zeroed, with one reference; the maker fills it, and settles it, before it gives it away. */
struct mig_profiles *mig_profiles_new(int32_t n);
/* Works out `future`: the mean number of instances that a card still takes until the first one that finds
 * no place, if all profiles are as likely and each is put where that is largest. Some microseconds. */
void mig_profiles_settle(struct mig_profiles *profiles);
struct mig_profiles *mig_profiles_ref(struct mig_profiles *profiles); /* NULL gives NULL */
void mig_profiles_unref(struct mig_profiles *profiles);               /* NULL is ignored */
typedef struct mig_profiles mig_profiles;                             /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(mig_profiles, mig_profiles_unref)

/* What instances take of a card. */
struct mig_taken {
    bool all;        /* somebody is there who says no place, or places exclude each other */
    bool any;
    uint8_t layout;
    uint64_t slices;
    struct mig_left_out left_out; /* nobody is there, but nobody may come either */
};

/* Of places of several layouts the last one's alone. */
void mig_leave_out(struct mig_left_out *left_out, struct mig_place place);

bool mig_place_equal(struct mig_place a, struct mig_place b);

/* A share without a place takes all of a card. */
void mig_take(struct mig_taken *taken, struct mig_place place);
bool mig_is_free(const struct mig_taken *taken, struct mig_place place);

/* What the node's allocations take of the card, those of `except` apart (NULL: none). */
struct mig_taken mig_taken_of(const struct node *node, const struct card *card,
                              const struct allocation *except);

/* What a share of so much memory and compute needs: the memory of parts of a card are parts of its
 * largest instance, and nobody can have more compute than that has. */
int64_t mig_bytes(const struct node *node, const struct card *card, struct amount amount);

/* The smallest profile with that much of both, NULL: there is none. */
const struct mig_profile *mig_smallest(const struct mig_profiles *profiles, int64_t bytes,
                                       int32_t core);

/* The place for the smallest instance of those sizes that still has one, namely the place after which the
 * most instances are to be expected; where that is not known, the one that leaves most slices of places for
 * others. NULL: there is none. */
const struct mig_profile *mig_choose(const struct mig_profiles *profiles,
                                     const struct mig_taken *taken, int64_t bytes, int32_t core,
                                     struct mig_place *ret_place);

/* The profile of a share of this much memory and compute at this place, or NULL: of those with the memory,
 * the one that mig_choose gives to who is then counted with as much compute. */
const struct mig_profile *mig_find(const struct mig_profiles *profiles, struct mig_place place,
                                   int64_t bytes, int32_t core);

/* The most memory and compute that an instance in that place has; AMOUNT_BYTES_MAX and CORE_WHOLE: no
 * profile is known to fit there. */
void mig_place_most(const struct mig_profiles *profiles, struct mig_place place, int64_t *ret_bytes,
                    int32_t *ret_core);

#pragma GCC visibility pop
