/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/books/node_books.h"
#include "core/ledger.h"

#include <string.h>

struct node_books {
    GPtrArray *books; /* struct node_book */
    size_t entry_size;
    struct node_books_limits limits;
    uint64_t clock; /* counts calls */
};

static void book_free(gpointer data)
{
    struct node_book *book = data;

    request_free(book->request);
    g_free(book->entries);
    g_free(book);
}

struct node_books *node_books_new(size_t entry_size, struct node_books_limits limits)
{
    struct node_books *books = g_new0(struct node_books, 1);

    books->books = g_ptr_array_new_with_free_func(book_free);
    books->entry_size = entry_size;
    books->limits = limits;
    return books;
}

void node_books_free(struct node_books *books)
{
    g_ptr_array_unref(books->books);
    g_free(books);
}

void node_books_forget(struct node_books *books)
{
    g_ptr_array_set_size(books->books, 0);
}

static struct node_book *find(const struct node_books *books, const struct request *request,
                              const struct policy *policy, uint64_t demand)
{
    for (guint i = 0; i < books->books->len; i++) {
        struct node_book *book = books->books->pdata[i];
        if (book->policy == policy && book->demand == demand &&
            request_equal(book->request, request))
            return book;
    }
    return NULL;
}

/* Of those of another demand, which will not be asked for again, or else of all, the one that was not
 * opened for the longest time. */
static void drop_one(struct node_books *books, uint64_t demand)
{
    guint oldest = 0;

    for (guint i = 1; i < books->books->len; i++) {
        const struct node_book *book = books->books->pdata[i];
        const struct node_book *other = books->books->pdata[oldest];
        const bool stale = book->demand != demand, other_stale = other->demand != demand;
        if (stale != other_stale ? stale : book->opened < other->opened)
            oldest = i;
    }
    g_ptr_array_remove_index_fast(books->books, oldest);
}

static struct node_book *add(struct node_books *books, const struct request *request,
                             const struct policy *policy, uint64_t demand)
{
    struct node_book *book = g_new0(struct node_book, 1);

    book->request = request_dup(request);
    book->policy = policy;
    book->demand = demand;
    g_ptr_array_add(books->books, book);
    return book;
}

static void grow(struct node_book *book, size_t entry_size, uint32_t n)
{
    book->entries = g_realloc_n(book->entries, n, entry_size);
    memset((char *)book->entries + book->n * entry_size, 0, (n - book->n) * entry_size);
    book->n = n;
}

struct node_book *node_books_open(struct node_books *books, const struct ledger *ledger,
                                  const struct request *request, const struct policy *policy,
                                  const struct demand *demand)
{
    const uint64_t version = demand_version(demand);
    const uint32_t n = ledger_places(ledger);
    const guint most = CLAMP(books->limits.entries / (n + 1), 1, books->limits.books);
    struct node_book *book = find(books, request, policy, version);

    while (!book && books->books->len >= most)
        drop_one(books, version);
    if (!book)
        book = add(books, request, policy, version);
    book->is_new = book->n == 0;
    if (book->n < n)
        grow(book, books->entry_size, n);
    book->opened = ++books->clock;
    return book;
}
