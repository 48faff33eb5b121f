/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod holds. Most pods ask in one dialect, and all of it counts wherever they are. The others
 * keep all that was read, and their shares are those that count on their node: see struct pod_reading and
 * enum share_basis.
 */
#include "core/allocation.h"
#include "core/ledger/granted_unit.h"
#include "core/ledger.h"

#include <gpuledger/mig.h>
#include <string.h>

struct allocation *allocation_new(const char *uid, const char *ns, const char *name,
                                  size_t n_shares)
{
    g_assert(n_shares <= ALLOCATION_SHARES_MAX);
    size_t fixed = sizeof(struct allocation_own) + n_shares * sizeof(struct share);
    size_t uid_size = strlen(uid) + 1, ns_size = strlen(ns) + 1, name_size = strlen(name) + 1;
    struct allocation_own *own = g_malloc0(fixed + uid_size + ns_size + name_size);
    struct allocation *allocation = &own->allocation;
    char *strings = (char *)own + fixed;

    allocation->uid = memcpy(strings, uid, uid_size);
    allocation->ns = memcpy(strings + uid_size, ns, ns_size);
    allocation->name = memcpy(strings + uid_size + ns_size, name, name_size);
    allocation->n_shares = (uint32_t)n_shares;
    own->n_strings = (uint32_t)(uid_size + ns_size + name_size);
    return allocation;
}

const struct share *allocation_known(const struct allocation *allocation, uint32_t *ret_n)
{
    const struct allocation_own *own = allocation_own(allocation);

    *ret_n = own->known ? own->n_known : allocation->n_shares;
    return own->known ? own->known : allocation->shares;
}

static struct pod_reading *readings_dup(const struct pod_reading *readings, uint32_t n)
{
    struct pod_reading *copy = g_memdup2(readings, n * sizeof *readings);

    for (uint32_t i = 0; i < n; i++)
        terms_ref(copy[i].terms);
    return copy;
}

static size_t fixed_size(const struct allocation *allocation)
{
    uint32_t n;

    allocation_known(allocation, &n);
    return sizeof(struct allocation_own) + n * sizeof(struct share);
}

size_t allocation_size(const struct allocation *allocation)
{
    const size_t alignment = _Alignof(struct allocation_own);
    const size_t size = fixed_size(allocation) + allocation_own(allocation)->n_strings;

    return (size + alignment - 1) / alignment * alignment;
}

struct allocation *allocation_copy(const struct allocation *allocation, void *block)
{
    const struct allocation_own *own = allocation_own(allocation);
    struct allocation_own *copy_own = block;
    struct allocation *copy = &copy_own->allocation;

    memcpy(copy_own, own, sizeof *own + allocation->n_shares * sizeof(struct share));
    copy->uid = memcpy((char *)block + fixed_size(allocation), allocation->uid, own->n_strings);
    copy->ns = copy->uid + (allocation->ns - allocation->uid);
    copy->name = copy->uid + (allocation->name - allocation->uid);
    copy->node = NULL;
    terms_ref(copy->terms);
    pod_facts_ref(copy->facts);
    work_class_ref(copy->work_class);
    copy_own->readings = readings_dup(own->readings, own->n_readings);
    copy_own->known = g_memdup2(own->known, own->n_known * sizeof *own->known);
    return copy;
}

struct allocation *allocation_dup(const struct allocation *allocation)
{
    return allocation_copy(allocation, g_malloc(allocation_size(allocation)));
}

void allocation_clear(struct allocation *allocation)
{
    struct allocation_own *own = allocation_own(allocation);

    for (uint32_t i = 0; i < own->n_readings; i++)
        terms_unref(own->readings[i].terms);
    g_free(own->readings);
    g_free(own->known);
    terms_unref(allocation->terms);
    pod_facts_unref(allocation->facts);
    work_class_unref(allocation->work_class);
}

