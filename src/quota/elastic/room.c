/* SPDX-License-Identifier: Apache-2.0 */
/* What an account may still take: the limits of its own and of all above it. */
#include "quota/elastic/elastic_state.h"

#include <string.h>

/* An account, and what follows for it by key. */
struct level {
    const struct elastic_account *account;
    int64_t sure[ELASTIC_KEYS_MAX]; /* what counts towards its min */
    int64_t lendable[ELASTIC_KEYS_MAX], share[ELASTIC_KEYS_MAX];
    bool least[ELASTIC_KEYS_MAX];
    int64_t taken[ELASTIC_KEYS_MAX]; /* since it was measured */
};

struct elastic_room {
    struct elastic_quotas *quotas;
    const struct request *request;
    bool closed;      /* by a limit that is not kept */
    enum pod_tie tie; /* elastic_room_tie */
    guint n;          /* 0: the pod's namespace has no quota that is kept */
    struct level levels[ELASTIC_DEPTH_MAX + 1]; /* from the pod's own upwards */
};

static void look_at_level(struct elastic_quotas *quotas, struct level *level, guint key)
{
    const struct outlook *outlook = &quotas->outlooks[key][level->account->place];

    level->sure[key] = amount_sum_told(level->account->used_sum[key] - outlook->over_below);
    level->lendable[key] = quotas->min[key] ? amount_sum_told(outlook->lendable) : INT64_MAX;
    level->share[key] = quotas->min[key]
                            ? lending_share(quotas, level->account, key, &level->least[key])
                            : INT64_MAX;
}

bool elastic_quotas_refuse(const struct elastic_quotas *quotas, const struct pod_view *pod,
                           const struct request *request)
{
    const struct elastic_account *account = elastic_quotas_account(quotas, pod);
    bool closed = elastic_quotas_closes(quotas, pod->ns ? pod->ns : "");

    for (; account && !closed; account = account->parent)
        closed = unkept_concerns(account, request);
    return closed;
}

struct elastic_room *elastic_quotas_room(struct elastic_quotas *quotas, const struct pod_view *pod,
                                         const struct request *request)
{
    const struct elastic_account *account = elastic_quotas_account(quotas, pod);
    const bool closed = elastic_quotas_refuse(quotas, pod, request);

    if (!account && !closed)
        return NULL;
    struct elastic_room *room = g_new0(struct elastic_room, 1);
    room->quotas = quotas;
    room->request = request;
    room->closed = closed;
    room->tie = elastic_tie_of(quotas, pod);
    for (; account && !account->whole; account = account->parent)
        room->levels[room->n++].account = account;
    for (guint key = 0; key < quotas->keys->len; key++) {
        lending_look(quotas, key);
        for (guint i = 0; i < room->n; i++)
            look_at_level(quotas, &room->levels[i], key);
    }
    return room;
}

bool elastic_room_is_closed(const struct elastic_room *room)
{
    return room && room->closed;
}

enum pod_tie elastic_room_tie(const struct elastic_room *room)
{
    return room ? room->tie : 0;
}

void elastic_room_free(struct elastic_room *room)
{
    g_free(room);
}

void elastic_room_take(struct elastic_room *room, const struct allocation *allocation)
{
    const struct pod_view pod = {.uid = allocation->uid, .ns = allocation->ns};
    const struct elastic_account *at = room ? elastic_quotas_account(room->quotas, &pod) : NULL;

    for (; at && !at->whole; at = at->parent) {
        for (guint i = 0; i < room->n; i++) {
            struct level *level = &room->levels[i];
            for (guint key = 0; level->account == at && key < room->quotas->keys->len; key++)
                level->taken[key] = amount_add(
                    level->taken[key], elastic_amount(room->quotas->keys->pdata[key], allocation));
        }
    }
}

/* What a level has of what it is sure of, with so much more: of the one below it, what that has within its own
 * min. So what others below have borrowed makes nobody's min less sure further up. */
static int64_t surely(const struct elastic_room *room, guint at, guint key, int64_t wanted)
{
    const struct level *level = &room->levels[at];

    if (at == 0)
        return level->sure[key] + level->taken[key] + wanted;
    const struct level *below = &room->levels[at - 1];
    const int64_t had = below->account->used[key], min = below->account->min[key];
    return level->sure[key] + level->taken[key] - below->taken[key] +
           MIN(had + below->taken[key] + wanted, min) - MIN(had, min);
}

/* What is sure of a pod below is sure above as far as the mins below are sure there; what is borrowed below is
 * an account's own business up to its min. */
