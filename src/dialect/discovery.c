/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/discovery.h"

#define MAJOR_MAX 9999
#define MINOR_MAX 99

/* -1: there is no such label, or it is no number. */
static int32_t read_number(const struct node_view *view, const char *label, guint64 max)
{
    const char *text = string_pairs_get(&view->labels, label);
    guint64 value;

    return text && g_ascii_string_to_unsigned(text, 10, 0, max, &value, NULL) ? (int32_t)value : -1;
}

void discovery_apply(const struct node_view *view, struct topology *topology)
{
    const char *product = string_pairs_get(&view->labels, "nvidia.com/gpu.product");
    const int32_t major = read_number(view, "nvidia.com/gpu.compute.major", MAJOR_MAX);
    const int32_t minor = read_number(view, "nvidia.com/gpu.compute.minor", MINOR_MAX);
    int32_t driver = read_number(view, "nvidia.com/cuda.driver-version.major", MAJOR_MAX);

    if (driver < 0) /* its older name */
        driver = read_number(view, "nvidia.com/cuda.driver.major", MAJOR_MAX);
    if (topology->driver == 0)
        topology->driver = MAX(driver, 0);
    if (topology->compute == 0 && major >= 0)
        topology->compute = 100 * major + MAX(minor, 0);
    for (int32_t i = 0; product && i < topology->n_cards; i++) {
        if (!topology->cards[i].model)
            topology->cards[i].model = topology_keep(topology, product);
    }
}
