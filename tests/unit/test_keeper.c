/* SPDX-License-Identifier: Apache-2.0 */
/* Who looks after the keys of seals: at the start, and later, with storages that others write as well. */
#include "verbs/keeper.h"
#include "inspect/views.h"
#include "kube/key_storages.h"
#include "scripted_api.h"
#include "suite.h"
#include "world.h"

#include <glib/gstdio.h>
#include <gpuledger/error.h>
#include <string.h>

#define KEY "key 0000000a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 1000\n"
#define OTHER_KEY "key 0000000b 202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f 2000\n"
#define ADOPTED "adopted 1000\n"

/* A storage in memory. */
static struct {
    struct key_storage storage;
    char *text, *other; /* `other`: somebody writes it before us */
    int version, writes;
    bool broken;
} memory;

static char *read_memory(struct key_storage *storage, char **ret_version, GError **error)
{
    if (memory.broken) {
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_IO, "broken");
        return NULL;
    }
    *ret_version = g_strdup_printf("%d", memory.version);
    return g_strdup(memory.text);
}

static void put(const char *text)
{
    g_free(memory.text);
    memory.text = g_strdup(text);
    memory.version++;
}

static enum outcome write_memory(struct key_storage *storage, const char *text, const char *version,
                                 GError **error)
{
    g_autofree char *other = g_steal_pointer(&memory.other);

    if (other)
        put(other);
    if (atoi(version) != memory.version) {
        g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_CONFLICT, "somebody was faster");
        return OUTCOME_CONFLICT;
    }
    put(text);
    memory.writes++;
    return OUTCOME_OK;
}

static void release_memory(struct key_storage *storage)
{
}

static const struct key_storage_ops memory_ops = {read_memory, write_memory, release_memory};

static struct world world;
static struct seals *seals;
static struct keeper *keeper;

static void setup(void)
{
    memory.storage = (struct key_storage){&memory_ops, "memory"};
    memory.broken = false;
    memory.writes = 0;
    put("");
    world_init(&world);
    seals = seals_new();
    store_free(world.store);
    world.extender.store = world.store =
        store_new(&(struct store_options){.policy = &policies[0], .seals = seals});
}

static void teardown(void)
{
    keeper_free(keeper);
    keeper = NULL;
    world_release(&world);
    seals_free(seals);
}

static void begin(void)
{
    g_autoptr(GError) error = NULL;

    keeper = keeper_new(&memory.storage, seals, &error);
    ck_assert_msg(keeper, "%s", error ? error->message : "");
}

/* The next look is made at once. */
static void look(bool serves)
{
    keeper_look(keeper, world.store, serves);
}

static void expect_keys(unsigned n, const char *signer)
{
    g_autoptr(keyring) keyring = seals_keyring(seals);

    ck_assert_uint_eq(keyring_size(keyring), n);
    if (signer)
        ck_assert_str_eq(keyring_signer(keyring, 100000), signer);
}

START_TEST(an_empty_place_is_filled)
{
    begin();
    expect_keys(1, NULL);
    ck_assert(g_str_has_prefix(memory.text, "key "));
    ck_assert(seals_adopt(seals));
}
END_TEST

START_TEST(who_was_first_has_filled_it)
{
    memory.other = g_strdup(KEY);
    begin();
    expect_keys(1, "0000000a");
    ck_assert_int_eq(memory.writes, 0);
}
END_TEST

START_TEST(what_cannot_be_read_is_no_start)
{
    g_autoptr(GError) error = NULL;

    put("nonsense");
    ck_assert_ptr_null(keeper_new(&memory.storage, seals, &error));
    ck_assert_ptr_nonnull(error);
    ck_assert_str_eq(memory.text, "nonsense");
}
END_TEST

START_TEST(another_key_is_taken_over)
{
    put(KEY ADOPTED);
    begin();
    put(KEY OTHER_KEY ADOPTED);
    look(false);
    expect_keys(2, "0000000b");
}
END_TEST

static const char *const broken[] = {"nonsense", NULL};

START_TEST(what_cannot_be_read_later_changes_nothing)
{
    put(KEY ADOPTED);
    begin();
    if (broken[_i])
        put(broken[_i]);
    else
        memory.broken = true;
    look(true);
    expect_keys(1, "0000000a");
    ck_assert_int_eq(memory.writes, 0);
}
END_TEST

START_TEST(lost_keys_are_put_back)
{
    put(KEY ADOPTED);
    begin();
    put("");
    look(false);
    expect_keys(1, "0000000a");
    ck_assert_str_eq(memory.text, KEY ADOPTED);
}
END_TEST

