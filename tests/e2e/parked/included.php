<?php
// SPDX-License-Identifier: Apache-2.0

(new Shop)->anything();
