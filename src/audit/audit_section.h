/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of audit/auditor.h, and whether Events are written (kube/events.h). */
#include "core/section/section.h"

struct audit_settings {
    int64_t interval_ms; /* 0: only when asked */
    bool events;
};
SECTION_ROW(audit, 530);
