/* SPDX-License-Identifier: Apache-2.0 */
#include "base/name_service.h"

void name_service_confine(void)
{
}
