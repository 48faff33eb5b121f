/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects of kinds by their views, as a watch would tell the store of them. */
#include "store/kinds/kind.h"
#include "wire/budget.h"
#include "wire/pod_group.h"
#include "wire/resource_quota.h"

static inline void store_drop_object(struct store *store, enum feed feed, const char *ns,
                                     const char *name)
{
    store_remove_object(store, feed, &(struct object_name){ns, name});
}

static inline void store_put_configmap(struct store *store, const struct configmap_view *view)
{
    store_apply_object(store, FEED_CONFIGMAPS, view);
}

static inline void store_drop_configmap(struct store *store, const struct configmap_view *view)
{
    store_drop_object(store, FEED_CONFIGMAPS, view->ns, view->name);
}

static inline void store_put_budget(struct store *store, const struct budget_view *view)
{
    store_apply_object(store, FEED_BUDGETS, view);
}

static inline void store_drop_budget(struct store *store, const char *ns, const char *name)
{
    store_drop_object(store, FEED_BUDGETS, ns, name);
}

static inline enum feed feed_of_quota(const struct resource_quota_view *view)
{
    return view->elastic ? FEED_ELASTIC_QUOTAS : FEED_RESOURCE_QUOTAS;
}

static inline void store_put_quota(struct store *store, const struct resource_quota_view *view)
{
    store_apply_object(store, feed_of_quota(view), view);
}

static inline void store_drop_quota(struct store *store, const struct resource_quota_view *view)
{
    store_drop_object(store, feed_of_quota(view), view->ns, view->name);
}

static inline enum feed feed_of_group(const struct pod_group_view *view)
{
    return view->native ? FEED_NATIVE_POD_GROUPS : FEED_POD_GROUPS;
}

static inline void store_put_group(struct store *store, const struct pod_group_view *view)
{
    store_apply_object(store, feed_of_group(view), view);
}

static inline void store_drop_group(struct store *store, const struct pod_group_view *view)
{
    store_drop_object(store, feed_of_group(view), view->ns, view->name);
}
