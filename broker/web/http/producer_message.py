"""The message in a request to publish, of a WebSocket and of POST /topics."""

from __future__ import annotations

from typing import Final

from pulsarium.broker.jackson.kinds import BOOL, INTEGER, LONG, STRINGS, TEXT, TEXT_LIST, choice, record
from pulsarium.proto.generated import PulsarApi_pb2 as pb

PRODUCER_MESSAGE: Final = record(
    "org.apache.pulsar.websocket.data.ProducerMessage",
    {
        **dict.fromkeys(("payload", "context", "key", "eventTime", "encryptionParam"), TEXT),
        "properties": STRINGS,
        "replicationClusters": TEXT_LIST,
        **dict.fromkeys(("sequenceId", "deliverAt", "deliverAfterMs"), LONG),
        "disableReplication": BOOL,
        "compressionType": choice(
            "org.apache.pulsar.common.api.proto.CompressionType", tuple(pb.CompressionType.keys())
        ),
        "uncompressedMessageSize": INTEGER,
    },
)
