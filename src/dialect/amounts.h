/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Amounts of resources, as rows of the table read them from nodes and containers. A resource that is not
 * named, and one that is NULL (a row that has none of the kind), is an amount of 0.
 */
#include <gpuledger/dialect.h>
#include <gpuledger/error.h>

/* The container's amount; 0 also for one that cannot be read: who is asked for all of a pod
 * (dialect_read_allocation) makes up for that. */
int64_t amount_or_none(const struct container_view *container, const char *resource);

/* The same of a node's capacity or allocatable, or of a container's limits. */
int64_t listed_or_none(const struct string_pairs *pairs, const char *resource);

/* Whether the text asks for something: 0 does not, in any notation. What cannot be read does. */
bool amount_asks(const char *text);

/* The error names the container, or the node and its capacity, and the resource. */
bool read_container_amount(const struct container_view *container, const char *resource,
                           int64_t *ret_amount, GError **error);
/* Of a node whose number of cards is not from 1 to NODE_CARDS_MAX: too many are for a limit of ours. */
static inline enum gpuledger_error cards_error(int64_t cards)
{
    return cards > NODE_CARDS_MAX ? GPULEDGER_ERROR_LIMIT : GPULEDGER_ERROR_RANGE;
}

bool read_capacity(const struct node_view *view, const char *resource, int64_t *ret_amount,
                   GError **error);
