/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/books/verdicts.h"
#include "core/ledger.h"

#define REASON_BITS 8
G_STATIC_ASSERT(REASON_N <= 1 << REASON_BITS);

/* The node's version, and the reason; 0: none. */
typedef uint64_t verdict;

struct node_books *verdicts_new(void)
{
    return node_books_new(sizeof(verdict), (struct node_books_limits){32, 1U << 18});
}

bool verdict_find(const struct node_book *book, const struct node_cursor *cursor,
                  enum reason *ret_reason)
{
    const verdict found = ((const verdict *)book->entries)[cursor->place];

    if (found >> REASON_BITS != cursor->pulse->version)
        return false;
    *ret_reason = found & ((1 << REASON_BITS) - 1);
    return true;
}

void verdict_note(struct node_book *book, const struct node_cursor *cursor, enum reason reason)
{
    ((verdict *)book->entries)[cursor->place] = cursor->pulse->version << REASON_BITS | reason;
}
