from __future__ import annotations

import anyio
from trio.testing import MockClock

from pulsarium.client.consumer.acknowledgements import AckGroup
from pulsarium.proto.generated import PulsarApi_pb2 as pb

DELAY = 0.5
MOST = 20


def entry(number: int) -> pb.MessageIdData:
    return pb.MessageIdData(ledgerId=1, entryId=number)


class Sent:
    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.connected = True

    def send(self, ids: list[pb.MessageIdData]) -> bool:
        if self.connected:
            self.groups.append([one.entryId for one in ids])
        return self.connected


async def test_what_comes_together_goes_together(autojump_clock: MockClock) -> None:
    sent = Sent()
    async with anyio.create_task_group() as tasks:
        group = AckGroup(tasks, sent.send, DELAY, MOST)
        for number in range(3):
            group.add(entry(number))
        await anyio.sleep(DELAY / 2)
        assert sent.groups == []
        await anyio.sleep(DELAY)
        assert sent.groups == [[0, 1, 2]]
        group.add(entry(3))
        group.flush()
        assert sent.groups == [[0, 1, 2], [3]]
    assert len(sent.groups) == 2  # and no task is left


async def test_a_full_group_does_not_wait(autojump_clock: MockClock) -> None:
    sent = Sent()
    async with anyio.create_task_group() as tasks:
        group = AckGroup(tasks, sent.send, DELAY, MOST)
        for number in range(MOST + 1):
            group.add(entry(number))
        assert sent.groups == [list(range(MOST))]
    assert sent.groups[1:] == [[MOST]]


async def test_without_a_connection_they_are_kept(autojump_clock: MockClock) -> None:
    sent = Sent()
    sent.connected = False
    async with anyio.create_task_group() as tasks:
        group = AckGroup(tasks, sent.send, DELAY, MOST)
        group.add(entry(0))
        await anyio.sleep(1)
        group.add(entry(1))
        assert [one.entryId for one in group.take()] == [0, 1]
        group.close()
    assert sent.groups == []


async def test_without_a_delay_each_goes_at_once(autojump_clock: MockClock) -> None:
    sent = Sent()
    async with anyio.create_task_group() as tasks:
        group = AckGroup(tasks, sent.send, 0)
        for number in range(3):
            group.add(entry(number))
        assert sent.groups == [[0], [1], [2]]
