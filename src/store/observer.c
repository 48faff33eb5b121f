/* SPDX-License-Identifier: Apache-2.0 */
#include "store/observer.h"

uint64_t observer_number(struct observer *observer)
{
    return observer ? observer->number(observer) : 0;
}

void observer_tell(struct observer *observer, const struct observation *observation)
{
    if (observation->number > 0)
        observer->tell(observer, observation);
}
