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

/* Who wants to know what the program sends, right before it does, and what it hears of it; both may be NULL. */
struct server_request;
struct net_watcher {
    void (*sent)(const struct server_request *request);
    void (*heard)(const struct server_request *request, long status,
                  const char *body); /* 0: nothing */
};
extern struct net_watcher net_watcher;
