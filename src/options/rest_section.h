/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options whose capability has no section of its own yet: their values are in struct config. */
#include "core/section/section.h"

SECTION_ROW(cluster, 100);
SECTION_ROW(running, 500);
SECTION_ROW(client, 800);
SECTION_ROW(maintenance, 810);
SECTION_ROW(simulate, 820);
SECTION_ROW(certs, 830);
SECTION_ROW(general, 900);