void allocation_free(struct allocation *allocation)
{
    if (!allocation)
        return;
    allocation_clear(allocation);
    g_free(allocation_own(allocation));
}

/* --- all that was read ------------------------------------------------------------------------ */

static struct pod_reading reading_of(const struct allocation *allocation)
{
    return (struct pod_reading){
        .dialect = allocation->dialect,
        .terms = terms_ref(allocation->terms),
        .match_amount = allocation->match_amount,
        .assume_time_ns = allocation->assume_time_ns,
        .distrust = allocation->distrust,
        .assigned = allocation->assigned,
        .waiting = allocation->waiting,
        .heeded = allocation->heeded,
        .open = allocation->open,
        .alternative = allocation->alternative,
    };
}

static void copy_shares(const struct allocation *from, struct share *to)
{
    uint32_t n;
    const struct share *known = allocation_known(from, &n);

    for (uint32_t i = 0; i < n; i++) {
        to[i] = known[i];
        if (!to[i].dialect)
            to[i].dialect = from->dialect;
    }
}

struct allocation *allocation_join(struct allocation *take_first, struct allocation *take_other)
{
    g_autoptr(allocation) first = take_first, other = take_other;
    uint32_t n_first, n_other;

    allocation_known(first, &n_first);
    allocation_known(other, &n_other);
    if (n_first + n_other > ALLOCATION_SHARES_MAX)
        return NULL;
    struct allocation *both =
        allocation_new(first->uid, first->ns, first->name, n_first + n_other);
    const struct allocation_own *first_own = allocation_own(first);
    struct allocation_own *own = allocation_own(both);
    copy_shares(first, both->shares);
    copy_shares(other, both->shares + n_first);
    own->n_readings = MAX(first_own->n_readings, 1) + 1;
    own->readings = g_new0(struct pod_reading, own->n_readings);
    if (first_own->n_readings > 0) {
        g_autofree struct pod_reading *before =
            readings_dup(first_own->readings, first_own->n_readings);
        memcpy(own->readings, before, first_own->n_readings * sizeof *before);
    } else {
        own->readings[0] = reading_of(first);
    }
    own->readings[own->n_readings - 1] = reading_of(other);
    /* Until it is on a node, what the first says is told of it. */
    both->dialect = first->dialect;
    both->terms = terms_ref(first->terms);
    both->match_amount = first->match_amount;
    both->assume_time_ns = first->assume_time_ns;
    both->card_units = MAX(first->card_units, other->card_units);
    both->distrust = first->distrust;
    both->assigned = first->assigned;
    both->waiting = first->waiting;
    both->open = first->open;
    own->n_known = both->n_shares;
    own->known = g_memdup2(both->shares, both->n_shares * sizeof *both->shares);
    return both;
}

void allocation_note_request(struct allocation *allocation, const struct request *request)
{
    struct terms *terms = request->terms;

    allocation->dialect = request->dialect;
    allocation->terms = terms_ref(terms);
    allocation->oversubscribes = terms && terms->oversubscribes;
    allocation->work_class = terms ? work_class_ref(terms->work_class) : NULL;
    allocation->replica_of = terms ? terms->replica_of : 0;
    allocation->host = request->host;
    allocation->match_amount = request->match_amount;
}

void allocation_witness(struct allocation *allocation, const struct node *node)
{
    struct allocation_own *own = allocation_own(allocation);
    uint32_t n;

    allocation_known(allocation, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct share *share = own->known ? &own->known[i] : &allocation->shares[i];
        const struct pool *pool = share->device ? node_pool(node, share->device) : NULL;
        if (pool) {
            share->replicas = pool->divided;
            share->sharing = pool->sharing;
        }
    }
}

/* --- what counts ------------------------------------------------------------------------------ */

