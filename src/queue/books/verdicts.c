/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/books/verdicts.h"
#include "core/ledger.h"
#include "core/reason/reasons.h"

#define REASON_BITS 8
G_STATIC_ASSERT(REASONS_MAX <= 1 << REASON_BITS);

struct entry {
    uint64_t seen; /* the node's version, and the reason; 0: none */
    uint64_t number;
};

struct node_books *verdicts_new(void)
{
    return node_books_new(sizeof(struct entry), (struct node_books_limits){32, 1U << 18});
}

bool verdict_find(const struct node_book *book, const struct node_cursor *cursor,
                  struct node_verdict *ret_verdict)
{
    const struct entry *entry = &((const struct entry *)book->entries)[cursor->place];

    if (entry->seen >> REASON_BITS != cursor->pulse->version)
        return false;
    ret_verdict->reason = entry->seen & ((1 << REASON_BITS) - 1);
    ret_verdict->number = entry->number;
    return true;
}

void verdict_note(struct node_book *book, const struct node_cursor *cursor,
                  const struct node_verdict *verdict)
{
    ((struct entry *)book->entries)[cursor->place] =
        (struct entry){cursor->pulse->version << REASON_BITS | verdict->reason, verdict->number};
}
