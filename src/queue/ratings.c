/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/ratings.h"
#include "core/ledger.h"

#include <string.h>

/* Of the node that has the place. */
struct rating {
    uint64_t version; /* of the node; 0: nothing is remembered */
    double loss;
    int64_t ties[RANK_TIES];
    bool takes;
};

struct rating_book {
    struct request *request;
    const struct policy *policy;
    uint64_t demand; /* demand_version */
    uint64_t opened; /* when, for the last time */
    uint32_t n;      /* places */
    bool is_new;
    struct rating *ratings;
};

struct ratings {
    GPtrArray *books;
    uint64_t clock; /* counts calls */
};

static void book_free(gpointer data)
{
    struct rating_book *book = data;

    request_free(book->request);
    g_free(book->ratings);
    g_free(book);
}

struct ratings *ratings_new(void)
{
    struct ratings *ratings = g_new0(struct ratings, 1);

    ratings->books = g_ptr_array_new_with_free_func(book_free);
    return ratings;
}

void ratings_free(struct ratings *ratings)
{
    g_ptr_array_unref(ratings->books);
    g_free(ratings);
}

static struct rating_book *find_book(const struct ratings *ratings, const struct request *request,
                                     const struct policy *policy, uint64_t demand)
{
    for (guint i = 0; i < ratings->books->len; i++) {
        struct rating_book *book = ratings->books->pdata[i];
        if (book->policy == policy && book->demand == demand &&
            request_equal(book->request, request))
            return book;
    }
    return NULL;
}

/* Of those of another demand, which will not be asked for again, or else of all, the one that was not
 * opened for the longest time. */
static void drop_book(struct ratings *ratings, uint64_t demand)
{
    guint oldest = 0;

    for (guint i = 1; i < ratings->books->len; i++) {
        const struct rating_book *book = ratings->books->pdata[i];
        const struct rating_book *other = ratings->books->pdata[oldest];
        const bool stale = book->demand != demand, other_stale = other->demand != demand;
        if (stale != other_stale ? stale : book->opened < other->opened)
            oldest = i;
    }
    g_ptr_array_remove_index_fast(ratings->books, oldest);
}

struct rating_book *ratings_open(struct ratings *ratings, const struct ledger *ledger,
                                 const struct request *request, const struct policy *policy,
                                 const struct demand *demand)
{
    const uint64_t version = demand_version(demand);
    const uint32_t n = ledger_places(ledger);
    const guint n_books = CLAMP(RATINGS_MAX / (n + 1), 1, RATINGS_BOOKS_MAX);
    struct rating_book *book = find_book(ratings, request, policy, version);

    if (!book) {
        while (ratings->books->len >= n_books)
            drop_book(ratings, version);
        book = g_new0(struct rating_book, 1);
        book->request = request_dup(request);
        book->policy = policy;
        book->demand = version;
        g_ptr_array_add(ratings->books, book);
    }
    book->is_new = book->n == 0;
    if (book->n < n) {
        book->ratings = g_renew(struct rating, book->ratings, n);
        memset(book->ratings + book->n, 0, (n - book->n) * sizeof *book->ratings);
        book->n = n;
    }
    book->opened = ++ratings->clock;
    return book;
}

bool rating_book_is_new(const struct rating_book *book)
{
    return book->is_new;
}

bool rating_book_find(const struct rating_book *book, const struct node_cursor *cursor,
                      bool *ret_takes, struct rank *ret_rank)
{
    const struct rating *rating = &book->ratings[cursor->place];

    if (rating->version != cursor->pulse->version)
        return false;
    *ret_takes = rating->takes;
    *ret_rank = (struct rank){.loss = rating->loss};
    memcpy(ret_rank->ties, rating->ties, sizeof ret_rank->ties);
    return true;
}

void rating_book_note(struct rating_book *book, const struct node_cursor *cursor,
                      const struct rank *rank)
{
    struct rating *rating = &book->ratings[cursor->place];

    *rating = (struct rating){.version = cursor->pulse->version, .takes = rank != NULL};
    if (!rank)
        return;
    rating->loss = rank->loss;
    memcpy(rating->ties, rank->ties, sizeof rating->ties);
}
