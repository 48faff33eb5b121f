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

static bool ask_equal(const struct card_ask *a, const struct card_ask *b)
{
    return a->memory.value == b->memory.value && a->memory.kind == b->memory.kind &&
           a->container == b->container && a->count == b->count && a->core == b->core &&
           a->exclusive == b->exclusive && a->init == b->init && a->sidecar == b->sidecar &&
           a->unlimited == b->unlimited && a->part.value == b->part.value &&
           a->part.kind == b->part.kind && g_strcmp0(a->device, b->device) == 0;
}

bool request_equal(const struct request *a, const struct request *b)
{
    if (a->dialect != b->dialect || a->traits != b->traits || a->isolation != b->isolation ||
        a->n_asks != b->n_asks || !host_equal(&a->host, &b->host) ||
        a->match_amount != b->match_amount || a->lasts_s != b->lasts_s ||
        a->annotations != b->annotations)
        return false;
    for (uint32_t i = 0; i < a->n_asks; i++) {
        if (!ask_equal(&a->asks[i], &b->asks[i]))
            return false;
    }
    if (!terms_equal(a->terms, b->terms) || !a->alternative != !b->alternative)
        return false;
    return !a->alternative || request_equal(a->alternative, b->alternative);
}
