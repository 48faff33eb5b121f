/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seals/keyring.h"

#include <gnutls/crypto.h>
#include <gpuledger/error.h>
#include <string.h>

#define KEY_SIZE 32
#define MAC_SIZE 32 /* of SHA-256 */
#define MAC_DIGITS (2 * MAC_SIZE)
#define ID_DIGITS (KEYRING_ID_SIZE - 1)
#define PREFIX "v1:"
/* Says what the MAC is for, should the key ever be used for something else. */
#define DOMAIN "gpuledger.io/seal v1\n"

struct key {
    char id[KEYRING_ID_SIZE];
    guint8 bytes[KEY_SIZE];
    int64_t since_s;
};

struct keyring {
    struct key keys[KEYRING_KEYS_MAX]; /* the oldest first */
    unsigned n;
    int64_t adopted_s;
    bool rotate, force;
};

struct keyring *keyring_new(void)
{
    return g_new0(struct keyring, 1);
}

struct keyring *keyring_dup(const struct keyring *keyring)
{
    return g_memdup2(keyring, sizeof *keyring);
}

void keyring_free(struct keyring *keyring)
{
    if (keyring)
        explicit_bzero(keyring, sizeof *keyring);
    g_free(keyring);
}

void keyring_text_free(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    g_free(text);
}

/* --- as text -------------------------------------------------------------------------------- */

static void write_hex(const guint8 *bytes, size_t n, char *ret_text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ret_text[2 * i] = digits[bytes[i] >> 4];
        ret_text[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_text[2 * n] = '\0';
}

/* Exactly so many lower-case digits, and no more; `end` may follow. */
static bool is_hex(const char *text, size_t n, char end)
{
    for (size_t i = 0; i < n; i++) {
        if (!g_ascii_isdigit(text[i]) && !(text[i] >= 'a' && text[i] <= 'f'))
            return false;
    }
    return text[n] == end;
}

static bool read_hex(const char *text, size_t n, guint8 *ret_bytes)
{
    if (!is_hex(text, 2 * n, '\0'))
        return false;
    for (size_t i = 0; i < n; i++)
        ret_bytes[i] = (guint8)(g_ascii_xdigit_value(text[2 * i]) << 4 |
                                g_ascii_xdigit_value(text[2 * i + 1]));
    return true;
}

static bool read_time(const char *text, int64_t *ret_time)
{
    return g_ascii_string_to_signed(text, 10, 1, INT64_C(1) << 40, ret_time, NULL);
}

static gint compare_keys(gconstpointer a, gconstpointer b)
{
    const struct key *left = a, *right = b;

    return left->since_s != right->since_s ? (left->since_s < right->since_s ? -1 : 1)
                                           : strcmp(left->id, right->id);
}

static const struct key *find_key(const struct keyring *keyring, const char *id)
{
    for (unsigned i = 0; i < keyring->n; i++) {
        if (strncmp(keyring->keys[i].id, id, ID_DIGITS) == 0)
            return &keyring->keys[i];
    }
    return NULL;
}

static bool read_key(struct keyring *keyring, char *const *words)
{
    struct key key = {.since_s = 0};
    const bool good = g_strv_length((char **)words) == 4 && keyring->n < KEYRING_KEYS_MAX &&
                      is_hex(words[1], ID_DIGITS, '\0') && !find_key(keyring, words[1]) &&
                      read_hex(words[2], KEY_SIZE, key.bytes) && read_time(words[3], &key.since_s);

    if (good) {
        memcpy(key.id, words[1], sizeof key.id);
        keyring->keys[keyring->n++] = key;
    }
    explicit_bzero(&key, sizeof key);
    return good;
}

static bool read_line(struct keyring *keyring, const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 5);
    bool good = false;

    if (g_strcmp0(words[0], "key") == 0)
        good = read_key(keyring, words);
    else if (g_strcmp0(words[0], "adopted") == 0)
        good = words[1] && !words[2] && read_time(words[1], &keyring->adopted_s);
    else if (g_strcmp0(words[0], "rotate") == 0) {
        const bool force = g_strcmp0(words[1], "force") == 0 && !words[2];
        good = !words[1] || force;
        keyring->rotate = true;
        keyring->force |= force;
    }
    for (char **word = words; *word; word++)
        explicit_bzero(*word, strlen(*word));
    return good;
}

struct keyring *keyring_parse(const char *text, GError **error)
{
    g_autoptr(keyring) keyring = keyring_new();
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bool good = true;
    guint number = 0;

    for (; good && lines[number]; number++) {
        const char *line = g_strstrip(lines[number]);
        good = !*line || *line == '#' || read_line(keyring, line);
    }
    for (char **line = lines; *line; line++)
        explicit_bzero(*line, strlen(*line));
    if (!good) {
        g_set_error(
            error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
            "line %u of the keys of seals cannot be read; expected 'key ID HEX TIME', "
            "'adopted TIME', 'rotate' or 'rotate force', and at most %d keys of different ids",
            number, KEYRING_KEYS_MAX);
        return NULL;
    }
    qsort(keyring->keys, keyring->n, sizeof *keyring->keys, compare_keys);
    return g_steal_pointer(&keyring);
}

