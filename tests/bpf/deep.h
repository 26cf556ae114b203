/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#define DEEP_BIG 40960    /* bytes at least of the stack below main */
#define DEEP_FUNCTIONS 33 /* f01 .. f32 and main */
