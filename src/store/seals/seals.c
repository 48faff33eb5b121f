/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seals/seals.h"

#include "core/allocation.h"
#include "core/ledger.h"
#include "store/booking.h"
#include "dialect/hold.h"
#include "json/json.h"

#include <pthread.h>
#include <string.h>

struct seals {
    pthread_mutex_t lock;
    struct keyring *keyring;
    bool unchecked, checks_only;
};

static int64_t now_s(void)
{
    return g_get_real_time() / G_USEC_PER_SEC;
}

struct seals *seals_new(void)
{
    struct seals *seals = g_new0(struct seals, 1);

    pthread_mutex_init(&seals->lock, NULL);
    seals->keyring = keyring_new();
    return seals;
}

struct seals *seals_new_checking(void)
{
    struct seals *seals = seals_new();

    seals->checks_only = true;
    return seals;
}

bool seals_sign(const struct seals *seals)
{
    return seals && !seals->checks_only;
}

bool seals_unchecked(struct seals *seals)
{
    pthread_mutex_lock(&seals->lock);
    const bool unchecked = seals->unchecked;
    pthread_mutex_unlock(&seals->lock);
    return unchecked;
}

void seals_free(struct seals *seals)
{
    if (!seals)
        return;
    pthread_mutex_destroy(&seals->lock);
    keyring_free(seals->keyring);
    g_free(seals);
}

void seals_set(struct seals *seals, struct keyring *take_keyring)
{
    pthread_mutex_lock(&seals->lock);
    struct keyring *old = seals->keyring;
    seals->keyring = take_keyring;
    pthread_mutex_unlock(&seals->lock);
    keyring_free(old);
}

struct keyring *seals_keyring(struct seals *seals)
{
    pthread_mutex_lock(&seals->lock);
    struct keyring *copy = keyring_dup(seals->keyring);
    pthread_mutex_unlock(&seals->lock);
    return copy;
}

bool seals_adopt(struct seals *seals)
{
    pthread_mutex_lock(&seals->lock);
    const bool adopts = keyring_adopted(seals->keyring) == 0;
    pthread_mutex_unlock(&seals->lock);
    return adopts;
}

/* --- making --------------------------------------------------------------------------------- */

/* The node side has done its part, and what it says from now on is not its word. */
static bool is_settled(const struct allocation *allocation)
{
    return allocation->state == ALLOCATION_CONFIRMED && !allocation->waiting &&
           !allocation->heeded && !allocation->open;
}

/* A number outlives what is said of its node if it is of that kind which the pod's annotations have. */
static bool counts_minors(const struct allocation *allocation, const struct share *share)
{
    return !share->device && share->card != CARD_UNKNOWN &&
           allocation_share_dialect(allocation, share)->numbers == CARD_NUMBERS_MINOR;
}

/* As it is to be known again: what counts on its node, without cards that an edit names. */
static struct allocation *as_sealed(const struct allocation *allocation)
{
    struct allocation *sealed = allocation_dup(allocation);
    uint32_t n, kept = 0;
    const struct share *shares = allocation_known(allocation, &n);

    if (allocation_own(allocation)->n_readings > 0) {
        shares = allocation->shares;
        n = allocation->n_shares;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct card *card = shares[i].device || shares[i].card == CARD_UNKNOWN
                                      ? NULL
                                      : node_card(allocation->node, shares[i].card);
        if (shares[i].named)
            continue;
        sealed->shares[kept] = shares[i];
        if (card && !shares[i].key)
            sealed->shares[kept].key = card->key;
        if (card && counts_minors(allocation, &shares[i]))
            sealed->shares[kept].card = card->minor;
        kept++;
    }
    sealed->n_shares = kept;
    sealed->node = allocation->node;
    return sealed;
}

char *seal_describe(const struct allocation *allocation)
{
    g_autoptr(allocation) sealed = as_sealed(allocation);
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    if (is_settled(allocation))
        json_key_bool(&writer, "settled", true);
    if (allocation->open)
        json_key_bool(&writer, "open", true);
    json_key(&writer, "booking");
    booking_encode(&writer, sealed);
    json_end_object(&writer);
    const bool fits =
        sealed->n_shares > 0 && sealed->n_shares <= REQUEST_ASKS_MAX && text->len < SEAL_MAX;
    return g_string_free(text, !fits);
}

char *seals_make(struct seals *seals, const char *facts)
{
    char *seal = NULL;

    if (!seals_sign(seals) || !facts)
        return NULL;
    pthread_mutex_lock(&seals->lock);
    seal = keyring_seal(seals->keyring, facts, now_s());
    pthread_mutex_unlock(&seals->lock);
    return seal;
}

