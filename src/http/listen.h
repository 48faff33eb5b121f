/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Listening sockets. Any thread.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* A non-blocking listening socket, or -1. "" listens on all addresses of both families, as "::"
 * does, where the host has IPv6. Errors are GPULEDGER_ERROR_IO and name the address. */
int listen_open(const char *host, uint16_t port, GError **error);

/* The port of a listening socket. */
uint16_t listen_port(int fd);

/* Whether only this machine reaches it. */
bool listen_is_local(int fd);
