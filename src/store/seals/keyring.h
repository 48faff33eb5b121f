/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The keys that seals are made with (store/seals/seals.h), and the text that they are kept as:
 *
 *   key ID HEX SINCE     an id of 8 and a key of 64 hexadecimal digits, Unix time
 *   adopted TIME         pods that had no seal until then have got one, as they were
 *   rotate               somebody wants a new key
 *   rotate force         also in place of one with which pods are sealed
 *
 * All keys verify. The newest one signs, but not before everybody who verifies has had
 * KEYRING_SETTLE_S to read it; the oldest one, until any is as old as that. No I/O, no clock.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEYRING_KEYS_MAX 8
#define KEYRING_TEXT_MAX ((size_t)16 << 10)
#define KEYRING_SETTLE_S 120
#define KEYRING_ID_SIZE 9 /* with the NUL */

struct keyring;

/* Without a key. */
struct keyring *keyring_new(void);
struct keyring *keyring_dup(const struct keyring *keyring);
void keyring_free(struct keyring *keyring);
typedef struct keyring keyring; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(keyring, keyring_free)

/* An empty text is a keyring without a key. Errors say nothing of the keys. */
struct keyring *keyring_parse(const char *text, GError **error);
/* Free with keyring_text_free, which wipes it. */
char *keyring_format(const struct keyring *keyring);
void keyring_text_free(char *text);

unsigned keyring_size(const struct keyring *keyring);
/* Adds a key by chance, in place of the oldest one if there are too many. It is the newest, also after a clock
 * was set back: the others' times are before its own then. False: chance is not to be had. */
bool keyring_add(struct keyring *keyring, int64_t now_s);
/* Drops those that neither sign nor are named among the ids, which ends with NULL. Returns how many. */
unsigned keyring_drop(struct keyring *keyring, const char *const *ids, int64_t now_s);

/* Unix time; 0: not yet. */
int64_t keyring_adopted(const struct keyring *keyring);
void keyring_set_adopted(struct keyring *keyring, int64_t now_s);
bool keyring_wants_rotation(const struct keyring *keyring);
/* Whatever is lost. */
bool keyring_forces_rotation(const struct keyring *keyring);
void keyring_set_rotation(struct keyring *keyring, bool wanted);

/* The id of the key that signs; NULL: there is none. Borrows. */
const char *keyring_signer(const struct keyring *keyring, int64_t now_s);
/* The id of that key; NULL: there are fewer. Borrows. */
const char *keyring_id(const struct keyring *keyring, unsigned at);

/* "v1:ID:MAC:FACTS"; NULL: there is no key. Free with g_free. */
char *keyring_seal(const struct keyring *keyring, const char *facts, int64_t now_s);
/* The facts of a seal that one of the keys has made, within its text, and that key's id; NULL: none
 * has. */
const char *keyring_check(const struct keyring *keyring, const char *seal, const char **ret_id);
/* The facts of what has the form of a seal, whoever has made it; NULL: it has not. */
const char *keyring_facts(const char *seal);