/* --- reading -------------------------------------------------------------------------------- */

struct facts {
    bool settled, open;
    const cJSON *booking;
};

static const struct json_field facts_fields[] = {
    JSON_FIELD_BOOL(struct facts, settled, "settled", 0),
    JSON_FIELD_BOOL(struct facts, open, "open", 0),
    JSON_FIELD_OBJECT(struct facts, booking, "booking", JSON_REQUIRED),
    JSON_FIELD_END,
};

static struct allocation *read_facts(const char *text, const struct pod_view *pod,
                                     const struct classes *classes)
{
    g_autoptr(json_arena) arena = json_arena_new();
    const cJSON *object = json_parse(arena, text, strlen(text), NULL);
    struct facts facts = {.settled = false};
    const char *node;

    if (!object || !json_decode(arena, object, facts_fields, &facts, NULL))
        return NULL;
    g_autoptr(allocation) sealed = booking_decode(arena, facts.booking, classes, &node);
    if (!sealed || !g_str_equal(sealed->uid, pod->uid) || g_strcmp0(node, pod->node_name) != 0 ||
        !g_str_equal(sealed->ns, pod->ns) || !g_str_equal(sealed->name, pod->name))
        return NULL;
    if (facts.settled) {
        sealed->state = ALLOCATION_CONFIRMED;
        sealed->waiting = sealed->heeded = false;
    } else {
        sealed->heeded = true;
    }
    sealed->open = facts.open;
    for (uint32_t i = 0; i < sealed->n_shares; i++) {
        if (counts_minors(sealed, &sealed->shares[i]))
            sealed->shares[i].minor = sealed->shares[i].card + 1;
    }
    return g_steal_pointer(&sealed);
}

struct allocation *seals_read(struct seals *seals, const struct pod_view *pod,
                              const struct classes *classes, char ret_key[KEYRING_ID_SIZE])
{
    const char *seal = string_pairs_get(&pod->annotations, SEAL_ANNOTATION);
    const char *facts = NULL, *key = "";

    if (!seal || strlen(seal) > SEAL_MAX + 128)
        return NULL;
    if (seals) {
        pthread_mutex_lock(&seals->lock);
        seals->unchecked |= keyring_size(seals->keyring) == 0 && keyring_facts(seal);
        facts = keyring_check(seals->keyring, seal, &key);
        g_strlcpy(ret_key, key, KEYRING_ID_SIZE);
        pthread_mutex_unlock(&seals->lock);
    } else {
        facts = keyring_facts(seal);
        *ret_key = '\0';
    }
    return facts ? read_facts(facts, pod, classes) : NULL;
}

void seal_call_cards(struct allocation *sealed, const struct allocation *fresh)
{
    bool numbers = false, names = false;
    uint32_t n;
    const struct share *told = allocation_known(fresh, &n);

    for (uint32_t i = 0; i < n; i++) {
        names |= !told[i].device && told[i].key;
        numbers |= !told[i].device && !told[i].key && told[i].card != CARD_UNKNOWN;
    }
    for (uint32_t i = 0; i < sealed->n_shares && numbers && !names; i++) {
        if (sealed->shares[i].card != CARD_UNKNOWN)
            sealed->shares[i].key = 0;
    }
}

/* --- distrust ------------------------------------------------------------------------------- */

static void unplace(struct share *shares, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (shares[i].device) {
            shares[i].replicas = 0;
            shares[i].sharing = SHARING_UNKNOWN;
            continue;
        }
        shares[i].card = CARD_UNKNOWN;
        shares[i].key = 0;
        shares[i].minor = 0;
        shares[i].place = (struct mig_place){0};
        /* Of two that stand for one card, one is enough. */
        shares[i].basis = shares[i].basis == SHARE_BY_NUMBER ? SHARE_NOT_GIVEN : SHARE_HELD;
    }
}

/* What the pod asks for as one dialect reads it, on every card. */
static struct allocation *hold_request(const struct pod_view *pod, const struct request *request)
{
    struct allocation *held = allocation_new(pod->uid, pod->ns, pod->name, request->n_asks);

    held->dialect = request->dialect;
    held->terms = terms_ref(request->terms);
    held->match_amount = request->match_amount;
    held->alternative = true;
    for (uint32_t i = 0; i < request->n_asks; i++)
        held->shares[i] = share_of_ask(&request->asks[i]);
    return held;
}

