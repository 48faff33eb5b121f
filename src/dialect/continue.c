/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the ledger believes about a pod that it knows: itself. A pod's annotations can be changed by
 * whoever may patch the pod, as long as it runs; the container stays where it was started.
 */
#include "core/ledger.h"
#include "dialect/hold.h"

#include <gpuledger/dialect.h>
#include <string.h>

/* Two lists of shares of one pod, and which of the fresh ones are accounted for. */
struct pairing {
    const struct allocation *known, *fresh;
    struct share shares[ALLOCATION_SHARES_MAX]; /* the known ones, as they will be */
    uint32_t n;
    const struct share *told; /* the fresh ones */
    uint32_t n_told;
    bool used[ALLOCATION_SHARES_MAX];
};

static bool has_card(const struct share *share)
{
    return !share->device && share->basis != SHARE_ON_ONE_CARD && share->basis != SHARE_NOT_GIVEN &&
           (share->key != 0 || share->card != CARD_UNKNOWN);
}

/* Of the same container in the same words. */
static bool is_counterpart(const struct pairing *pairing, const struct share *known,
                           const struct share *told)
{
    return known->container == told->container && !known->device == !told->device &&
           (known->basis == SHARE_BY_NUMBER) == (told->basis == SHARE_BY_NUMBER) &&
           allocation_share_dialect(pairing->known, known) ==
               allocation_share_dialect(pairing->fresh, told);
}

/* What the pod's object says of this dialect now; NULL: nothing. */
static struct pod_reading find_reading(const struct allocation *fresh,
                                       const struct dialect *dialect, bool *ret_found)
{
    for (uint32_t i = 0; i < allocation_own(fresh)->n_readings; i++) {
        *ret_found = true;
        if (allocation_own(fresh)->readings[i].dialect == dialect)
            return allocation_own(fresh)->readings[i];
    }
    *ret_found = allocation_own(fresh)->n_readings == 0 && fresh->dialect == dialect;
    return (struct pod_reading){
        .dialect = dialect,
        .distrust = fresh->distrust,
        .assigned = fresh->assigned,
        .waiting = fresh->waiting,
        .heeded = fresh->heeded,
        .open = fresh->open,
    };
}

/* The ledger's, where it can be known. */
static int32_t number_of(const struct node *node, const struct share *share)
{
    const struct card *card = node && share->minor ? node_share_card(node, share) : NULL;

    return card ? card->index : share->minor ? share->minor - 1 : share->card;
}

/* What was booked is known by its number alone, what is read by what its dialect writes. */
static bool same_card(const struct pairing *pairing, const struct share *known,
                      const struct share *told)
{
    const struct share *named = known->key ? known : told, *numbered = known->key ? told : known;
    const struct node *node = pairing->known->node;

    if (known->key == told->key)
        return known->key || number_of(node, known) == number_of(node, told);
    if (numbered->key || !node)
        return false;
    const struct card *card = node_share_card(node, numbered);
    return card && (card->key == named->key || card->former_key == named->key);
}

static void match_places(struct pairing *pairing)
{
    for (uint32_t i = 0; i < pairing->n; i++) {
        struct share *known = &pairing->shares[i];
        for (uint32_t j = 0; j < pairing->n_told; j++) {
            const struct share *told = &pairing->told[j];
            if (pairing->used[j] || !has_card(known) || !has_card(told) ||
                !is_counterpart(pairing, known, told) || !same_card(pairing, known, told))
                continue;
            pairing->used[j] = true;
            known->named = false;
            known->key = known->key ? known->key : told->key;
            known->minor = known->minor ? known->minor : told->minor;
            break;
        }
    }
}

static bool is_matched(const struct pairing *pairing, const struct share *known)
{
    for (uint32_t j = 0; j < pairing->n_told; j++) {
        const struct share *told = &pairing->told[j];
        if (pairing->used[j] && is_counterpart(pairing, known, told) &&
            same_card(pairing, known, told))
            return true;
    }
    return false;
}

/* The node side has yet to say which cards they are; so it has of what was booked and has not been
 * seen, where it chooses itself: a part of a card can be foreseen, whole cards cannot. */
static bool was_open(const struct allocation *known, const struct dialect *dialect)
{
    bool whole = false;

    for (uint32_t i = 0; i < allocation_own(known)->n_readings; i++) {
        if (allocation_own(known)->readings[i].dialect == dialect)
            return allocation_own(known)->readings[i].open;
    }
    if (known->open || known->state == ALLOCATION_CONFIRMED || !dialect->policy)
        return known->open;
    for (uint32_t i = 0; i < known->n_shares; i++)
        whole |= known->shares[i].exclusive;
    return whole || (known->terms && known->terms->unchecked);
}

bool dialect_is_open(const struct allocation *known)
{
    for (uint32_t i = 0; i < allocation_own(known)->n_readings; i++) {
        if (was_open(known, allocation_own(known)->readings[i].dialect))
            return true;
    }
    return was_open(known, known->dialect);
}