START_TEST(the_date_is_written_when_all_are_sealed)
{
    put(KEY);
    begin();
    look(true);
    ck_assert_str_eq(memory.text, KEY); /* nothing has been listed */
    world_sync(&world);
    look(false);
    ck_assert_str_eq(memory.text, KEY); /* another one serves */
    store_lock(world.store);
    sealing_note(store_sealing(world.store), "uid-p", NULL, true);
    store_unlock(world.store);
    look(true);
    ck_assert_str_eq(memory.text, KEY); /* a pod is to be sealed */
    store_lock(world.store);
    sealing_forget(store_sealing(world.store), "uid-p");
    store_unlock(world.store);
    look(true);
    ck_assert_ptr_nonnull(strstr(memory.text, "adopted "));
    ck_assert(!seals_adopt(seals));
}
END_TEST

START_TEST(a_key_that_is_asked_for_is_made_once)
{
    put(KEY ADOPTED "rotate\n");
    begin();
    world_sync(&world);
    look(false);
    expect_keys(1, "0000000a");
    look(true);
    expect_keys(2, NULL);
    ck_assert_ptr_null(strstr(memory.text, "rotate"));
    look(true);
    expect_keys(2, NULL);
}
END_TEST

START_TEST(a_key_goes_when_nothing_is_sealed_with_it)
{
    put(KEY OTHER_KEY ADOPTED);
    begin();
    look(true);
    expect_keys(2, NULL); /* nothing has been listed */
    world_sync(&world);
    store_lock(world.store);
    sealing_note(store_sealing(world.store), "uid-p", "0000000a", true);
    store_unlock(world.store);
    look(true);
    expect_keys(2, NULL);
    store_lock(world.store);
    sealing_note(store_sealing(world.store), "uid-p", "0000000b", true);
    store_unlock(world.store);
    look(false);
    expect_keys(2, NULL);
    look(true);
    expect_keys(1, "0000000b");
    ck_assert_str_eq(memory.text, OTHER_KEY ADOPTED);
}
END_TEST

static void note_seal(const char *uid, const char *key)
{
    store_lock(world.store);
    if (key)
        sealing_note(store_sealing(world.store), uid, key, true);
    else
        sealing_forget(store_sealing(world.store), uid);
    store_unlock(world.store);
}

static bool says_that_keys_are_full(void)
{
    g_autoptr(GString) text = g_string_new(NULL);

    view_metrics(world.store, 0, text);
    return strstr(text->str, "\ngpuledger_seal_keys_full 1\n") != NULL;
}

/* Eight keys, and with each a pod is sealed that cannot be patched. */
START_TEST(a_key_that_is_in_use_is_not_replaced)
{
    g_autoptr(GString) keys = g_string_new(KEY ADOPTED);

    for (int i = 1; i < KEYRING_KEYS_MAX; i++)
        g_string_append_printf(keys, "key 0000001%d %064d %d\n", i, i, 1000 + i);
    put(keys->str);
    begin();
    world_sync(&world);
    ck_assert(!says_that_keys_are_full());
    note_seal("uid-p", "0000000a");
    ck_assert(says_that_keys_are_full());
    for (int i = 1; i < KEYRING_KEYS_MAX; i++) {
        g_autofree char *id = g_strdup_printf("0000001%d", i);
        note_seal(id, id);
    }
    g_string_append(keys, _i == 1 ? "rotate force\n" : "rotate\n");
    put(keys->str);
    look(true);
    ck_assert_int_eq(strstr(memory.text, "key 0000000a ") != NULL, _i == 0);
    ck_assert_int_eq(strstr(memory.text, "rotate") != NULL, _i == 0);
    if (_i == 1)
        return;
    note_seal("uid-p", NULL);
    look(true);
    ck_assert_ptr_null(strstr(memory.text, "rotate"));
}
END_TEST

/* --- storages --------------------------------------------------------------------------------- */