static enum reason refuse(const struct elastic_room *room, guint key, int64_t wanted,
                          const struct level **ret_level)
{
    bool sure = true;

    for (guint i = 0; i < room->n; i++) {
        *ret_level = &room->levels[i];
        if ((*ret_level)->account->used[key] + (*ret_level)->taken[key] + wanted >
            (*ret_level)->account->max[key])
            return REASON_QUOTA_MAX;
    }
    for (guint i = 0; i < room->n; i++) {
        const struct level *level = *ret_level = &room->levels[i];
        const int64_t used = level->account->used[key] + level->taken[key] + wanted;
        sure = (sure ? surely(room, i, key, wanted) : used) <= level->account->min[key];
        if (!sure && room->tie && room->quotas->min[key])
            return REASON_QUOTA_UNRECLAIMABLE;
        if (!sure &&
            (used > level->lendable[key] || (used > level->share[key] && !level->least[key])))
            return REASON_QUOTA_LENT;
    }
    return REASON_NONE;
}

const struct elastic_account *elastic_room_account(const struct elastic_room *room)
{
    return room->n > 0 ? room->levels[0].account : NULL;
}

struct elastic_quotas *elastic_room_quotas(const struct elastic_room *room)
{
    return room->quotas;
}

static guint unsure(const struct elastic_room *room, guint key, int64_t wanted)
{
    bool sure = true;
    guint n = 0;

    for (guint i = 0; i < room->n; i++) {
        const struct level *level = &room->levels[i];
        const int64_t used = level->account->used[key] + level->taken[key] + wanted;
        sure = (sure ? surely(room, i, key, wanted) : used) <= level->account->min[key];
        n = sure ? n : i + 1;
    }
    return n;
}

guint elastic_room_unsure(const struct elastic_room *room, const struct node *node)
{
    int64_t wanted[ELASTIC_KEYS_MAX];
    guint n = 0;

    elastic_measure_request(room->quotas, node, room->request, wanted);
    for (guint key = 0; key < room->quotas->keys->len; key++) {
        if (wanted[key] > 0 && room->quotas->min[key])
            n = MAX(n, unsure(room, key, wanted[key]));
    }
    return n;
}

enum reason elastic_room_refuse(const struct elastic_room *room, const struct node *node,
                                const struct placement *placement, struct elastic_count *ret_count,
                                int64_t *ret_wanted)
{
    int64_t wanted[ELASTIC_KEYS_MAX];
    const struct level *level;

    if (!room)
        return REASON_NONE;
    if (room->closed)
        return REASON_QUOTA_UNKEPT;
    if (placement)
        elastic_measure_placement(room->quotas, node, placement, wanted);
    else
        elastic_measure_request(room->quotas, node, room->request, wanted);
    for (guint key = 0; key < room->quotas->keys->len; key++) {
        const enum reason reason =
            wanted[key] > 0 ? refuse(room, key, wanted[key], &level) : REASON_NONE;
        if (reason == REASON_NONE)
            continue;
        if (ret_count) {
            *ret_count = elastic_count_of(room->quotas, level->account, key);
            ret_count->used += level->taken[key];
            ret_count->lendable = level->lendable[key];
            ret_count->share = level->least[key] ? INT64_MAX : level->share[key];
        }
        if (ret_wanted)
            *ret_wanted = wanted[key];
        return reason;
    }
    return REASON_NONE;
}

enum reason elastic_room_judge(const struct elastic_room *room, const int64_t *wanted)
{
    const struct level *level;

    if (!room)
        return REASON_NONE;
    if (room->closed)
        return REASON_QUOTA_UNKEPT;
    for (guint key = 0; key < room->quotas->keys->len; key++) {
        const enum reason reason =
            wanted[key] > 0 ? refuse(room, key, wanted[key], &level) : REASON_NONE;
        if (reason != REASON_NONE)
            return reason;
    }
    return REASON_NONE;
}

/* What a pod of the account gives back counts in all above it as well, so as much less is wanted there. */
static int64_t lack_of(const struct elastic_room *room, guint key, int64_t wanted)
{
    const struct level *level;
    int64_t too_little = -1, enough = wanted + room->levels[0].account->used[key];

    if (refuse(room, key, wanted - enough, &level) != REASON_NONE)
        return INT64_MAX;
    while (too_little + 1 < enough) {
        const int64_t middle = too_little + (enough - too_little) / 2;
        if (refuse(room, key, wanted - middle, &level) == REASON_NONE)
            enough = middle;
        else
            too_little = middle;
    }
    return enough;
}

void elastic_room_lacks(const struct elastic_room *room, const struct node *node,
                        int64_t ret_lacks[ELASTIC_KEYS_MAX])
{
    int64_t wanted[ELASTIC_KEYS_MAX];

    memset(ret_lacks, 0, ELASTIC_KEYS_MAX * sizeof *ret_lacks);
    if (!room || room->closed)
        return;
    elastic_measure_request(room->quotas, node, room->request, wanted);
    for (guint key = 0; key < room->quotas->keys->len; key++)
        ret_lacks[key] = wanted[key] > 0 ? lack_of(room, key, wanted[key]) : 0;
}

