/* SPDX-License-Identifier: Apache-2.0 */
/* Is a program made with Electron? Each has a name of its own (code, slack), and its V8 has none of the constants by
 * which Node.js is known; what lies beside the program tells. */
#pragma once

#include "base/str.h"

/**
 * electron_beside - do files beside the program say that it is Electron's?
 * @root_fd: root directory of the process
 * @exe: path of the program, as /proc/PID/exe has it
 *
 * Looks for at most four regular files below @root_fd: icudtl.dat, and where an Electron program has its own code.
 * Source: Electron, docs/tutorial/application-distribution.md.
 */
bool electron_beside(int root_fd, struct str exe);
