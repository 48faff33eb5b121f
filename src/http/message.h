/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The library's side of requests and answers (http/server.h). The thread that handles the request.
 */
#include "http/server.h"

#include <microhttpd.h>

enum response_flag {
    RESPONSE_ERROR_BODY = 1 << 0, /* errors get a body */
    RESPONSE_CLOSE = 1 << 1,      /* it is the connection's last */
};

/* Queues the answer and empties it. */
enum MHD_Result response_send(struct http_response *response, struct MHD_Connection *connection,
                              unsigned flags);
