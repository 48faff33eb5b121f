/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Prepares libcurl handles to talk to one API server: address, TLS, proxy, credentials, the
 * headers that every request carries. HTTP/1.1 with kept connections, one request at a time on
 * each; redirects are not followed. SIGPIPE must be ignored by the process.
 *
 * Threads: any; a handle belongs to one at a time.
 */
#include "kube/credentials.h"

#include <curl/curl.h>
#include <stddef.h>

struct transport;

/* Borrows the configuration. An error if its server is no URL. */
struct transport *transport_new(const struct kube_config *config, GError **error);
void transport_free(struct transport *transport);

/* "https://host:6443", for messages. */
const char *transport_server(const struct transport *transport);

struct transport_request {
    const char *method;
    const char *path; /* with query, escaped; starts with a slash */
    const char *body; /* JSON, or NULL; of a PATCH a merge patch (RFC 7386) */
    size_t body_length;
    bool apply;      /* of a PATCH: what is to be there, by server-side apply */
    bool compressed; /* accept gzip */
    /* The API server is told to give up after that long, too; 0: it is not. Its own limit, a minute
     * unless configured, holds as well. */
    int64_t server_timeout_ms;
    int64_t connect_timeout_ms;
    /* A connection that is given up takes what it has not delivered with it. Otherwise the kernel goes on
     * trying to deliver it for minutes. */
    bool drops;
    char *message; /* CURL_ERROR_SIZE bytes that live as long as the transfer */
};

/* Resets the handle (its connections stay) and sets all but where the reply goes. The returned
 * list must be freed (curl_slist_free_all) after the transfer. */
struct curl_slist *transport_prepare(const struct transport *transport, CURL *handle,
                                     const struct transport_request *request,
                                     const struct credential *credential);

/* What the API server asks us to wait, by header; 0 if nothing. */
int64_t transport_retry_after_ms(CURL *handle);

/* Sets the error for a reply with a status other than 2xx: the text of its Status object if it is
 * one, and a code that fits. Returns the Status' own retryAfterSeconds in milliseconds. */
int64_t transport_status_error(const struct transport_request *request, long status,
                               const char *body, size_t length, GError **error);

/* Part of a path: escaped, and refused (NULL) where it could lead to another place ("", "..",
 * a slash). `what` is for the message. */
char *transport_escape(const char *name, const char *what, GError **error);
