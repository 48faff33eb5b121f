/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/request.h>
#include <gpuledger/terms.h>

static size_t request_size(size_t n_asks)
{
    return sizeof(struct request) + n_asks * sizeof(struct card_ask);
}

struct request *request_new(const struct dialect *dialect, size_t n_asks)
{
    g_assert(n_asks <= REQUEST_ASKS_MAX);
    struct request *request = g_malloc0(request_size(n_asks));
    request->dialect = dialect;
    request->n_asks = (uint32_t)n_asks;
    return request;
}

struct request *request_dup(const struct request *request)
{
    struct request *copy = g_memdup2(request, request_size(request->n_asks));

    terms_ref(copy->terms);
    if (copy->alternative)
        copy->alternative = request_dup(copy->alternative);
    return copy;
}

void request_free(struct request *request)
{
    while (request) {
        struct request *next = request->alternative;
        terms_unref(request->terms);
        g_free(request);
        request = next;
    }
}
