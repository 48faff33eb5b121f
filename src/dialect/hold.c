/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/hold.h"

#include "dialect/warning.h"

#include <string.h>

struct allocation *dialect_hold(const struct dialect *dialect, const struct pod_view *view,
                                const GArray *shares)
{
    struct allocation *allocation = allocation_new(view->uid, view->ns, view->name, shares->len);

    allocation->dialect = dialect;
    allocation->assigned = view->started;
    memcpy(allocation->shares, shares->data, shares->len * sizeof(struct share));
    return allocation;
}

struct allocation *dialect_hold_all(const struct dialect *dialect, const struct pod_view *view,
                                    bool devices, char *take_why, char **ret_warning)
{
    struct allocation *allocation =
        allocation_new(view->uid, view->ns, view->name, devices ? 2 : 1);

    warn(ret_warning, take_why);
    allocation->dialect = dialect;
    allocation->distrust = DISTRUST_UNREAD;
    allocation->assigned = view->started;
    allocation->shares[0] = (struct share){
        .memory = {1000, AMOUNT_THOUSANDTHS},
        .container = CONTAINER_POD,
        .card = CARD_UNKNOWN,
        .core = CORE_WHOLE,
        .exclusive = true,
    };
    if (devices)
        allocation->shares[1] = (struct share){.container = CONTAINER_POD, .card = CARD_UNKNOWN,
                                               .device = DEVICE_ALL};
    return allocation;
}

struct allocation *dialect_hold_many(const struct dialect *dialect, const struct pod_view *view,
                                     char **ret_warning)
{
    return dialect_hold_all(
        dialect, view, false,
        g_strdup_printf("holds more than %d shares of GPUs, or several kinds, which are not told apart",
                        REQUEST_ASKS_MAX),
        ret_warning);
}
