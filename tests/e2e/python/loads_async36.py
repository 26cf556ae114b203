# SPDX-License-Identifier: Apache-2.0
"""Asynchronous generators and comprehensions: Python 3.6 on."""
import asyncio


async def ticking(n):
    for i in range(n):
        if i % 5 == 0:
            await asyncio.sleep(0)
        yield i * 2


async def doubled(source):
    async for x in source:
        yield x * 2


async def summed(n):
    total = 0
    async for x in doubled(ticking(n)):
        total += x
    values = [x + 1 async for x in ticking(n)]
    return total + sum(values)
