/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was built. Both are constants of the build; any thread.
 */

/* The project's version as Meson has it: "0.1.0". */
extern const char version_text[];

/* The commit that was built, abbreviated; "unknown" outside a Git checkout. */
extern const char version_commit[];
