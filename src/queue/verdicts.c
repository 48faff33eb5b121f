/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/verdicts.h"
#include "core/ledger.h"

#include <string.h>

#define REASON_BITS 8
G_STATIC_ASSERT(REASON_N <= 1 << REASON_BITS);

struct verdict_book {
    struct request *request;
    const struct policy *policy;
    uint64_t demand; /* demand_version */
    uint64_t opened; /* when, for the last time */
    uint32_t n;      /* places */
    bool is_new;
    uint64_t *verdicts; /* of the node that has the place: its version, and the reason; 0: none */
};

struct verdicts {
    GPtrArray *books;
    uint64_t clock; /* counts calls */
};

static void book_free(gpointer data)
{
    struct verdict_book *book = data;

    request_free(book->request);
    g_free(book->verdicts);
    g_free(book);
}

struct verdicts *verdicts_new(void)
{
    struct verdicts *verdicts = g_new0(struct verdicts, 1);

    verdicts->books = g_ptr_array_new_with_free_func(book_free);
    return verdicts;
}

void verdicts_free(struct verdicts *verdicts)
{
    g_ptr_array_unref(verdicts->books);
    g_free(verdicts);
}

static bool is_about(const struct verdict_book *book, const struct admission_query *query)
{
    return book->policy == query->policy && book->demand == demand_version(query->demand) &&
           request_equal(book->request, query->request);
}

static struct verdict_book *book_new(const struct admission_query *query)
{
    struct verdict_book *book = g_new0(struct verdict_book, 1);

    book->request = request_dup(query->request);
    book->policy = query->policy;
    book->demand = demand_version(query->demand);
    return book;
}

static void drop_oldest(struct verdicts *verdicts)
{
    guint oldest = 0;

    for (guint i = 1; i < verdicts->books->len; i++) {
        const struct verdict_book *book = verdicts->books->pdata[i];
        const struct verdict_book *other = verdicts->books->pdata[oldest];
        oldest = book->opened < other->opened ? i : oldest;
    }
    g_ptr_array_remove_index_fast(verdicts->books, oldest);
}

static struct verdict_book *find_book(struct verdicts *verdicts,
                                      const struct admission_query *query, uint32_t n)
{
    const guint n_books = CLAMP(VERDICTS_MAX / (n + 1), 1, VERDICTS_BOOKS_MAX);

    for (guint i = 0; i < verdicts->books->len; i++) {
        struct verdict_book *book = verdicts->books->pdata[i];
        if (is_about(book, query))
            return book;
    }
    while (verdicts->books->len >= n_books)
        drop_oldest(verdicts);
    struct verdict_book *book = book_new(query);
    g_ptr_array_add(verdicts->books, book);
    return book;
}

struct verdict_book *verdicts_open(struct verdicts *verdicts, const struct ledger *ledger,
                                   const struct admission_query *query)
{
    const uint32_t n = ledger_places(ledger);
    struct verdict_book *book = find_book(verdicts, query, n);

    book->is_new = book->n == 0;
    if (book->n < n) {
        book->verdicts = g_renew(uint64_t, book->verdicts, n);
        memset(book->verdicts + book->n, 0, (n - book->n) * sizeof *book->verdicts);
        book->n = n;
    }
    book->opened = ++verdicts->clock;
    return book;
}

bool verdict_book_is_new(const struct verdict_book *book)
{
    return book->is_new;
}

bool verdict_book_find(const struct verdict_book *book, const struct node_cursor *cursor,
                       enum reason *ret_reason)
{
    const uint64_t verdict = book->verdicts[cursor->place];

    if (verdict >> REASON_BITS != cursor->pulse->version)
        return false;
    *ret_reason = verdict & ((1 << REASON_BITS) - 1);
    return true;
}

void verdict_book_note(struct verdict_book *book, const struct node_cursor *cursor,
                       enum reason reason)
{
    book->verdicts[cursor->place] = cursor->pulse->version << REASON_BITS | reason;
}
