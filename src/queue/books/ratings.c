/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/books/ratings.h"
#include "core/ledger.h"

#include <string.h>

struct rating {
    uint64_t version; /* of the node; 0: nothing is remembered */
    double loss;
    int64_t ties[RANK_TIES];
    bool takes;
};

struct node_books *ratings_new(void)
{
    return node_books_new(sizeof(struct rating), (struct node_books_limits){64, 65536});
}

bool rating_find(const struct node_book *book, const struct node_cursor *cursor, bool *ret_takes,
                 struct rank *ret_rank)
{
    const struct rating *rating = (const struct rating *)book->entries + cursor->place;

    if (rating->version != cursor->pulse->version)
        return false;
    *ret_takes = rating->takes;
    *ret_rank = (struct rank){.loss = rating->loss};
    memcpy(ret_rank->ties, rating->ties, sizeof ret_rank->ties);
    return true;
}

void rating_note(struct node_book *book, const struct node_cursor *cursor, const struct rank *rank)
{
    struct rating *rating = (struct rating *)book->entries + cursor->place;

    *rating = (struct rating){.version = cursor->pulse->version, .takes = rank != NULL};
    if (!rank)
        return;
    rating->loss = rank->loss;
    memcpy(rating->ties, rank->ties, sizeof rating->ties);
}
