/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which path does what: a table per listener, from which requests are dispatched and the index
 * page is written. Everything about a route stands in its row.
 *
 * Paths are matched by their parts, so a slash too many (a verb configured as "/filter") or at
 * the end changes nothing. HEAD is served where GET is. Any thread.
 */
#include "audit/auditor.h"
#include "verbs/extender.h"
#include "http/server.h"

#define ROUTES_MAX 32

struct bearer;

enum route_flag {
    ROUTE_OPEN = 1 << 0,   /* needs no token */
    ROUTE_TAGGED = 1 << 1, /* its answers have an ETag, and are 304 for who has them */
    /* The handler may take long, or make much of little, see http/outgoing.h: */
    ROUTE_VIEW = 1 << 2,     /* a large one waits for its turn */
    ROUTE_QUESTION = 1 << 3, /* always waits for its turn */
    ROUTE_WAITS = 1 << 4,    /* for something outside; request->crowded where too many do */
    ROUTE_MANIFEST = 1 << 5, /* what is sent may be YAML */
};

struct route {
    const char *method;
    const char *pattern;      /* "/api/v1/nodes/{name}": a part in braces matches any one part */
    const char *content_type; /* of the answer */
    void (*handler)(void *context, const struct http_request *request,
                    struct http_response *response);
    const char *help;
    unsigned flags; /* enum route_flag */
};

/* One listener's routes; the `data` of routes_handle. */
struct routes {
    const struct route *rows; /* ends with a row whose method is NULL */
    void *context;            /* what the rows' handlers expect, see below */
    struct bearer *bearer;    /* whose token callers must show, or NULL */
    unsigned waits_max;       /* requests of ROUTE_WAITS at a time; 0: as many as like */
    bool no_browser;          /* none calls here (http/doors.h) */
    bool compresses;          /* answers, for clients that take it (http/gzip.h) */
    const char *hosts;        /* without a token, names that callers may use; NULL: any */
    gint waits;               /* atomic; of them, how many there are */
    gint sizes[ROUTES_MAX];   /* atomic; of each row's last answer, to tell a large view from a small */
};

/* A server_handler: 404, 405 with Allow, 415, or the handler of the row that matches. Without the token
 * it is 401 for all but open routes, whether they exist or not, and 403 for what may be a web page's. */
void routes_handle(void *data, struct http_request *request, struct http_response *response);

/* A part of the path by its name in the pattern, which must be one of them. */
const char *http_request_param(const struct http_request *request, const char *name);

/* The status that says most about an error. */
unsigned http_error_status(const GError *error);

/* What kube-scheduler and the Aliyun command-line tool call; the context is a struct extender. */
extern const struct route scheduler_routes[];

/* Changes to an embedded cluster. Errors' codes become statuses (http/operations.c). */
struct snapshot_hooks {
    void *data;
    /* Adds the Pod of the JSON in `body`; appends it as it then is. */
    bool (*add_pod)(void *data, const char *body, size_t length, GString *reply, GError **error);
    bool (*delete_pod)(void *data, const char *ns, const char *name, GError **error);
};

/* This process as one of several replicas. Both are conditions of being ready; false sets why, for
 * people (g_free). */
struct replica_hooks {
    void *data;
    bool (*is_elected)(void *data, char **ret_why);
    /* Whether its pod's label cannot mislead anybody who selects by it. */
    bool (*is_labelled)(void *data, char **ret_why);
};

/* The context of operations_routes; all borrowed. */
struct operations {
    struct extender *extender;
    const struct snapshot_hooks *snapshot; /* NULL: the cluster is a real one */
    const struct replica_hooks *replica;   /* NULL: it is the only one */
    struct auditor *auditor;
    struct permits *permits; /* NULL: no capability that evicts pods is on */
    bool pod_metrics; /* what each container was granted is among the metrics */
    int64_t card_metrics_max; /* of more cards than this the metrics tell sums only */
};

/* Probes, metrics and what people look at. */
extern const struct route operations_routes[];
