/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a request's head leaves in distrust where its body ends, or whom it is for, libmicrohttpd
 * makes a choice. Another program in between may make another, and then a part of one request is
 * a request of somebody else's. Such heads are refused, as RFC 9112 wants it, and the connection
 * closed.
 */
#include <microhttpd.h>

/* The status to refuse it with, 0 for a good one; why is `ret_why`, a constant. */
unsigned head_fault(struct MHD_Connection *connection, const char *version, const char **ret_why);

/* For MHD_OPTION_UNESCAPE_CALLBACK: what holds a NUL is left as it came, and is no path of ours. */
size_t head_unescape(void *data, struct MHD_Connection *connection, char *text);
