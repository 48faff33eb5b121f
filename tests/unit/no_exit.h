/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Linked in the place of _exit: a thread other than the first that calls it ends alone, and a test goes on. */

/* Waits for that, and returns the exit status. Any thread. */
int no_exit_await(void);
