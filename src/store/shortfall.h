/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a pod lacks on a node of that which kube-scheduler adds up: what it asks for, less what is
 * left of what the node may give. Thousandths, as in struct pod_facts.
 */
#include "policy/victims/victims.h"

/* The roster is of all who hold cards of the node. In the order of struct victims_query.lacks, which has that many. INT64_MAX: nobody knows, as where pods
 * hold something of which nothing is kept. */
void shortfall_measure(const struct node *node, const struct roster *roster,
                       const struct request *request, const struct pod_facts *asked,
                       int64_t ret_lacks[VICTIM_AMOUNTS_MAX]);
