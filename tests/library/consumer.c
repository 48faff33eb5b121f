/* SPDX-License-Identifier: Apache-2.0 */
/* Another program that places a pod on a node of two cards, with what is installed and no more. */
#include <gpuledger/dialect.h>
#include <stdio.h>

#define PAIRS(n, ...) {(const struct string_pair[]){__VA_ARGS__}, n}

int main(void)
{
    const struct node_view node = {
        .name = "n1",
        .capacity = PAIRS(2, {"aliyun.com/gpu-mem", "30"}, {"aliyun.com/gpu-count", "2"}),
    };
    const struct container_view container = {
        .name = "main", .limits = PAIRS(1, {"aliyun.com/gpu-mem", "6"})};
    const struct pod_view pod = {.containers = &container, .n_containers = 1};
    const struct dialect_options options = {0};
    struct topology topology = {0};
    struct placement placement;
    enum reason reason;
    g_autoptr(GError) error = NULL;
    g_autoptr(ledger) ledger = ledger_new();
    g_autoptr(request) request = dialect_read_request(&pod, &options, &error);

    if (!request || !dialect_read_topology(&node, &options, &topology, NULL, &error))
        return 1;
    const struct admission_query query = {.request = request,
                                          .policy = policy_find("spread"),
                                          .options = &options};
    for (int i = 0; i < 6; i++) {
        g_autofree char *uid = g_strdup_printf("pod-%d", i);
        const struct node *shared = ledger_set_topology(ledger, "n1", &topology);
        if (dialect_admit(shared, &query, &placement, &reason) != ADMISSION_YES) {
            printf("%s: %s\n", uid, reason_info(reason)->text);
            continue;
        }
        struct allocation *allocation = allocation_new(uid, "ml", uid, 1);
        allocation->dialect = placement.request->dialect;
        allocation->shares[0] = placement.shares[0];
        ledger_reserve(ledger, "n1", allocation, &reason);
        printf("%s: card %d\n", uid, placement.shares[0].card);
    }
    return ledger_verify(ledger, &error) ? 0 : 1;
}
