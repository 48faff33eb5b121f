/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/amounts.h"

#include "core/fail.h"

#include <gpuledger/quantity.h>

static int64_t parse_or_none(const char *text)
{
    int64_t amount;

    return text && quantity_parse(text, &amount, NULL) ? amount : 0;
}

bool amount_asks(const char *text)
{
    int64_t amount;

    return text && (!quantity_parse(text, &amount, NULL) || amount != 0);
}

int64_t amount_or_none(const struct container_view *container, const char *resource)
{
    return parse_or_none(container_view_amount(container, resource));
}

int64_t listed_or_none(const struct string_pairs *pairs, const char *resource)
{
    return parse_or_none(string_pairs_get(pairs, resource));
}

bool read_container_amount(const struct container_view *container, const char *resource,
                           int64_t *ret_amount, GError **error)
{
    const char *text = resource ? container_view_amount(container, resource) : NULL;

    *ret_amount = 0;
    if (!text || quantity_parse(text, ret_amount, error))
        return true;
    return fail_within(error, "container '%s': %s: ", container->name, resource);
}

bool read_capacity(const struct node_view *view, const char *resource, int64_t *ret_amount,
                   GError **error)
{
    const char *text = resource ? string_pairs_get(&view->capacity, resource) : NULL;

    *ret_amount = 0;
    if (!text || quantity_parse(text, ret_amount, error))
        return true;
    return fail_within(error, "node '%s': capacity %s: ", view->name, resource);
}
