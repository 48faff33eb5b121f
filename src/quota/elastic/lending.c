/* SPDX-License-Identifier: Apache-2.0 */
/* What is sure, kept and lent in a tree, for one key at a time. */
#include "quota/elastic/elastic_state.h"

#include <string.h>

static struct outlook *outlook_of(const struct elastic_quotas *quotas,
                                  const struct elastic_account *account, guint key)
{
    return &quotas->outlooks[key][account->place];
}

/* Of what pods wait for in the account what they cannot have: those that are lent nothing get no more than its min. */
static amount_sum wanted_in_vain(const struct elastic_quotas *quotas,
                                 const struct elastic_account *account, guint key)
{
    const amount_sum left = MAX(account->min[key] - account->used_sum[key], 0);

    return quotas->min[key] ? MAX(account->tied_sum[key] - left, 0) : 0;
}

/* From below: what an account has, wants and keeps. */
static void look_up(const struct elastic_quotas *quotas, const struct elastic_account *account,
                    guint key)
{
    struct outlook *own = outlook_of(quotas, account, key);
    const amount_sum used = account->used_sum[key], waiting = account->waiting_sum[key];
    const amount_sum here = used - own->used_below + waiting - own->waiting_below -
                            wanted_in_vain(quotas, account, key);
    const int64_t min = account->min[key];

    own->demand = here + own->demand_below;
    own->kept = MAX(used, account->keeps ? min : MIN(min, own->demand));
    if (!account->parent)
        return;
    struct outlook *parent = outlook_of(quotas, account->parent, key);
    parent->used_below += used;
    parent->waiting_below += waiting;
    parent->demand_below += MIN(own->demand, MAX(account->max[key], used));
    parent->over_below += MAX(used - min, 0);
    parent->kept_below += own->kept;
}

/* What those below the account may have together. */
static amount_sum pool(const struct elastic_quotas *quotas, const struct elastic_account *account,
                       guint key)
{
    const amount_sum lendable = outlook_of(quotas, account, key)->lendable;

    return account->whole ? account->min[key]
                          : MAX(account->min[key], MIN(lendable, account->max[key]));
}

/* From above. Who is in no tree borrows nothing. */
static void look_down(const struct elastic_quotas *quotas, const struct elastic_account *account,
                      guint key)
{
    struct outlook *own = outlook_of(quotas, account, key);
    const struct elastic_account *parent = account->parent;

    if (!parent) {
        own->lendable = account->min[key];
        return;
    }
    const struct outlook *above = outlook_of(quotas, parent, key);
    const amount_sum others =
        parent->used_sum[key] - above->used_below + above->kept_below - own->kept;
    own->lendable = pool(quotas, parent, key) - others;
}

void elastic_note_change(struct elastic_quotas *quotas)
{
    memset(quotas->looked, 0, sizeof quotas->looked);
}

void lending_look(struct elastic_quotas *quotas, guint key)
{
    const GPtrArray *accounts = quotas->accounts;

    if (quotas->looked[key] && quotas->outlooks[key])
        return;
    if (!quotas->outlooks[key])
        quotas->outlooks[key] = g_new(struct outlook, accounts->len + 1);
    quotas->looked[key] = true;
    memset(quotas->outlooks[key], 0, accounts->len * sizeof *quotas->outlooks[key]);
    for (guint i = accounts->len; i-- > 0;)
        look_up(quotas, accounts->pdata[i], key);
    for (guint i = 0; i < accounts->len; i++)
        look_down(quotas, accounts->pdata[i], key);
}

/* --- several that want to borrow ----------------------------------------------------------------- */

/* One of those that divide what their parent lends. */
struct wish {
    double weight, wants, gets; /* above what it is sure of */
};

/* What is free goes to all that want more, by weight, until they have what they want. */
static void divide(struct wish *wishes, guint n, double free)
{
    for (guint round = 0; round < n && free > 0; round++) {
        double weights = 0, given = 0;
        bool full = false;
        for (guint i = 0; i < n; i++)
            weights += wishes[i].gets < wishes[i].wants ? wishes[i].weight : 0;
        if (weights <= 0)
            return;
        for (guint i = 0; i < n; i++) {
            if (wishes[i].gets >= wishes[i].wants)
                continue;
            const double most = wishes[i].wants - wishes[i].gets;
            const double part = MIN(free * wishes[i].weight / weights, most);
            full |= part == most;
            wishes[i].gets += part;
            given += part;
        }
        free -= given;
        if (!full)
            return;
    }
}

/* Above its min, for its weight. */
static bool has_less(const struct elastic_account *account, const struct elastic_account *than,
                     guint key)
{
    const double own = (double)MAX(account->used[key] - account->min[key], 0);
    const double other = (double)MAX(than->used[key] - than->min[key], 0);

    if (account->weight[key] == 0 || than->weight[key] == 0)
        return account->weight[key] > 0 && than->weight[key] == 0;
    return own * (double)than->weight[key] < other * (double)account->weight[key];
}

int64_t lending_share(const struct elastic_quotas *quotas, const struct elastic_account *account,
                      guint key, bool *ret_least)
{
    const GPtrArray *accounts = quotas->accounts;
    const struct elastic_account *parent = account->parent;
    guint n = 1;

    *ret_least = true;
    if (!account->weighted || !parent)
        return INT64_MAX;
    g_autofree struct wish *wishes = g_new0(struct wish, accounts->len + 1);
    const struct outlook *above = outlook_of(quotas, parent, key);
    amount_sum free = pool(quotas, parent, key) - (parent->used_sum[key] - above->used_below);
    wishes[0].weight = (double)account->weight[key];
    wishes[0].wants =
        account->max[key] < INT64_MAX ? (double)(account->max[key] - account->min[key]) : 1e18;
    free -= account->min[key];
    for (guint i = 0; i < accounts->len; i++) {
        const struct elastic_account *other = accounts->pdata[i];
        const struct outlook *its = outlook_of(quotas, other, key);
        if (other == account || other->parent != parent)
            continue;
        if (!other->weighted) {
            free -= its->kept;
            continue;
        }
        const amount_sum sure = other->keeps ? other->min[key] : MIN(other->min[key], its->demand);
        const amount_sum wants = MIN(its->demand, other->max[key]);
        free -= sure;
        wishes[n].weight = (double)other->weight[key];
        wishes[n++].wants = (double)MAX(wants - sure, 0);
        if (wants > MAX(other->used[key], other->min[key]) && has_less(other, account, key))
            *ret_least = false;
    }
    divide(wishes, n, (double)MAX(free, 0));
    return account->min[key] + (int64_t)(wishes[0].gets + 0.5);
}
