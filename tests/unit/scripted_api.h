/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An API server with a script, and a client of it. */
#include "base/log.h"
#include "fake_server.h"
#include "kube/api_client.h"

#include <check.h>
#include <signal.h>

#define PATIENT_MS 30000 /* how long a test waits for what must come */

static struct fake_server *server;
static struct api_client *client;

static inline void api_begin(void)
{
    struct kube_config *config = g_new0(struct kube_config, 1);

    signal(SIGPIPE, SIG_IGN);
    log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
    server = fake_server_new();
    config->source = g_strdup("test");
    config->ns = g_strdup("default");
    config->server = g_strdup(fake_server_url(server));
    config->token = g_strdup("sesame");
    client = api_client_new(config, NULL);
    ck_assert(client);
}

static inline void api_end(void)
{
    api_client_free(client);
    fake_server_free(server);
}

static inline void script(const struct fake_reply *reply)
{
    fake_server_script(server, reply);
}

static inline void expect_requests(unsigned count)
{
    ck_assert_msg(fake_server_wait(server, count, PATIENT_MS), "%u of %u requests",
                  fake_server_count(server), count);
}
