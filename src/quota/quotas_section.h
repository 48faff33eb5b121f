/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of quota/quotas.h, quota/resource_quotas.h and quota/elastic/elastic_quotas.h. */
#include "core/section/section.h"

struct quotas_settings {
    const char *model_label; /* "": there are no quotas by models */
    const char *pool_label;
    bool hami; /* ResourceQuotas with HAMi's keys */
    bool elastic;
    const char *tree_namespaces;
};
SECTION_ROW(quotas, 320);
