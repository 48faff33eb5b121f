/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any JSON value is refused as a Lease, or says the same when it is written and read again. Any
 * text is refused as a journal, or its bookings are in the ledger afterwards, which stays right,
 * and in the journal that is written from it.
 */
#include "target.h"

#include "verbs/journal.h"
#include "wire/lease.h"

#include <string.h>

static size_t entries(const struct string_pairs *pairs)
{
    size_t n = 0;

    for (size_t i = 0; i < pairs->n; i++)
        n += strlen(pairs->items[i].key) > 0 && strlen(pairs->items[i].value) > 0;
    return n;
}

static void check_lease(const uint8_t *data, size_t size)
{
    g_autoptr(json_arena) arena = json_arena_new(), other = json_arena_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    struct lease_view lease, back;
    struct json_writer writer;

    const cJSON *object = json_parse(arena, (const char *)data, size, NULL);
    if (!object)
        return;
    const bool decoded = lease_view_decode(arena, object, &lease, &error);
    FUZZ_CHECK(decoded == !error);
    if (!decoded)
        return;
    FUZZ_CHECK(*lease.version);
    json_writer_init(&writer, text);
    lease_encode(&writer, "ns", "name", &lease, NULL, NULL);
    const cJSON *again = json_parse(other, text->str, text->len, NULL);
    FUZZ_CHECK(again && lease_view_decode(other, again, &back, NULL));
    FUZZ_CHECK(g_str_equal(back.version, lease.version));
    FUZZ_CHECK(g_strcmp0(back.holder, lease.holder ? lease.holder : "") == 0);
    FUZZ_CHECK(g_strcmp0(back.renewed, lease.renewed) == 0);
    FUZZ_CHECK(back.duration_s == lease.duration_s);
    FUZZ_CHECK(back.transitions == CLAMP(lease.transitions, 0, INT32_MAX));
    FUZZ_CHECK(g_strcmp0(back.uid, lease.uid) == 0);
    FUZZ_CHECK(entries(&back.labels) == entries(&lease.labels));
    FUZZ_CHECK(entries(&back.annotations) == entries(&lease.annotations));
}

/* Takes a journal in and checks the ledger; what the next replica would be told. */
static GString *take_over(const char *text, unsigned *ret_booked)
{
    g_autoptr(store) store = store_new(&(struct store_options){.policy = policies, .silent = true});
    g_autoptr(journal) journal = journal_new(store);
    GString *left = g_string_new(NULL);
    int bad = 0;

    *ret_booked = journal_decode(journal, text, &bad);
    FUZZ_CHECK(bad >= 0 || *ret_booked == 0);
    struct ledger *ledger = store_lock(store);
    FUZZ_CHECK(ledger_size(ledger) == *ret_booked);
    FUZZ_CHECK(ledger_verify(ledger, NULL));
    store_unlock(store);
    journal_encode(journal, left);
    FUZZ_CHECK((left->len > 0) == (*ret_booked > 0));
    return left;
}

static void check_journal(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    unsigned booked, again;
    g_autoptr(GString) left = take_over(text, &booked);

    if (booked == 0)
        return;
    g_autoptr(GString) rest = take_over(left->str, &again);
    FUZZ_CHECK(again == booked && rest->len == left->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* What is not UTF-8 is written as U+FFFD. */
    if (!g_utf8_validate((const char *)data, (gssize)size, NULL))
        return 0;
    check_lease(data, size);
    check_journal(data, size);
    return 0;
}