/* The first of the alternatives that the node serves; else the last of all. NULL: there are none. */
static const struct dialect *pick_alternative(const struct allocation *allocation,
                                              const struct node *node)
{
    const struct allocation_own *own = allocation_own(allocation);
    const struct dialect *last = NULL;

    for (uint32_t i = 0; i < own->n_readings; i++) {
        const struct pod_reading *reading = &own->readings[i];
        if (!reading->alternative)
            continue;
        if (node_offers(node, reading->dialect))
            return reading->dialect;
        last = reading->dialect;
    }
    return last;
}

/* Of alternatives that the node serves all count: nobody can say by which the pod was placed. If it
 * serves none, one stands for all, but for a pod that may have been made to look so. */
static bool reading_counts(const struct pod_reading *reading, const struct dialect *picked,
                           const struct node *node)
{
    return !reading->alternative || reading->dialect == picked ||
           node_offers(node, reading->dialect) ||
           (reading->distrust == DISTRUST_UNSEALED && !node_offers(node, picked));
}

static bool tells_uuids(const struct node *node)
{
    for (int32_t i = 0; i < node->n_cards; i++) {
        if (node->cards[i].key)
            return true;
    }
    return false;
}

static bool share_counts(const struct allocation *allocation, const struct share *share,
                         const struct dialect *picked, const struct node *node)
{
    const struct allocation_own *own = allocation_own(allocation);

    if (share->basis == SHARE_NOT_GIVEN ||
        (share->basis == SHARE_ON_ONE_CARD && node->n_cards != 1) ||
        (share->basis == SHARE_BY_UUID && !tells_uuids(node)) ||
        (share->basis == SHARE_BY_NUMBER && tells_uuids(node)) ||
        (share->basis == SHARE_OF_ITS_MAKE &&
         !node_offers(node, allocation_share_dialect(allocation, share))))
        return false;
    for (uint32_t i = 0; i < own->n_readings; i++) {
        if (own->readings[i].dialect == share->dialect)
            return reading_counts(&own->readings[i], picked, node);
    }
    return true;
}

/* What is told of the pod as a whole is that of the first reading that counts; it waits if it does so
 * in any. */
static void choose_reading(struct allocation *allocation, const struct dialect *picked,
                           const struct node *node)
{
    struct allocation_own *own = allocation_own(allocation);
    const struct pod_reading *chosen = NULL;

    allocation->waiting = allocation->heeded = allocation->open = false;
    for (uint32_t i = 0; i < own->n_readings; i++) {
        const struct pod_reading *reading = &own->readings[i];
        if (!reading_counts(reading, picked, node))
            continue;
        chosen = chosen ? chosen : reading;
        allocation->waiting |= reading->waiting;
        allocation->heeded |= reading->heeded;
        allocation->open |= reading->open;
    }
    if (!chosen)
        return;
    terms_ref(chosen->terms);
    terms_unref(allocation->terms);
    allocation->terms = chosen->terms;
    allocation->dialect = chosen->dialect;
    allocation->distrust = chosen->distrust;
    allocation->assigned = chosen->assigned;
    allocation->match_amount = chosen->match_amount;
    allocation->assume_time_ns = chosen->assume_time_ns;
}

static bool is_regranted(const struct allocation *allocation, const struct node *node,
                         const struct share *share)
{
    return !share->device &&
           granted_amount(allocation, node, share->memory).kind != share->memory.kind;
}

/* Keeps all shares before the first are left out. */
static bool keep_known(struct allocation *allocation, const struct node *node)
{
    struct allocation_own *own = allocation_own(allocation);
    bool conditional = own->n_readings > 0;

    for (uint32_t i = 0; !own->known && i < allocation->n_shares; i++)
        conditional |= allocation->shares[i].basis != SHARE_HELD ||
                       is_regranted(allocation, node, &allocation->shares[i]);
    if (conditional && !own->known) {
        own->n_known = allocation->n_shares;
        own->known =
            g_memdup2(allocation->shares, allocation->n_shares * sizeof *allocation->shares);
    }
    return own->known;
}

