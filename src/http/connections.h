/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The connections of one server: who gets in, who has to leave for a newcomer, and how long a
 * client may take for anything. libmicrohttpd counts connections and knows an idle time; a client
 * that sends a byte now and then, or opens a thousand connections and says nothing, is held off
 * here.
 *
 * A full server makes room for a newcomer by cutting one connection, chosen in this order:
 *   1. of a client (an IPv4 address, an IPv6 /64) that has more than a quarter of all places;
 *   2. that has had time to make a call and never did;
 *   3. that has been waiting for its client the longest.
 * A connection whose request is being handled is never cut. If all are, newcomers wait in the
 * queue of the listening socket. kube-scheduler's connections, few and in use, are last in line.
 *
 * Cutting is shutdown(2): the connection's own thread, or the library's, sees the end and cleans
 * up. Any thread.
 */
#include "base/metrics.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum connection_state {
    CONNECTION_HANDSHAKE, /* TLS */
    CONNECTION_IDLE,      /* nothing of a request has arrived */
    CONNECTION_RECEIVING, /* from the first byte of a request's head to the last of its body */
    CONNECTION_HANDLING,
    CONNECTION_SENDING,
    CONNECTION_STATE_N
};

struct connections_limits {
    unsigned max;                         /* connections */
    int64_t grace_us;                     /* for the first call */
    int64_t limit_us[CONNECTION_STATE_N]; /* for the state as a whole; 0: as long as it takes */
};

struct connections;
struct connection;

struct connections *connections_new(const struct connections_limits *limits);
/* All connections must have been removed. */
void connections_free(struct connections *connections);

/* Waits up to `timeout_ms` for a place, cutting connections if it must; false: there is none. */
bool connections_make_room(struct connections *connections, int64_t timeout_ms);

/* Takes a place; `first` is the state it begins in. From here to connection_remove the caller
 * keeps the descriptor open. */
struct connection *connections_add(struct connections *connections, int fd,
                                   const struct sockaddr *peer, enum connection_state first);
void connection_remove(struct connection *connection);

/* The connection of a descriptor, or NULL. */
struct connection *connections_find(struct connections *connections, int fd);

unsigned connections_count(struct connections *connections);

void connection_enter(struct connection *connection, enum connection_state state);

/* The same as entering CONNECTION_SENDING, with an answer that takes so much memory until the next
 * state. */
void connection_send(struct connection *connection, size_t held);

/* Cuts, for an answer of `taker`, the connection that has been sending one that takes memory for the
 * longest, if there is any. */
void connections_cut_slowest(const struct connection *taker);

/* Cuts those whose time is over. To be called about every connections_watch_ms. */
void connections_watch(struct connections *connections);
int64_t connections_watch_ms(const struct connections *connections);

/* --- what a connection holds ------------------------------------------------------------------
 */

/* Lets a connection that is receiving say what it can give up. `give_up` is called at most once,
 * from any thread, never after connection_keep. It must not call back into this module. */
void connection_offer(struct connection *connection, void (*give_up)(void *data), void *data);
void connection_keep(struct connection *connection);

/* Makes the connection that has been receiving the longest give up what it offers, for `taker`;
 * false: there is none, or with `only_older` none that began before `taker`. */
bool connections_reclaim(struct connections *connections, const struct connection *taker,
                         bool only_older);
