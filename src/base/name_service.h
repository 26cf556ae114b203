/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/**
 * name_service_confine - users and hosts are looked up in files and by DNS only; before any other thread runs
 *
 * For the static build: glibc would load modules that nsswitch.conf of the machine names (systemd, sss, mdns), made for
 * the glibc of that machine, and crash. A shared build is left as the machine wants it.
 */
void name_service_confine(void);
