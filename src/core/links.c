/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/links.h>
#include <string.h>

/* Sets of cards that are looked at: it runs under the caller's lock. 8 of 16 cards are 12,870. */
#define STEPS_MAX 16384

struct links *links_new(int32_t n)
{
    struct links *links =
        g_atomic_rc_box_alloc0(sizeof *links + (gsize)n * (gsize)n * sizeof links->between[0]);

    links->n = n;
    return links;
}

struct links *links_ref(struct links *links)
{
    return links ? g_atomic_rc_box_acquire(links) : NULL;
}

void links_unref(struct links *links)
{
    if (links)
        g_atomic_rc_box_release(links);
}

void links_set(struct links *links, int32_t one, int32_t other, uint16_t score)
{
    links->between[one * links->n + other] = score;
    links->between[other * links->n + one] = score;
}

int32_t links_between(const struct links *links, int32_t one, int32_t other)
{
    return links->between[one * links->n + other];
}

struct choice {
    const struct links *links;
    const int32_t *cards;
    int32_t n, count;
    int32_t places[LINKS_CARDS_MAX]; /* chosen so far */
    int32_t *best;
    int64_t best_sum;
    unsigned steps;
};

/* Chooses the rest of `count` cards, of which `chosen` have the sum, from `from` on. */
static void extend(struct choice *choice, int32_t chosen, int32_t from, int64_t sum)
{
    if (chosen == choice->count) {
        choice->steps++;
        if (sum > choice->best_sum) {
            choice->best_sum = sum;
            memcpy(choice->best, choice->places, (size_t)chosen * sizeof *choice->best);
        }
        return;
    }
    for (int32_t i = from;
         i <= choice->n - (choice->count - chosen) && choice->steps < STEPS_MAX; i++) {
        int64_t more = 0;
        for (int32_t j = 0; j < chosen; j++)
            more += links_between(choice->links, choice->cards[i],
                                  choice->cards[choice->places[j]]);
        choice->places[chosen] = i;
        extend(choice, chosen + 1, i + 1, sum + more);
    }
}

static int32_t choose_one(const struct links *links, const int32_t *cards, int32_t n)
{
    int64_t least = G_MAXINT64;
    int32_t chosen = 0;

    for (int32_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int32_t j = 0; j < n; j++)
            sum += i == j ? 0 : links_between(links, cards[i], cards[j]);
        if (sum < least) {
            least = sum;
            chosen = i;
        }
    }
    return chosen;
}

void links_choose(const struct links *links, const int32_t *cards, int32_t n, int32_t count,
                  int32_t *ret_chosen)
{
    struct choice choice = {.links = links,
                            .cards = cards,
                            .n = n,
                            .count = count,
                            .best = ret_chosen,
                            .best_sum = -1};

    if (count == 1)
        *ret_chosen = choose_one(links, cards, n);
    else
        extend(&choice, 0, 0, 0);
}
