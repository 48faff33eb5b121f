/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/error.h>
#include <gpuledger/quantity.h>
#include <string.h>

#define TEXT_MAX 64        /* longer than any number that fits */
#define MANTISSA_DIGITS 19 /* as many as INT64_MAX has; times the largest suffix, 2^60, still exact */

typedef __int128 wide;

struct suffix {
    const char *text;
    int power_of_10;
    int power_of_2;
};

static const struct suffix suffixes[] = {
    {"", 0, 0},   {"n", -9, 0}, {"u", -6, 0}, {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
    {"G", 9, 0},  {"T", 12, 0}, {"P", 15, 0}, {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

/* mantissa * 10^power_of_10 * 2^power_of_2 */
struct parts {
    wide mantissa;
    int power_of_10;
    int power_of_2;
    bool negative;
    bool cut; /* the mantissa lacks digits that are not zero */
};

static bool fail(GError **error, enum gpuledger_error code, const char *text, const char *why)
{
    g_set_error(error, GPULEDGER_ERROR, (gint)code, "quantity '%.*s' %s", TEXT_MAX, text, why);
    return false;
}

/* "e3", "E-2": a sign and at most three digits. */
static bool parse_exponent(const char *text, int *ret_exponent)
{
    if (*text != 'e' && *text != 'E')
        return false;
    text++;
    int sign = *text == '-' ? -1 : 1;
    if (*text == '-' || *text == '+')
        text++;
    int value = 0, digits = 0;
    for (; g_ascii_isdigit(*text) && digits < 4; text++, digits++)
        value = value * 10 + (*text - '0');
    if (digits == 0 || digits > 3 || *text)
        return false;
    *ret_exponent = sign * value;
    return true;
}

static bool parse_suffix(const char *text, struct parts *parts)
{
    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        if (g_str_equal(text, suffixes[i].text)) {
            parts->power_of_10 += suffixes[i].power_of_10;
            parts->power_of_2 = suffixes[i].power_of_2;
            return true;
        }
    }
    int exponent;
    if (!parse_exponent(text, &exponent))
        return false;
    parts->power_of_10 += exponent;
    return true;
}

static bool parse_parts(const char *text, struct parts *ret_parts, GError **error)
{
    struct parts parts = {0};
    const char *p = text;

    if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
        return fail(error, GPULEDGER_ERROR_LIMIT, text, "is too long");
    parts.negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;

    int digits = 0, significant = 0;
    bool fraction = false;
    for (;; p++) {
        if (*p == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!g_ascii_isdigit(*p))
            break;
        digits++;
        /* Digits beyond these are below one, or the number does not fit. */
        if (significant == MANTISSA_DIGITS) {
            parts.cut |= *p != '0';
            parts.power_of_10 += !fraction;
            continue;
        }
        if (significant > 0 || *p != '0')
            significant++;
        parts.mantissa = parts.mantissa * 10 + (*p - '0');
        if (fraction)
            parts.power_of_10--;
    }
    if (digits == 0 || !parse_suffix(p, &parts))
        return fail(error, GPULEDGER_ERROR_INVALID, text,
                    "is not a number with an optional suffix such as k, M, Gi");
    if (parts.cut && parts.power_of_2 > 0) /* which might lift them above one */
        return fail(error, GPULEDGER_ERROR_RANGE, text, "has too many digits");
    *ret_parts = parts;
    return true;
}

/* The value times 10^scale; *ret_exact tells whether it had no remainder (else rounded up). */
static bool evaluate(const char *text, const struct parts *parts, int scale, int64_t *ret_value,
                     bool *ret_exact, GError **error)
{
    wide value = parts->mantissa;
    *ret_exact = !parts->cut;

    if (parts->negative && value != 0)
        return fail(error, GPULEDGER_ERROR_RANGE, text, "is negative");
    if (value == 0) {
        *ret_value = 0;
        return true;
    }
    value <<= parts->power_of_2;
    int power = parts->power_of_10 + scale;
    for (; power > 0 && value <= INT64_MAX; power--)
        value *= 10;
    for (; power < 0 && value > 0; power++) {
        if (value % 10 != 0)
            *ret_exact = false;
        value = value / 10;
    }
    if (!*ret_exact)
        value += 1;
    if (value > INT64_MAX)
        return fail(error, GPULEDGER_ERROR_RANGE, text, "is too large");
    *ret_value = (int64_t)value;
    return true;
}

bool quantity_parse(const char *text, int64_t *ret_units, GError **error)
{
    struct parts parts;
    int64_t value;
    bool exact;

    if (!parse_parts(text, &parts, error) ||
        !evaluate(text, &parts, 0, &value, &exact, error))
        return false;
    if (!exact)
        return fail(error, GPULEDGER_ERROR_INVALID, text, "is not a whole number");
    *ret_units = value;
    return true;
}

bool quantity_parse_thousandths(const char *text, int64_t *ret_thousandths, GError **error)
{
    struct parts parts;
    bool exact;

    return parse_parts(text, &parts, error) &&
           evaluate(text, &parts, 3, ret_thousandths, &exact, error);
}