char *keyring_format(const struct keyring *keyring)
{
    /* As large as it will be, so that no copy is left behind. */
    GString *text = g_string_sized_new(KEYRING_KEYS_MAX * 128 + 128);
    char hex[2 * KEY_SIZE + 1];

    for (unsigned i = 0; i < keyring->n; i++) {
        const struct key *key = &keyring->keys[i];
        write_hex(key->bytes, KEY_SIZE, hex);
        g_string_append_printf(text, "key %s %s %" G_GINT64_FORMAT "\n", key->id, hex,
                               key->since_s);
    }
    explicit_bzero(hex, sizeof hex);
    if (keyring->adopted_s > 0)
        g_string_append_printf(text, "adopted %" G_GINT64_FORMAT "\n", keyring->adopted_s);
    if (keyring->rotate)
        g_string_append(text, keyring->force ? "rotate force\n" : "rotate\n");
    return g_string_free(text, FALSE);
}

/* --- keys ----------------------------------------------------------------------------------- */

unsigned keyring_size(const struct keyring *keyring)
{
    return keyring->n;
}

/* In their order. */
static void make_earlier(struct keyring *keyring, int64_t than_s)
{
    for (unsigned i = keyring->n; i-- > 0;)
        keyring->keys[i].since_s = MIN(keyring->keys[i].since_s, --than_s);
}

bool keyring_add(struct keyring *keyring, int64_t now_s)
{
    guint8 name[ID_DIGITS / 2];
    struct key key = {.since_s = now_s};

    if (gnutls_rnd(GNUTLS_RND_KEY, key.bytes, KEY_SIZE) < 0 ||
        gnutls_rnd(GNUTLS_RND_NONCE, name, sizeof name) < 0)
        return false;
    write_hex(name, sizeof name, key.id);
    if (find_key(keyring, key.id))
        return false;
    if (keyring->n == KEYRING_KEYS_MAX)
        memmove(keyring->keys, keyring->keys + 1, --keyring->n * sizeof *keyring->keys);
    make_earlier(keyring, now_s);
    keyring->keys[keyring->n++] = key;
    explicit_bzero(&key, sizeof key);
    return true;
}

static const struct key *find_signer(const struct keyring *keyring, int64_t now_s)
{
    const struct key *signer = keyring->n > 0 ? &keyring->keys[0] : NULL;

    for (unsigned i = 1; i < keyring->n; i++) {
        if (keyring->keys[i].since_s <= now_s - KEYRING_SETTLE_S)
            signer = &keyring->keys[i];
    }
    return signer;
}

unsigned keyring_drop(struct keyring *keyring, const char *const *ids, int64_t now_s)
{
    const struct key *signer = find_signer(keyring, now_s);
    const unsigned before = keyring->n;
    unsigned kept = 0, first = signer ? (unsigned)(signer - keyring->keys) : 0;

    for (unsigned i = 0; i < before; i++) {
        /* What is newer than the one that signs has its time still to come. */
        if (i >= first || g_strv_contains(ids, keyring->keys[i].id))
            keyring->keys[kept++] = keyring->keys[i];
    }
    explicit_bzero(&keyring->keys[kept], (before - kept) * sizeof *keyring->keys);
    keyring->n = kept;
    return before - kept;
}

int64_t keyring_adopted(const struct keyring *keyring)
{
    return keyring->adopted_s;
}

void keyring_set_adopted(struct keyring *keyring, int64_t now_s)
{
    keyring->adopted_s = now_s;
}

bool keyring_wants_rotation(const struct keyring *keyring)
{
    return keyring->rotate;
}

bool keyring_forces_rotation(const struct keyring *keyring)
{
    return keyring->force;
}

void keyring_set_rotation(struct keyring *keyring, bool wanted)
{
    keyring->force &= wanted;
    keyring->rotate = wanted;
}

const char *keyring_signer(const struct keyring *keyring, int64_t now_s)
{
    const struct key *key = find_signer(keyring, now_s);

    return key ? key->id : NULL;
}

const char *keyring_id(const struct keyring *keyring, unsigned at)
{
    return at < keyring->n ? keyring->keys[at].id : NULL;
}

/* --- seals ---------------------------------------------------------------------------------- */

static bool make_mac(const struct key *key, const char *facts, guint8 *ret_mac)
{
    g_autofree char *text = g_strconcat(DOMAIN, facts, NULL);

    return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key->bytes, KEY_SIZE, text, strlen(text), ret_mac) ==
           0;
}

char *keyring_seal(const struct keyring *keyring, const char *facts, int64_t now_s)
{
    const struct key *key = find_signer(keyring, now_s);
    guint8 mac[MAC_SIZE];
    char hex[MAC_DIGITS + 1];

    if (!key || !make_mac(key, facts, mac))
        return NULL;
    write_hex(mac, MAC_SIZE, hex);
    return g_strconcat(PREFIX, key->id, ":", hex, ":", facts, NULL);
}

const char *keyring_facts(const char *seal)
{
    const char *id = seal + strlen(PREFIX), *mac = id + ID_DIGITS + 1;

    if (!g_str_has_prefix(seal, PREFIX) || !is_hex(id, ID_DIGITS, ':') ||
        !is_hex(mac, MAC_DIGITS, ':'))
        return NULL;
    return mac + MAC_DIGITS + 1;
}

const char *keyring_check(const struct keyring *keyring, const char *seal, const char **ret_id)
{
    const char *facts = keyring_facts(seal);
    const char *id = seal + strlen(PREFIX);
    const struct key *key = facts ? find_key(keyring, id) : NULL;
    guint8 mac[MAC_SIZE], said[MAC_SIZE];
    char hex[MAC_DIGITS + 1];

    if (!key || !make_mac(key, facts, mac))
        return NULL;
    g_strlcpy(hex, id + ID_DIGITS + 1, sizeof hex);
    if (!read_hex(hex, MAC_SIZE, said) || gnutls_memcmp(mac, said, MAC_SIZE) != 0)
        return NULL;
    *ret_id = key->id;
    return facts;
}
