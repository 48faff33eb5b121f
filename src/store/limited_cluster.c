/* SPDX-License-Identifier: Apache-2.0 */
#include "store/limited_cluster.h"

struct limited_cluster {
    struct cluster cluster;
    struct cluster_ops ops;
    struct cluster *inner;
    int64_t timeout_ms;
};

static int64_t nearer(const struct limited_cluster *limited, int64_t deadline_ms)
{
    return MIN(deadline_ms, g_get_monotonic_time() / 1000 + limited->timeout_ms);
}

static enum outcome limited_bind(struct cluster *cluster, const struct binding *binding,
                                 int64_t deadline_ms, GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->bind(limited->inner, binding, nearer(limited, deadline_ms), error);
}

static enum outcome limited_get_pod(struct cluster *cluster, struct json_arena *arena,
                                    const char *ns, const char *name, int64_t deadline_ms,
                                    struct pod_view *ret_pod, GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->get_pod(limited->inner, arena, ns, name,
                                        nearer(limited, deadline_ms), ret_pod, error);
}

static enum outcome limited_list_pods_on(struct cluster *cluster, struct json_arena *arena,
                                         const char *node, int64_t deadline_ms,
                                         struct pod_view **ret_pods, size_t *ret_n, GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->list_pods_on(limited->inner, arena, node,
                                             nearer(limited, deadline_ms), ret_pods, ret_n, error);
}

/* Long by nature, and ended by silence. */
static enum outcome limited_list(struct cluster *cluster, enum feed feed, struct store *store,
                                 GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->list(limited->inner, feed, store, error);
}

static enum outcome limited_annotate_pod(struct cluster *cluster,
                                         const struct pod_annotation *annotation,
                                         int64_t deadline_ms, GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->annotate_pod(limited->inner, annotation,
                                             nearer(limited, deadline_ms), error);
}

static enum outcome limited_get_node(struct cluster *cluster, struct json_arena *arena,
                                     const char *name, int64_t deadline_ms,
                                     struct node_view *ret_node, GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->get_node(limited->inner, arena, name,
                                         nearer(limited, deadline_ms), ret_node, error);
}

static enum outcome limited_annotate_node(struct cluster *cluster,
                                          const struct node_annotation *annotation,
                                          int64_t deadline_ms, GError **error)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    return limited->inner->ops->annotate_node(limited->inner, annotation,
                                              nearer(limited, deadline_ms), error);
}

static void limited_post_event(struct cluster *cluster, const struct pod_event *event)
{
    struct limited_cluster *limited = (struct limited_cluster *)cluster;
    limited->inner->ops->post_event(limited->inner, event);
}

struct cluster *limited_cluster_new(struct cluster *inner, int64_t timeout_ms)
{
    struct limited_cluster *limited = g_new0(struct limited_cluster, 1);
    limited->ops = (struct cluster_ops){
        .name = inner->ops->name,
        .bind = limited_bind,
        .get_pod = limited_get_pod,
        .list_pods_on = inner->ops->list_pods_on ? limited_list_pods_on : NULL,
        .list = limited_list,
        .annotate_pod = inner->ops->annotate_pod ? limited_annotate_pod : NULL,
        .get_node = inner->ops->get_node ? limited_get_node : NULL,
        .annotate_node = inner->ops->annotate_node ? limited_annotate_node : NULL,
        .post_event = inner->ops->post_event ? limited_post_event : NULL,
    };
    limited->cluster.ops = &limited->ops;
    limited->inner = inner;
    limited->timeout_ms = timeout_ms;
    return &limited->cluster;
}