/* A pod that was seen taken does not wait again, nor is its node side to go by its annotations again,
 * unless it is being deleted before it has run. */
static bool goes_on(const struct allocation *known, const struct allocation *fresh, bool so_far)
{
    return known->state != ALLOCATION_CONFIRMED || so_far ||
           (fresh->terminating && !known->terminating);
}

/* It was given what another pod was promised, so nobody knows the cards that it was thought to be on. Not so
 * where the node side had taken it before: then what it is promised was written later. */
static void lose_cards(struct pairing *pairing)
{
    bool found;
    const struct pod_reading now = find_reading(pairing->fresh, pairing->known->dialect, &found);

    if (!found || now.distrust != DISTRUST_MISTAKEN || pairing->known->assigned ||
        !(pairing->known->waiting || pairing->known->heeded))
        return;
    for (uint32_t i = 0; i < pairing->n; i++) {
        struct share *share = &pairing->shares[i];
        if (share->device || allocation_share_dialect(pairing->known, share) != now.dialect)
            continue;
        share->card = CARD_UNKNOWN;
        share->key = 0;
        share->minor = 0;
        share->place = (struct mig_place){0};
        share->basis = SHARE_HELD;
    }
}

/* What is said of a share now. */
struct word {
    bool open;    /* the node side has yet to say its card */
    bool final;   /* it has just said it */
    bool may_act; /* it may still go by what the pod's object names */
};

static struct word word_of(const struct pairing *pairing, const struct share *share)
{
    const struct allocation *known = pairing->known;
    const struct dialect *dialect = allocation_share_dialect(known, share);
    const bool open = was_open(known, dialect);
    bool found;
    const struct pod_reading now = find_reading(pairing->fresh, dialect, &found);

    return (struct word){
        .open = open,
        .final = open && found && !now.open,
        .may_act = found && now.heeded && !known->waited_out &&
                   goes_on(known, pairing->fresh, known->heeded),
    };
}

/* Whether a share that is on no known card is on this one from now on. One that counts on every card
 * would hold less for it, so that it takes the node side's word; one that counts nowhere, anybody's. */
static bool may_be_named(const struct share *known, const struct word *word)
{
    return word->final || known->basis != SHARE_HELD;
}

static void take_card(struct pairing *pairing, struct share *known, uint32_t told)
{
    const struct dialect *dialect = known->dialect;

    *known = pairing->told[told];
    known->dialect = dialect;
    pairing->used[told] = true;
}

/* A card that the object names for such a share and that is nobody's yet; n_told: none. */
static uint32_t find_told(const struct pairing *pairing, const struct share *known)
{
    uint32_t j = 0;

    while (j < pairing->n_told &&
           (pairing->used[j] || !has_card(&pairing->told[j]) ||
            !is_counterpart(pairing, known, &pairing->told[j])))
        j++;
    return j;
}

/* Cards that were not known, or that were the node side's to say. */
static void adopt(struct pairing *pairing)
{
    const uint32_t n = pairing->n;
    bool spread[ALLOCATION_SHARES_MAX] = {false};

    for (uint32_t i = 0; i < n; i++) {
        struct share *known = &pairing->shares[i];
        const struct word word = word_of(pairing, known);
        const uint32_t told = find_told(pairing, known);
        if (known->device || told == pairing->n_told)
            continue;
        if (has_card(known) ? word.final && !is_matched(pairing, known)
                            : may_be_named(known, &word)) {
            spread[i] = !has_card(known);
            take_card(pairing, known, told);
        }
    }
    /* One share may have stood for a number of cards that nobody knew. */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t told;
        while (spread[i] && pairing->n < ALLOCATION_SHARES_MAX &&
               (told = find_told(pairing, &pairing->shares[i])) < pairing->n_told) {
            pairing->shares[pairing->n] = pairing->shares[i];
            take_card(pairing, &pairing->shares[pairing->n++], told);
        }
    }
}

/* Adds cards that nobody but the object names. Returns whether there are any. */
static bool add_named(struct pairing *pairing)
{
    const uint32_t n = pairing->n;
    bool named = false;

    for (uint32_t j = 0; j < pairing->n_told; j++) {
        const struct share *counterpart = NULL;
        for (uint32_t i = 0; i < n && !counterpart; i++) {
            if (!pairing->shares[i].device &&
                is_counterpart(pairing, &pairing->shares[i], &pairing->told[j]))
                counterpart = &pairing->shares[i];
        }
        if (pairing->used[j] || !has_card(&pairing->told[j]) || !counterpart)
            continue;
        /* Where the node side has yet to say which cards they are, it may be its word. */
        const struct word word = word_of(pairing, counterpart);
        named |= !word.open;
        /* Who may be on any card counts on this one already. */
        if ((!word.may_act && !word.open) || !has_card(counterpart) ||
            pairing->n == ALLOCATION_SHARES_MAX)
            continue;
        struct share *share = &pairing->shares[pairing->n++];
        *share = pairing->told[j];
        share->dialect = allocation_share_dialect(pairing->fresh, share);
        share->named = true;
    }
    return named;
}