void allocation_choose(struct allocation *allocation, const struct node *node)
{
    struct allocation_own *own = allocation_own(allocation);

    if (!keep_known(allocation, node))
        return;
    const struct dialect *picked = pick_alternative(allocation, node);
    if (own->n_readings > 0)
        choose_reading(allocation, picked, node);
    allocation->n_shares = 0;
    for (uint32_t i = 0; i < own->n_known; i++) {
        if (!share_counts(allocation, &own->known[i], picked, node))
            continue;
        struct share *share = &allocation->shares[allocation->n_shares++];
        *share = own->known[i];
        if (!share->device)
            share->memory = granted_amount(allocation, node, share->memory);
    }
}

/* --- comparing -------------------------------------------------------------------------------- */

bool share_same_place(const struct share *a, const struct share *b)
{
    return a->key == b->key && (a->key || a->card == b->card) &&
           g_strcmp0(a->device, b->device) == 0;
}

static bool share_equal(const struct share *a, const struct share *b)
{
    return a->memory.value == b->memory.value && a->memory.kind == b->memory.kind &&
           a->memory.at_least == b->memory.at_least && a->container == b->container &&
           share_same_place(a, b) && a->core == b->core && a->exclusive == b->exclusive &&
           a->init == b->init && a->sidecar == b->sidecar && a->named == b->named &&
           a->basis == b->basis && a->devices == b->devices && a->replicas == b->replicas &&
           a->minor == b->minor && a->sharing == b->sharing && a->dialect == b->dialect &&
           mig_place_equal(a->place, b->place);
}

static int64_t memory_wanted(const struct allocation *allocation)
{
    return allocation->terms ? allocation->terms->memory_wanted : 0;
}

static const char *class_name(const struct allocation *allocation)
{
    return allocation->work_class ? allocation->work_class->name : NULL;
}

static bool readings_equal(const struct allocation *a, const struct allocation *b)
{
    const struct allocation_own *own = allocation_own(a), *other = allocation_own(b);
    bool equal = own->n_readings == other->n_readings;

    for (uint32_t i = 0; equal && i < own->n_readings; i++) {
        const struct pod_reading *left = &own->readings[i], *right = &other->readings[i];
        equal = left->dialect == right->dialect && left->match_amount == right->match_amount &&
                left->assume_time_ns == right->assume_time_ns && left->distrust == right->distrust &&
                left->assigned == right->assigned && left->waiting == right->waiting &&
                left->heeded == right->heeded && left->open == right->open && left->alternative == right->alternative;
    }
    return equal;
}

bool allocation_equal(const struct allocation *a, const struct allocation *b)
{
    uint32_t n, n_other;
    const struct share *known = allocation_known(a, &n), *other = allocation_known(b, &n_other);

    if (a->node != b->node || a->dialect != b->dialect || a->distrust != b->distrust ||
        a->assigned != b->assigned || a->oversubscribes != b->oversubscribes ||
        a->waiting != b->waiting || a->open != b->open || a->match_amount != b->match_amount ||
        a->assume_time_ns != b->assume_time_ns || n != n_other || a->n_shares != b->n_shares ||
        memory_wanted(a) != memory_wanted(b) || g_strcmp0(class_name(a), class_name(b)) != 0 ||
        !host_equal(&a->host, &b->host) || !g_str_equal(a->uid, b->uid) ||
        !g_str_equal(a->ns, b->ns) || !g_str_equal(a->name, b->name) || !readings_equal(a, b))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!share_equal(&known[i], &other[i]))
            return false;
    }
    return true;
}

struct share share_of_ask(const struct card_ask *ask)
{
    return (struct share){
        .memory = ask->memory,
        .container = ask->container,
        .card = CARD_UNKNOWN,
        .core = ask->core,
        .exclusive = ask->exclusive,
        .init = ask->init,
        .sidecar = ask->sidecar,
        .device = ask->device,
        .devices = ask->device ? ask->count : 0,
    };
}
