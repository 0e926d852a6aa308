"""PIP-96: an application's own way of taking an entry apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class MessagePayloadProcessor(Protocol):
    """Finds the messages of an entry whose payload is not in Pulsar's format."""

    def process(
        self, metadata: pb.MessageMetadata, payload: bytes
    ) -> Iterable[tuple[int, pb.SingleMessageMetadata | None, bytes]]:
        """The messages of a payload, decrypted and decompressed: index in the batch (-1: no batch), metadata, value.

        Without metadata of its own a message has the entry's. What is left out is not delivered, and acknowledged with
        the rest of its entry. An exception is raised by `receive`, and the entry stays unacknowledged.
        """
        ...