START_TEST(a_file_is_made_and_read_again)
{
    g_autofree char *directory = g_dir_make_tmp("gpuledger-keys-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(directory, "keys", NULL);
    GStatBuf status;

    keeper = keeper_new(key_file_new(path), seals, NULL);
    ck_assert_ptr_nonnull(keeper);
    expect_keys(1, NULL);
    ck_assert_int_eq(g_stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    g_autoptr(keyring) keyring = seals_keyring(seals);
    char *text = keyring_format(keyring);
    g_autofree char *kept = NULL;
    ck_assert(g_file_get_contents(path, &kept, NULL, NULL));
    ck_assert_str_eq(kept, text);
    keyring_text_free(text);

    struct key_storage *storage = key_file_new(path);
    g_autofree char *version = NULL;
    char *read = storage->ops->read(storage, &version, NULL);
    g_free(read);
    ck_assert(g_file_set_contents(path, OTHER_KEY, -1, NULL));
    ck_assert_int_eq(storage->ops->write(storage, KEY, version, NULL), OUTCOME_CONFLICT);
    storage->ops->release(storage);
    g_unlink(path);
    g_rmdir(directory);
}
END_TEST

#define SECRET "GET /api/v1/namespaces/kube-system/secrets/seal "
#define PATCHED "PATCH /api/v1/namespaces/kube-system/secrets/seal "

START_TEST(a_secret_is_filled_over_the_version_that_was_read)
{
    g_autofree char *keys = g_base64_encode((const guchar *)KEY, strlen(KEY));
    g_autofree char *filled =
        g_strdup_printf("{\"metadata\":{\"resourceVersion\":\"8\"},\"data\":{\"keys\":\"%s\","
                        "\"rotate\":\"bm93\"}}",
                        keys);

    api_begin();
    fake_server_script(server, &(struct fake_reply){
                                   .match = SECRET, .times = 1,
                                   .chunks = {"{\"metadata\":{\"resourceVersion\":\"7\"}}"}});
    fake_server_script(server, &(struct fake_reply){.match = PATCHED, .times = 1, .chunks = {"{}"}});
    fake_server_script(server,
                       &(struct fake_reply){.match = SECRET, .times = 1, .chunks = {filled}});
    keeper = keeper_new(key_secret_new(client, "kube-system/seal", NULL), seals, NULL);
    ck_assert_ptr_nonnull(keeper);
    expect_keys(1, "0000000a");
    g_autoptr(keyring) keyring = seals_keyring(seals);
    ck_assert(keyring_wants_rotation(keyring));
    g_autofree char *patch = fake_server_request(server, 1);
    ck_assert_ptr_nonnull(strstr(patch, "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{\"keys\":\""));
    ck_assert(g_str_has_suffix(patch, "\",\"rotate\":null}}"));
    g_clear_pointer(&keeper, keeper_free);
    api_end();
}
END_TEST

/* By kubectl edit, from what echo and base64 print. */
START_TEST(an_end_of_a_line_takes_no_force_away)
{
    static const char *const words[] = {"bm93", "Zm9yY2U=", "Zm9yY2UK", "Zm9yY2Vk"};
    const bool forces = _i == 1 || _i == 2;
    g_autofree char *version = NULL, *text = NULL;
    g_autofree char *secret = g_strdup_printf(
        "{\"metadata\":{\"resourceVersion\":\"7\"},\"data\":{\"rotate\":\"%s\"}}", words[_i]);

    api_begin();
    script(&(struct fake_reply){.match = SECRET, .chunks = {secret}});
    struct key_storage *storage = key_secret_new(client, "kube-system/seal", NULL);
    text = storage->ops->read(storage, &version, NULL);
    ck_assert_str_eq(text, forces ? "\nrotate force\n" : "\nrotate\n");
    storage->ops->release(storage);
    api_end();
}
END_TEST

START_TEST(a_secret_has_a_namespace_and_a_name)
{
    static const char *const names[] = {"seal", "/seal", "kube-system/", "a/b/c", "a/..", ""};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        ck_assert_ptr_null(key_secret_new(NULL, names[i], NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("keeper");
    TCase *tests = tcase_create("keeper");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, an_empty_place_is_filled);
    tcase_add_test(tests, who_was_first_has_filled_it);
    tcase_add_test(tests, what_cannot_be_read_is_no_start);
    tcase_add_test(tests, another_key_is_taken_over);
    tcase_add_loop_test(tests, what_cannot_be_read_later_changes_nothing, 0, G_N_ELEMENTS(broken));
    tcase_add_test(tests, lost_keys_are_put_back);
    tcase_add_test(tests, the_date_is_written_when_all_are_sealed);
    tcase_add_test(tests, a_key_that_is_asked_for_is_made_once);
    tcase_add_test(tests, a_key_goes_when_nothing_is_sealed_with_it);
    tcase_add_loop_test(tests, a_key_that_is_in_use_is_not_replaced, 0, 2);
    tcase_add_test(tests, a_file_is_made_and_read_again);
    tcase_add_test(tests, a_secret_is_filled_over_the_version_that_was_read);
    tcase_add_loop_test(tests, an_end_of_a_line_takes_no_force_away, 0, 4);
    tcase_add_test(tests, a_secret_has_a_namespace_and_a_name);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
