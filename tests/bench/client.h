/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A blocking HTTP/1.1 client for loopback, cheap enough not to be what is measured: one
 * connection, kept alive, one write and few reads per call. Failures end the program. */
#include <glib.h>
#include <stdint.h>

struct client {
    int fd;
    GString *answer; /* the last one, head included */
    int status;      /* of the last one: 2xx or 503 */
};

void client_connect(struct client *client, uint16_t port);
void client_close(struct client *client);

/* A POST as it goes over the wire, to be sent many times. */
GString *client_prepare(const char *path, const char *body, size_t length);

/* Any request, in place of what `request` held. */
void client_write(GString *request, const char *method, const char *path, const char *body,
                  size_t length);

/* Microseconds from the first byte sent to the last one read. */
int64_t client_call(struct client *client, const GString *request);

/* The body of the last answer. */
const char *client_body(const struct client *client);
