/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/error.h>

/* G_DEFINE_QUARK remembers the number in a variable that threads would write at the same time. */
GQuark gpuledger_error_quark(void)
{
    return g_quark_from_static_string("gpuledger-error-quark");
}
