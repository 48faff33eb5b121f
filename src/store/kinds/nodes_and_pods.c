/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and pods. Pods that have ended are read, too: kubelet may have rejected them, and some plugins hand out
 * what they were promised all the same (docs/design/promises.md). */
#include "store/kinds/kind.h"

KIND_ROW(nodes, 0);
KIND_ROW(pods, 1);

KIND_VIEW(node);
KIND_VIEW(pod);

const struct kind kind_nodes = {
    KIND_NAME("node"), .feed = "nodes",  .resource = "nodes",
    .kind = "Node",    .api = "/api/v1", KIND_OF_VIEW(node),
};

const struct kind kind_pods = {
    KIND_NAME("pod"), .feed = "pods",   .resource = "pods",
    .kind = "Pod",    .api = "/api/v1", KIND_OF_VIEW(pod),
};
