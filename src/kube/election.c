/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/election.h"

#include <string.h>

#define LOOKS_PER_RETRY 4

void election_init(struct election *election, const struct election_options *options)
{
    *election = (struct election){.options = *options, .holder = g_strdup("")};
}

void election_release(struct election *election)
{
    g_free(election->version);
    g_free(election->holder);
}

static int64_t pause_ms(const struct election *election)
{
    return MAX(election->options.retry_ms / LOOKS_PER_RETRY, 1);
}

/* Whether nobody but us has a claim. A Lease that somebody has deleted is no less held than it was:
 * its holder may not have noticed. */
static bool is_free(const struct election *election, int64_t now_ms)
{
    return (!*election->holder && election->version) ||
           strcmp(election->holder, election->options.identity) == 0 ||
           now_ms >= election->seen_ms + election->duration_ms;
}

static enum election_step wait_until(int64_t until_ms, int64_t *ret_until_ms)
{
    *ret_until_ms = until_ms;
    return ELECTION_WAIT;
}

static enum election_step next_as_holder(const struct election *election, int64_t now_ms,
                                         bool eager, int64_t *ret_until_ms)
{
    const int64_t due_ms = election->renewed_ms + election->options.retry_ms;

    if (eager || now_ms >= due_ms)
        return ELECTION_RENEW;
    return wait_until(MIN(due_ms, election_until_ms(election)), ret_until_ms);
}

enum election_step election_next(struct election *election, int64_t now_ms, bool willing,
                                 bool eager, int64_t *ret_until_ms)
{
    if (election->holding && now_ms >= election_until_ms(election))
        election_resign(election);
    if (now_ms < election->pause_until_ms)
        return wait_until(election->holding
                              ? MIN(election->pause_until_ms, election_until_ms(election))
                              : election->pause_until_ms,
                          ret_until_ms);
    if (!election->seen || election->distrusted)
        return ELECTION_READ;
    if (election->holding)
        return next_as_holder(election, now_ms, eager, ret_until_ms);
    if (willing && is_free(election, now_ms))
        return election->exists ? ELECTION_TAKE : ELECTION_CREATE;

    int64_t until_ms = election->looked_ms + pause_ms(election);
    if (now_ms >= until_ms)
        return ELECTION_READ;
    if (willing)
        until_ms = MIN(until_ms, election->seen_ms + election->duration_ms);
    return wait_until(until_ms, ret_until_ms);
}

static void replace(char **text, const char *value)
{
    char *copy = g_strdup(value ? value : "");

    g_free(*text);
    *text = copy;
}

static void note(struct election *election, const struct lease_view *lease, int64_t now_ms)
{
    if (!election->exists || g_strcmp0(election->version, lease->version) != 0)
        election->seen_ms = now_ms;
    election->exists = true;
    /* Without a duration nobody can be waited for; our own is as good as any. */
    election->asked_ms = lease->duration_s > 0 && lease->duration_s <= INT32_MAX
                             ? lease->duration_s * 1000
                             : election->options.duration_ms;
    election->duration_ms =
        MIN(election->asked_ms, MAX(election->options.duration_ms, ELECTION_PATIENCE_MS));
    replace(&election->version, lease->version);
    replace(&election->holder, lease->holder);
}

void election_read(struct election *election, const struct lease_view *lease, int64_t now_ms)
{
    election->distrusted = false;
    election->looked_ms = now_ms;
    if (lease) {
        note(election, lease, now_ms);
    } else {
        election->exists = false;
        if (!election->seen) {
            election->seen_ms = now_ms;
            election->duration_ms = election->options.first_wait_ms;
        }
    }
    election->seen = true;
    if (!lease || strcmp(election->holder, election->options.identity) != 0)
        election_resign(election);
}

void election_wrote(struct election *election, const struct lease_view *lease, int64_t began_ms,
                    int64_t now_ms)
{
    note(election, lease, now_ms);
    election->seen = true;
    election->looked_ms = now_ms;
    election->holding = strcmp(election->holder, election->options.identity) == 0;
    election->renewed_ms = began_ms;
}

void election_failed(struct election *election, enum outcome outcome, int64_t now_ms)
{
    /* Somebody else was faster, or a write of ours came through unseen: a look tells which. */
    const bool outdated = outcome == OUTCOME_CONFLICT ||
                          (outcome == OUTCOME_NOT_FOUND && election->exists);

    election->distrusted = true;
    election->looked_ms = now_ms;
    election->pause_until_ms = outdated ? now_ms : now_ms + pause_ms(election);
}

void election_resign(struct election *election)
{
    election->holding = false;
}

int64_t election_until_ms(const struct election *election)
{
    return election->holding ? election->renewed_ms + election->options.renew_deadline_ms : 0;
}
