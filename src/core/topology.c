/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/links.h>
#include <gpuledger/mig.h>

struct topology *topology_new(void)
{
    return g_new0(struct topology, 1);
}

void topology_free(struct topology *topology)
{
    for (int32_t i = 0; topology && i < topology->n_cards; i++)
        mig_profiles_unref(topology->cards[i].mig);
    if (topology)
        links_unref(topology->links);
    if (topology && topology->strings)
        g_string_chunk_free(topology->strings);
    g_free(topology);
}

char *topology_keep(struct topology *topology, const char *text)
{
    if (!text)
        return NULL;
    if (!topology->strings)
        topology->strings = g_string_chunk_new(256);
    return g_string_chunk_insert(topology->strings, text);
}

/* Which of several node sides it is that does more is not said. */
enum isolation node_isolation(const struct node *node, const struct request *request)
{
    return node->n_dialects > 1 ? request->isolation : MAX(request->isolation, node->isolation);
}
