# SPDX-License-Identifier: Apache-2.0
"""Works for some seconds under Pyroscope's own SDK, which sends what it saw: pyroscope_sdk.py URL SECONDS"""
import sys
import time

import pyroscope


def known_leaf(n):
    return sum(i * i % 7 for i in range(n))


pyroscope.configure(application_name="python.shop", server_address=sys.argv[1], tags={"region": "eu"}, upload_interval=2)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    with pyroscope.tag_wrapper({"order": "large"}):
        known_leaf(300000)
    with pyroscope.tag_wrapper({"order": "small"}):
        known_leaf(100000)
pyroscope.shutdown()
