/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * NO_PROXY, for a host that libcurl does not know by its name: what the variable names is reached without a
 * proxy. Hosts, domains with all below them, addresses, ranges of addresses (10.0.0.0/8), each with a port
 * or without; "*" is everything. As client-go reads it (golang.org/x/net/http/httpproxy).
 */
#include <stdbool.h>

/* `list` may be NULL; an IPv6 address as `host` has no brackets. */
bool no_proxy_names(const char *list, const char *host, int port);
