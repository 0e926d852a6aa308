"""Send, receive and acknowledge messages, the most frequent steps of clients."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.broker.wire import Type, batch_of, plain

from ..pair import Said
from ..program import Program, pick
from ..sides import Place
from .values import ANY, OFTEN


class Exchanging(Program):
    """Rules that publish messages and wait for them."""

    @precondition(lambda self: self.producers)
    @rule(which=ANY, count=st.integers(1, 5), batched=st.booleans(), key=st.sampled_from(["", "a", "b", "c"]))
    def send_some(self, which: int, count: int, batched: bool, key: str) -> None:
        """Send messages one after the other. Compare the deliveries of each message before the next message is sent."""
        (link, ident), producer = pick(self.producers, which)
        for _ in range(count):
            if (link, ident) not in self.producers:
                return
            sequence = producer.next_sequence
            producer.next_sequence += 1
            metadata: dict[str, Any] = {"sequence_id": sequence, "producer_name": producer.name} | (
                {"partition_key": key} if key else {}
            )
            batched = batched and self.batches
            data = batch_of(b"a", b"b", **metadata) if batched else plain(b"m%d" % sequence, **metadata)
            fields = {"producer_id": ident, "sequence_id": sequence, "num_messages": 2 if batched else 1}
            self.filled.add(producer.topic)
            self.tell(link, Said(Type.SEND, fields, data))

    @precondition(lambda self: self.consumers)
    @rule(permits=st.integers(1, 4))
    def everybody_takes(self, permits: int) -> None:
        """Grant permits to all consumers. Each consumer acknowledges the first message that it has received."""
        for link, ident in sorted(self.consumers):
            if (link, ident) in self.consumers:
                self.flow_to(link, ident, permits)
        self.everybody_acknowledges(cumulative=False, answered=True, first=True)

    @precondition(lambda self: any(each.received for each in self.consumers.values()))
    @rule(cumulative=st.booleans(), answered=OFTEN, first=OFTEN)
    def everybody_acknowledges(self, cumulative: bool, answered: bool, first: bool) -> None:
        for (link, ident), consumer in sorted(self.consumers.items()):
            if (link, ident) in self.consumers and consumer.received:
                number = consumer.received.pop(0 if first else -1)
                fields: dict[str, Any] = {
                    "consumer_id": ident,
                    "ack_type": int(cumulative),
                    "message_id": [Place(number)],
                }
                if answered:
                    self.ask(link, Type.ACK, **fields)
                else:
                    self.tell(link, Said(Type.ACK, fields))
