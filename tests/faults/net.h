/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The way to the API server, and all that goes wrong on it: in place of libcurl (--wrap), under the
 * program's own client, reflectors and credentials. What befalls a request is for faults.h to say.
 */
#include <stdbool.h>
#include <stdint.h>

void net_reset(void);
/* The program is no more. What it has sent is carried out at once, or never. */
void net_crash(void);
/* Watches hear of what has changed, some later than others. */
void net_tell(void);

uint64_t net_told(void);