static void drop_named(struct pairing *pairing, const struct share *shares, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!shares[i].named)
            pairing->shares[pairing->n++] = shares[i];
    }
}

static enum distrust distrust_of(const struct pod_reading *now, bool waited_out)
{
    return now->distrust == DISTRUST_NONE && waited_out && now->waiting ? DISTRUST_WAITED : now->distrust;
}

/* How far the node side has come, by the reading in the words that the pod is known by. */
static void take_progress(const struct allocation *known, const struct allocation *fresh,
                          struct allocation *next)
{
    const bool waits = goes_on(known, fresh, known->waiting);
    const bool heeds = goes_on(known, fresh, known->heeded);
    const bool waited_out = known->waited_out && !(fresh->terminating && !known->terminating);

    next->waited_out = waited_out;
    for (uint32_t i = 0; i < allocation_own(next)->n_readings; i++) {
        struct pod_reading *reading = &allocation_own(next)->readings[i];
        bool found;
        const struct pod_reading now = find_reading(fresh, reading->dialect, &found);
        if (reading->distrust != DISTRUST_UNSEALED)
            reading->distrust = found ? distrust_of(&now, waited_out) : reading->distrust;
        reading->assigned |= now.assigned;
        reading->waiting = found && now.waiting && waits && !waited_out;
        reading->heeded = found && now.heeded && heeds && !waited_out;
        reading->open &= found && now.open;
    }
    bool found;
    const struct pod_reading now = find_reading(fresh, known->dialect, &found);
    next->distrust = known->distrust == DISTRUST_UNSEALED ? DISTRUST_UNSEALED /* nobody will ever know */
                  : found                        ? distrust_of(&now, waited_out)
                                                 : DISTRUST_UNMARKED;
    next->assigned = known->assigned | (found && now.assigned);
    next->waiting = found && now.waiting && waits && !waited_out;
    next->heeded = found && now.heeded && heeds && !waited_out;
    next->open = was_open(known, known->dialect) && found && now.open;
}

static void note_edit(struct allocation *next)
{
    for (uint32_t i = 0; i < allocation_own(next)->n_readings; i++) {
        if (allocation_own(next)->readings[i].distrust == DISTRUST_NONE)
            allocation_own(next)->readings[i].distrust = DISTRUST_EDITED;
    }
    if (next->distrust == DISTRUST_NONE)
        next->distrust = DISTRUST_EDITED;
}

struct allocation *dialect_continue(const struct allocation *known, struct allocation *take_fresh,
                                    bool *ret_edited)
{
    g_autoptr(allocation) fresh = take_fresh;
    g_autofree struct pairing *pairing = g_new0(struct pairing, 1);
    uint32_t n;
    const struct share *shares = allocation_known(known, &n);

    pairing->known = known;
    pairing->fresh = fresh;
    pairing->told = allocation_known(fresh, &pairing->n_told);
    drop_named(pairing, shares, n);
    lose_cards(pairing);
    match_places(pairing);
    adopt(pairing);
    const bool edited = add_named(pairing);

    struct allocation *next = allocation_new(fresh->uid, fresh->ns, fresh->name, pairing->n);
    memcpy(next->shares, pairing->shares, pairing->n * sizeof *pairing->shares);
    next->dialect = known->dialect;
    next->terms = terms_ref(known->terms);
    next->match_amount = known->match_amount;
    /* Nothing that a pod says of itself is known of one that is not believed. */
    next->assume_time_ns = known->assume_time_ns || known->distrust == DISTRUST_UNSEALED
                               ? known->assume_time_ns
                               : fresh->assume_time_ns;
    next->card_units = known->card_units ? known->card_units : fresh->card_units;
    next->oversubscribes = known->oversubscribes;
    next->work_class = work_class_ref(known->class_open ? fresh->work_class : known->work_class);
    next->replica_of = known->replica_of ? known->replica_of : fresh->replica_of;
    next->host = fresh->host;
    next->priority = fresh->priority;
    next->created_s = fresh->created_s;
    next->started_s = fresh->started_s;
    next->terminating = fresh->terminating;
    const struct allocation_own *from = allocation_own(known);
    if (from->n_readings > 0) {
        struct allocation_own *own = allocation_own(next);
        own->n_readings = from->n_readings;
        own->readings = g_memdup2(from->readings, from->n_readings * sizeof *from->readings);
        for (uint32_t i = 0; i < own->n_readings; i++)
            terms_ref(own->readings[i].terms);
    }
    take_progress(known, fresh, next);
    if (edited)
        note_edit(next);
    if (ret_edited)
        *ret_edited = edited;
    return next;
}
