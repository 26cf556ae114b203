/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define DEEP_FUNCTIONS 33 /* f01 .. f32 and main */
