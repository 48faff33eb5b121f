/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What bound pods hold, for rows of the table, pods included that hold everything because nobody can
 * say what they hold.
 */
#include <gpuledger/dialect.h>

/* These shares (GArray of struct share), for dialects that are only counted: their pods have their
 * cards once kubelet has started them. */
struct allocation *dialect_hold(const struct dialect *dialect, const struct pod_view *view,
                                const GArray *shares);

/* Every card to itself, and, if `devices`, every device of every pool. `take_why` is for people. */
struct allocation *dialect_hold_all(const struct dialect *dialect, const struct pod_view *view,
                                    bool devices, char *take_why, char **ret_warning);

/* The same for more shares of cards than REQUEST_ASKS_MAX, which are not told apart. */
struct allocation *dialect_hold_many(const struct dialect *dialect, const struct pod_view *view,
                                     char **ret_warning);

/* Whether the node side has yet to say which cards the pod has. */
bool dialect_is_open(const struct allocation *known);
