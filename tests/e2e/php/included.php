<?php
// SPDX-License-Identifier: Apache-2.0
return spin(20) + fib(6);
