/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define OK 0
#define INVALID (GPULEDGER_ERROR_INVALID + 1)
#define RANGE (GPULEDGER_ERROR_RANGE + 1)
#define LIMIT (GPULEDGER_ERROR_LIMIT + 1)

#define ZEROS_50 "00000000000000000000000000000000000000000000000000"

struct quantity_case {
    const char *text;
    int64_t value;
    int failure; /* a code plus 1, or OK */
};

static const struct quantity_case whole_cases[] = {
    /* plain */
    {"0", 0},
    {"1", 1},
    {"15", 15},
    {"16276", 16276},
    {"007", 7},
    {"+5", 5},
    /* every suffix */
    {"5k", 5000},
    {"5M", 5000000},
    {"5G", 5000000000},
    {"5T", 5000000000000},
    {"5P", 5000000000000000},
    {"5E", 5000000000000000000},
    {"5Ki", INT64_C(5) << 10},
    {"5Mi", INT64_C(5) << 20},
    {"5Gi", INT64_C(5) << 30},
    {"5Ti", INT64_C(5) << 40},
    {"5Pi", INT64_C(5) << 50},
    {"5Ei", INT64_C(5) << 60},
    {"5000m", 5},
    {"5000000u", 5},
    {"5000000000n", 5},
    /* as the API server re-emits what people write */
    {"8k", 8000},
    {"1Ki", 1024},
    {"10G", 10000000000},
    {"1536Mi", INT64_C(1536) << 20},
    /* exponents */
    {"1e0", 1},
    {"1e3", 1000},
    {"1E3", 1000},
    {"1e+3", 1000},
    {"1e03", 1000},
    {"1e003", 1000},
    {"15e-1", 0, INVALID},
    {"150e-1", 15},
    {"15000E-3", 15},
    {"0e999", 0},
    {"0e-999", 0},
    /* fractions that are whole after all */
    {"1.0", 1},
    {"5.", 5},
    {".5k", 500},
    {"0.5k", 500},
    {"1.5k", 1500},
    {"1.5Ki", 1536},
    {"0.5Gi", INT64_C(1) << 29},
    {"0.0009765625Ki", 1},
    {"2.000", 2},
    {"1.5e1", 15},
    {"0.000000000000000001E", 1},
    {"9.223372036854775807E", INT64_MAX},
    /* and those that are not */
    {"1.5", 0, INVALID},
    {"1500m", 0, INVALID},
    {"1m", 0, INVALID},
    {"1u", 0, INVALID},
    {"1n", 0, INVALID},
    {"0.1Ki", 0, INVALID},
    {"1.0001k", 0, INVALID},
    {"1e-1", 0, INVALID},
    {"1e-999", 0, INVALID},
    /* nothing, whatever its unit */
    {"-0", 0},
    {"+0", 0},
    {"0m", 0},
    {"0Ei", 0},
    {".0", 0},
    {"0.", 0},
    {"-0.0", 0},
    /* below zero */
    {"-1", 0, RANGE},
    {"-1m", 0, RANGE},
    {"-5Gi", 0, RANGE},
    {"-9223372036854775808", 0, RANGE},
    /* the edge */
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775808", 0, RANGE},
    {"9999999999999999999", 0, RANGE},
    {"18446744073709551616", 0, RANGE},
    {"18446744073709551617", 0, RANGE},
    {"9223372036854775.807k", INT64_MAX},
    {"9223372036854775.808k", 0, RANGE},
    {"7Ei", INT64_C(7) << 60},
    {"7.99999999999999999Ei", 0, INVALID},
    {"8Ei", 0, RANGE},
    {"9E", INT64_C(9000000000000000000)},
    {"10E", 0, RANGE},
    {"1e18", INT64_C(1000000000000000000)},
    {"1e19", 0, RANGE},
    {"1e30", 0, RANGE},
    {"1e999", 0, RANGE},
    {"9999999999999999999Ei", 0, RANGE},
    {"1180591620717411303424", 0, RANGE},                  /* 2^70 */
    {"340282366920938463463374607431768211457", 0, RANGE}, /* 2^128 + 1 */
    /* more digits than INT64_MAX has */
    {"10000000000000000000m", INT64_C(10000000000000000)},
    {"9223372036854775807000m", INT64_MAX},
    {"9223372036854775808000m", 0, RANGE},
    {"1.00000000000000000000", 1},
    {"9223372036854775807.00000000000000000000", INT64_MAX},
    {"0.00000000000000000001E", 0, INVALID},
    {"1.00000000000000000001", 0, INVALID},
    {"1.00000000000000000000Gi", INT64_C(1) << 30},
    {"1.00000000000000000001Gi", 0, RANGE},
    {"1234567890123456789012m", 0, INVALID},
    {"12345678901234567890123m", 0, RANGE},
    {"12345678901234567890e-1", INT64_C(1234567890123456789)},
    {"12345678901234567891e-1", 0, INVALID},
    {"12345678901234567890", 0, RANGE},
    {"1000000000000000000000000000000000000000000000000e-30", INT64_C(1000000000000000000)},
    /* garbage */
    {"", 0, INVALID},
    {" ", 0, INVALID},
    {"+", 0, INVALID},
    {"-", 0, INVALID},
    {".", 0, INVALID},
    {"+.", 0, INVALID},
    {"+-1", 0, INVALID},
    {"--1", 0, INVALID},
    {"k", 0, INVALID},
    {"Gi", 0, INVALID},
    {"e3", 0, INVALID},
    {" 1", 0, INVALID},
    {"1 ", 0, INVALID},
    {"1\n", 0, INVALID},
    {"1 Gi", 0, INVALID},
    {"1,5", 0, INVALID},
    {"1.2.3", 0, INVALID},
    {"1..2", 0, INVALID},
    {"0x10", 0, INVALID},
    {"1_000", 0, INVALID},
    {"1K", 0, INVALID},
    {"1g", 0, INVALID},
    {"1GB", 0, INVALID},
    {"1GiB", 0, INVALID},
    {"1ki", 0, INVALID},
    {"1mi", 0, INVALID},
    {"1i", 0, INVALID},
    {"1e", 0, INVALID},
    {"1e+", 0, INVALID},
    {"1e-", 0, INVALID},
    {"1e1.5", 0, INVALID},
    {"1e3k", 0, INVALID},
    {"1ke3", 0, INVALID},
    {"1e3e3", 0, INVALID},
    {"1e+-3", 0, INVALID},
    {"1e99999999999999999999", 0, INVALID},
    {"NaN", 0, INVALID},
    {"inf", 0, INVALID},
    {"\xd9\xa1", 0, INVALID}, /* ARABIC-INDIC DIGIT ONE */
    {"1\xc2\xb5", 0, INVALID},
    /* length */
    {ZEROS_50 "12345678901234", 12345678901234},
    {ZEROS_50 "123456789012345", 0, LIMIT},
    {"1" ZEROS_50 ZEROS_50, 0, LIMIT},
};

