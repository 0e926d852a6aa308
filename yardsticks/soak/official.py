"""Process of loads like `worker`, with the official Python client: streams on three subscription types.

The clients come and go.
"""

from __future__ import annotations

import random
import struct
import sys
import time
from collections.abc import Callable

import pulsar

from .account import Account, tell

TYPES = (pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Shared, pulsar.ConsumerType.KeyShared)
NUMBER = struct.Struct(">QI")
LANES = 10
SUBSCRIPTION = "soak"
QUIET_MS = 1000
SETTLE_SECONDS = 60.0
QUIET_LOG = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)


class Stream:
    """A topic whose client publishes a burst of messages, receives all of them, and is replaced now and then."""

    def __init__(self, service_url: str, topic: str, kind: pulsar.ConsumerType, chance: random.Random) -> None:
        self._service_url = service_url
        self._topic = topic
        self._kind = kind
        self._chance = chance
        self._next = 0
        self.account = Account(topic, ordered=kind != pulsar.ConsumerType.Shared)
        self._open()

    def _open(self) -> None:
        self._client = pulsar.Client(self._service_url, logger=QUIET_LOG)
        self._consumer = self._client.subscribe(
            self._topic, SUBSCRIPTION, self._kind, initial_position=pulsar.InitialPosition.Earliest
        )
        self._producer = self._client.create_producer(
            self._topic, batching_enabled=self._chance.random() < 0.5, batching_type=pulsar.BatchingType.KeyBased
        )

    def step(self) -> None:
        for _ in range(self._chance.randrange(1, 100)):
            lane, number = self._next % LANES, self._next // LANES
            if self._kind == pulsar.ConsumerType.Exclusive:
                lane, number = 0, self._next
            self._next += 1
            content = NUMBER.pack(number, lane) + self._chance.randbytes(self._chance.randrange(500))
            self._producer.send_async(content, self._receipt(number, lane), partition_key=f"key-{lane}")
        self._producer.flush()
        while not self.account.is_complete and self._receive():
            pass
        if self._chance.random() < 0.05:
            self.close()
            self._open()

    def _receipt(self, number: int, lane: int) -> Callable[[pulsar.Result, pulsar.MessageId], None]:
        def sent(result: pulsar.Result, message_id: pulsar.MessageId) -> None:
            if result == pulsar.Result.Ok:
                self.account.publish(number, lane)
            else:
                self.account.violate(f"{number} of lane {lane} was refused: {result}")

        return sent

    def _receive(self) -> bool:
        try:
            message = self._consumer.receive(QUIET_MS)
        except pulsar.Timeout:
            return False
        number, lane = NUMBER.unpack_from(message.data())
        self.account.saw(number, lane)
        self._consumer.acknowledge(message)
        return True

    def settle(self) -> None:
        end = time.monotonic() + SETTLE_SECONDS
        while not self.account.is_complete and time.monotonic() < end:
            self._receive()
        if not self.account.is_complete:
            self.account.violate(f"never seen: {self.account.missing}")
        self.close()

    def close(self) -> None:
        self._client.close()


def main(service_url: str, seed: int, prefix: str, seconds: float) -> None:
    streams = [
        Stream(service_url, f"persistent://soak/plain/{prefix}-{kind.name}", kind, random.Random(f"{seed} {kind.name}"))
        for kind in TYPES
    ]
    accounts = [stream.account for stream in streams]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for stream in streams:
            stream.step()
        tell(accounts)
    for stream in streams:
        stream.settle()
    tell(accounts, finished=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
