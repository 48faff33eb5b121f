/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of maintain/plans/plan_service.h. */
#include "core/section/section.h"

struct plans_settings {
    bool on;
};
SECTION_ROW(plans, 510);