void elastic_room_gives(const struct elastic_room *room, const struct allocation *allocation,
                        int64_t ret_amounts[ELASTIC_KEYS_MAX])
{
    const struct pod_view pod = {.uid = allocation->uid, .ns = allocation->ns};

    memset(ret_amounts, 0, ELASTIC_KEYS_MAX * sizeof *ret_amounts);
    if (room && room->n > 0 &&
        elastic_quotas_account(room->quotas, &pod) == room->levels[0].account)
        elastic_quotas_measure(room->quotas, allocation, ret_amounts);
}

/* What those below the level's account may have together. */
static int64_t pool_of(const struct level *level, int64_t max, int64_t lendable, guint key)
{
    return MAX(level->account->min[key], MIN(lendable, max));
}

/* A larger max is lent further down, where it was that which limited what is lent. */
static void lend_down(struct elastic_room *room, guint at, int64_t max_before, guint key)
{
    const struct level *level = &room->levels[at];
    int64_t more = pool_of(level, level->account->max[key], level->lendable[key], key) -
                   pool_of(level, max_before, level->lendable[key], key);

    while (at-- > 0 && more > 0 && room->levels[at].lendable[key] < INT64_MAX) {
        struct level *below = &room->levels[at];
        const int64_t max = below->account->max[key];
        const int64_t before = pool_of(below, max, below->lendable[key], key);
        below->lendable[key] += more;
        below->share[key] = MIN(below->share[key], INT64_MAX - more) + more;
        more = pool_of(below, max, below->lendable[key], key) - before;
    }
}

/* As if the limit that is in the way were as large as need be. Of the copies that are given. */
static void raise_limit(struct elastic_room *room, struct elastic_account *account, guint at,
                        guint key, const struct elastic_raise *raise)
{
    const int64_t over = MAX(account->used[key] - account->min[key], 0);

    room->levels[at].account = account;
    if (raise->max) {
        account->max[key] = raise->to;
        lend_down(room, at, raise->count.max, key);
        return;
    }
    account->min[key] = raise->to;
    if (at + 1 < room->n)
        room->levels[at + 1].sure[key] += over;
}

bool elastic_room_raise(const struct elastic_room *room, const struct node *node,
                        const struct placement *placement, struct elastic_raise *ret_raise)
{
    int64_t wanted[ELASTIC_KEYS_MAX];
    const struct level *level;
    bool found = false;

    if (room->closed)
        return false;
    elastic_measure_placement(room->quotas, node, placement, wanted);
    for (guint key = 0; key < room->quotas->keys->len; key++) {
        const enum reason reason =
            wanted[key] > 0 ? refuse(room, key, wanted[key], &level) : REASON_NONE;
        if (reason == REASON_NONE)
            continue;
        g_autofree struct elastic_room *larger = g_memdup2(room, sizeof *room);
        struct elastic_account account = *level->account;
        const struct level *other;
        if (found)
            return false;
        found = true;
        *ret_raise = (struct elastic_raise){
            .count = elastic_count_of(room->quotas, level->account, key),
            .max = reason == REASON_QUOTA_MAX,
            .to = account.used[key] + wanted[key],
        };
        raise_limit(larger, &account, (guint)(level - room->levels), key, ret_raise);
        if (refuse(larger, key, wanted[key], &other) != REASON_NONE)
            return false;
    }
    return found;
}

/* --- who has borrowed --------------------------------------------------------------------------- */

static guint place_of_key(const struct elastic_quotas *quotas, const char *key)
{
    guint at = 0;

    while (at < quotas->keys->len && !g_str_equal(quotas->keys->pdata[at], key))
        at++;
    return at;
}

#define BORROWERS_TOLD 3

char *elastic_room_borrowers(const struct elastic_room *room, const char *key)
{
    const struct elastic_quotas *quotas = room->quotas;
    const guint at = place_of_key(quotas, key);
    const struct elastic_account *told[BORROWERS_TOLD] = {NULL};
    GString *text = NULL;

    for (guint i = 0; at < quotas->keys->len && i < quotas->accounts->len; i++) {
        const struct elastic_account *one = quotas->accounts->pdata[i];
        if (one->whole || one->used[at] <= one->min[at] ||
            elastic_account_top(one) != elastic_account_top(room->levels[0].account))
            continue;
        for (guint place = 0; place < BORROWERS_TOLD; place++) {
            const struct elastic_account *other = told[place];
            if (other && one->used[at] - one->min[at] <= other->used[at] - other->min[at])
                continue;
            told[place] = one;
            one = other;
            if (!one)
                break;
        }
    }
    for (guint i = 0; i < BORROWERS_TOLD && told[i]; i++) {
        const double borrowed = elastic_units(key, told[i]->used[at] - told[i]->min[at]);
        if (!text)
            text = g_string_new(NULL);
        g_string_append_printf(text, "%s%s%s ", i ? ", " : "", told[i]->id,
                               i ? "" : " has borrowed");
        if (g_str_equal(key, KEY_MEMORY))
            g_string_append_printf(text, "%.4g GiB", borrowed / (1 << 30));
        else
            g_string_append_printf(text, "%.4g", borrowed);
    }
    return text ? g_string_free(text, FALSE) : NULL;
}