static void check_case(const struct quantity_case *c,
                       bool (*parse)(const char *, int64_t *, GError **))
{
    /* In a block of its own, so that reading past the end is seen. */
    g_autofree char *text = g_strdup(c->text);
    g_autoptr(GError) error = NULL;
    int64_t value = -7;
    bool parsed = parse(text, &value, &error);

    ck_assert_msg(parsed == (c->failure == OK), "'%s': %s", c->text,
                  error ? error->message : "was read");
    ck_assert_int_eq(parsed, error == NULL);
    if (parsed) {
        ck_assert_msg(value == c->value, "'%s': %" G_GINT64_FORMAT, c->text, value);
        return;
    }
    ck_assert_msg(g_error_matches(error, GPULEDGER_ERROR, c->failure - 1), "'%s': %s", c->text,
                  error->message);
    ck_assert_int_eq(value, -7);
    g_autofree char *quoted = g_strdup_printf("'%.64s'", c->text);
    ck_assert_msg(strstr(error->message, quoted) != NULL, "%s", error->message);
}

START_TEST(whole_units)
{
    check_case(&whole_cases[_i], quantity_parse);
}
END_TEST

static const struct quantity_case thousandth_cases[] = {
    {"0", 0},
    {"1", 1000},
    {"2", 2000},
    {"250m", 250},
    {"0.25", 250},
    {".001", 1},
    {"1k", 1000000},
    {"1Ki", 1024000},
    {"1e-3", 1},
    {"2500u", 3},
    {"1u", 1},
    {"1n", 1},
    {"1e-999", 1},
    {"1000u", 1},
    {"1001u", 2},
    {"1000001n", 2},
    {"0.0001", 1},
    {"1.2345", 1235},
    {"1.2340", 1234},
    {"-0", 0},
    {"0.0009765625Ki", 1000},
    {"0.001Ki", 1024},
    {"0.00001Ki", 11}, /* 10.24 */
    {"9223372036854775807m", INT64_MAX},
    {"9223372036854775.807", INT64_MAX},
    {"9223372036854775807u", INT64_C(9223372036854776)},
    {"9223372036854775.808", 0, RANGE},
    {"9223372036854775", INT64_C(9223372036854775000)},
    {"9223372036854776", 0, RANGE},
    {"9223372036854775807", 0, RANGE},
    {"0.12345678901234567890123", 124},
    {"1.00000000000000000000000000000001", 1001},
    {"12345678901234567890123u", 0, RANGE},
    {"1234567890123456789012u", INT64_C(1234567890123456790)},
    {"9223372036854775807000000n", INT64_MAX},
    {"9223372036854775807000001n", 0, RANGE},
    {"1e16", 0, RANGE},
    {"1Ei", 0, RANGE},
    {"-1m", 0, RANGE},
    {"-250m", 0, RANGE},
    {"1e", 0, INVALID},
    {"", 0, INVALID},
    {"half", 0, INVALID},
};

START_TEST(thousandths)
{
    check_case(&thousandth_cases[_i], quantity_parse_thousandths);
}
END_TEST

START_TEST(an_error_need_not_be_wanted)
{
    int64_t value;

    ck_assert(!quantity_parse("x", &value, NULL));
    ck_assert(!quantity_parse_thousandths("1e99", &value, NULL));
}
END_TEST

/* Every decimal number of units comes back, in every suffix that divides it. */
START_TEST(written_and_read_back)
{
    static const char *const suffixes[] = {"", "k", "M", "G", "T", "P", "E"};
    int64_t power = 1;

    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++, power *= 1000) {
        for (int64_t value = 1; value < 10; value++) {
            g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT "%s", value, suffixes[i]);
            int64_t back;

            ck_assert(quantity_parse(text, &back, NULL));
            ck_assert_int_eq(back, value * power);
        }
        if (i == G_N_ELEMENTS(suffixes) - 1)
            break;
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("quantity");
    TCase *tc = tcase_create("quantity");

    tcase_add_loop_test(tc, whole_units, 0, G_N_ELEMENTS(whole_cases));
    tcase_add_loop_test(tc, thousandths, 0, G_N_ELEMENTS(thousandth_cases));
    tcase_add_test(tc, an_error_need_not_be_wanted);
    tcase_add_test(tc, written_and_read_back);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