/* All that it may be, of readings that have more shares together than a pod can: each card to itself,
 * and every device, whatever the node serves. */
static struct allocation *hold_all(const struct pod_view *pod, const struct dialect *dialect)
{
    g_autofree char *warning = NULL;

    return dialect_hold_all(dialect, pod, true, g_strdup("more than can be told apart"), &warning);
}

static struct allocation *join(const struct pod_view *pod, struct allocation *take_held,
                               struct allocation *take_other)
{
    const struct dialect *dialect = take_other->dialect;

    if (!take_held)
        return take_other;
    struct allocation *both = allocation_join(take_held, take_other);
    return both ? both : hold_all(pod, dialect);
}

/* As all dialects read it that could have placed it; NULL: none could. */
static struct allocation *hold_requests(const struct pod_view *pod, const struct request *request)
{
    struct allocation *held = NULL;

    for (; request; request = request->alternative) {
        if (request->dialect->write_annotations)
            held = join(pod, held, hold_request(pod, request));
    }
    return held;
}

static bool is_asked(const struct request *request, const struct dialect *dialect)
{
    for (; request; request = request->alternative) {
        if (request->dialect == dialect)
            return true;
    }
    return false;
}

/* kubelet gives devices to whoever names their resource, also to a pod that we would not have placed. */
static struct allocation *hold_devices(const struct pod_view *bare, const struct request *request,
                                       const struct dialect_options *options,
                                       struct allocation *take_held)
{
    struct allocation *held = take_held;

    for (size_t i = 0; held && dialects[i]; i++) {
        g_autofree char *warning = NULL;
        g_autoptr(allocation) other = is_asked(request, dialects[i])
                                          ? NULL
                                          : dialects[i]->read_allocation(bare, options, &warning);
        if (!other || other->n_shares == 0 || !other->shares[0].device)
            continue;
        unplace(other->shares, other->n_shares);
        other->alternative = true;
        held = join(bare, held, g_steal_pointer(&other));
    }
    return held;
}

/* Without its annotations no dialect says of the pod that it holds anything, and one cannot even read what
 * it asks for: it may hold all cards. */
static struct allocation *hold_unclaimed(const struct pod_view *bare,
                                         const struct dialect_options *options,
                                         struct allocation *take_held)
{
    struct allocation *held = take_held;

    for (size_t i = 0; dialects[i]; i++) {
        g_autofree char *warning = NULL;
        g_autoptr(GError) failure = NULL;
        if (!dialects[i]->write_annotations)
            continue;
        request_free(dialects[i]->read_request(bare, options, &failure));
        g_autoptr(allocation) claimed =
            failure ? dialects[i]->read_allocation(bare, options, &warning) : NULL;
        if (!failure || claimed)
            continue;
        struct allocation *all =
            dialect_hold_all(dialects[i], bare, false, g_strdup(failure->message), &warning);
        all->alternative = true;
        held = join(bare, held, all);
    }
    return held;
}

struct allocation *seal_distrust(struct allocation *take_told, const struct pod_view *pod,
                                 const struct dialect_options *options)
{
    g_autoptr(allocation) told = take_told;
    g_autoptr(request) request = NULL;
    struct pod_view bare = *pod;

    bare.annotations.n = 0;
    request = dialect_read_request(&bare, options, NULL);
    struct allocation *asked = hold_devices(&bare, request, options, hold_requests(pod, request));
    if (!asked && !request) { /* what cannot be read holds all that it may be */
        asked = dialect_read_allocation(&bare, options, NULL);
        if (asked) {
            unplace(asked->shares, asked->n_shares);
            unplace(allocation_own(asked)->known, allocation_own(asked)->n_known);
        }
        asked = hold_unclaimed(&bare, options, asked);
    }
    if (!asked) /* another scheduler places it, and it is not ours to seal */
        return g_steal_pointer(&told);
    asked->facts = pod_facts_ref(told->facts);
    asked->work_class = work_class_ref(told->work_class);
    asked->host = told->host;
    asked->priority = told->priority;
    asked->created_s = told->created_s;
    asked->started_s = told->started_s;
    asked->terminating = told->terminating;
    asked->assigned = told->assigned;
    asked->distrust = DISTRUST_UNSEALED;
    asked->open = asked->alternative = false;
    for (uint32_t i = 0; i < allocation_own(asked)->n_readings; i++) {
        allocation_own(asked)->readings[i].distrust = DISTRUST_UNSEALED;
        allocation_own(asked)->readings[i].open = false;
    }
    return asked;
}
