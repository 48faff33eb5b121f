/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The way to the API server, and all that goes wrong on it: in place of libcurl (--wrap), under the
 * program's own client, reflectors and credentials. What befalls a request is drawn from a table.
 */
#include <stdbool.h>
#include <stdint.h>

/* Of a hundred requests that many go wrong; 0 also ends all dawdling. */
void net_set_trouble(unsigned percent);
void net_reset(void);
/* Watches hear of what has changed, some later than others. */
void net_tell(void);

#define FAULTS_MAX 32
/* How often what befell a request; NULL at the end. */
const char *net_fault(unsigned i, uint64_t *ret_count);
uint64_t net_told(void);
