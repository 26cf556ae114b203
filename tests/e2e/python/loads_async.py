# SPDX-License-Identifier: Apache-2.0
"""asyncio: tasks, coroutines that wait for each other, async for and with (Python 3.5 on; 3.6 for asynchronous generators)."""
import asyncio
import sys


async def leaf(n):
    total = 0
    for i in range(n):
        total += i ^ n
    await asyncio.sleep(0)
    for i in range(n):
        total -= i
    return total


async def middle(n):
    value = await leaf(n)
    value += await leaf(n // 2)
    return value


class Context:
    async def __aenter__(self):
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *exception):
        await asyncio.sleep(0)
        return False


class Counter:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        self.n -= 1
        if self.n < 0:
            raise StopAsyncIteration
        return self.n


async def counted(n):
    total = 0
    async for i in Counter(n):
        total += i
    async with Context():
        total += await middle(n)
    return total


async def user(n, future):
    value = await counted(n)
    if n == 20:
        future.set_result(value)
    return value + await future


def called(counts):
    counts.append(sum(range(30)))


async def everything(loop):
    future = loop.create_future() if hasattr(loop, "create_future") else asyncio.Future()
    counts = []
    for _ in range(5):
        loop.call_soon(called, counts)
    values = await asyncio.gather(*[user(n, future) for n in (5, 10, 15, 20)])
    return sum(values) + len(counts)


if sys.version_info >= (3, 6):
    import loads_async36 as generators
else:
    generators = None

LOOP = asyncio.new_event_loop()


def round_async():
    LOOP.run_until_complete(everything(LOOP))
    if generators:
        LOOP.run_until_complete(generators.summed(20))
