/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <check.h>
#include <stdlib.h>

/* Runs the suite as the environment says (CK_FORK, CK_VERBOSITY, CK_TAP_LOG_FILE_NAME). What main
 * returns. */
static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
