/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line that says which pod on which node, then a seal: what is read of it is of that pod, and only what
 * a key has sealed is read with a key. The rest is the text of a keyring as well, which is refused without
 * showing it, or the same when it is written and read again.
 */
#include "target.h"

#include "store/seals/seals.h"

#include <string.h>

static void check_keyring(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(keyring) keyring = keyring_parse(text, &error);

    FUZZ_CHECK(!keyring == !!error);
    if (!keyring)
        return;
    char *written = keyring_format(keyring);
    g_autoptr(keyring) again = keyring_parse(written, NULL);
    FUZZ_CHECK(again);
    char *rewritten = keyring_format(again);
    FUZZ_CHECK(g_str_equal(written, rewritten));
    keyring_text_free(written);
    keyring_text_free(rewritten);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char keys[] =
        "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1000\n";
    g_autofree char *text = g_strndup((const char *)data, size);
    char *seal = strchr(text, '\n');
    char key[KEYRING_ID_SIZE];

    if (!seal)
        return 0;
    *seal++ = '\0';
    struct string_pair pair = {SEAL_ANNOTATION, seal};
    const struct pod_view pod = {
        .uid = text, .ns = "n", .name = "p", .node_name = "node", .annotations = {&pair, 1}};
    struct seals *seals = seals_new();
    g_autoptr(allocation) believed = seals_read(NULL, &pod, NULL, key);
    if (believed) {
        FUZZ_CHECK(g_str_equal(believed->uid, text) && believed->dialect);
        FUZZ_CHECK(believed->n_shares > 0 && believed->n_shares <= ALLOCATION_SHARES_MAX);
    }
    seals_set(seals, keyring_parse(keys, NULL));
    g_autoptr(allocation) sealed = seals_read(seals, &pod, NULL, key);
    FUZZ_CHECK(!sealed || believed);

    /* With a MAC of the key's own. */
    const char *facts = keyring_facts(seal);
    g_autofree char *made = facts ? seals_make(seals, facts) : NULL;
    if (made) {
        pair.value = made;
        g_autoptr(allocation) again = seals_read(seals, &pod, NULL, key);
        FUZZ_CHECK(!again == !believed);
        FUZZ_CHECK(!again || allocation_equal(again, believed));
        FUZZ_CHECK(!again || g_str_equal(key, "0000000a"));
    }
    seals_free(seals);
    check_keyring(seal);
    return 0;
}
