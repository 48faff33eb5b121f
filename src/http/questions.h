/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The routes that tell what would be: why a pod is where it is, how many fit, and which moves
 * make room. Each question
 * takes a copy of the ledger, so one is answered at a time (ROUTE_QUESTION).
 */
#include "http/routes.h"

void questions_fit(void *context, const struct http_request *request,
               struct http_response *response);
void questions_plan(void *context, const struct http_request *request,
                    struct http_response *response);
void questions_explain(void *context, const struct http_request *request,
                   struct http_response *response);
