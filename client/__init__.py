"""The async client, under trio and asyncio.

async with connect("pulsar://localhost:6650") as client:
    async with client.create_producer("topic") as producer:
        await producer.send(b"content")

What can go wrong is in `pulsarium.client.errors`.
"""

from pulsarium.client.client import Client, connect
from pulsarium.client.connection.authentication import (
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
)
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.last_entry import LastEntry, PayloadToMessageIdConverter
from pulsarium.client.consumer.options import (
    ConsumerKeySharedPolicy,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    RegexSubscriptionMode,
)
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, CryptoKeyReader, KeyReader
from pulsarium.client.entry.payload_processor import MessagePayloadProcessor
from pulsarium.client.errors import PulsarError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.producer.batching import Receipt
from pulsarium.client.producer.options import CompressionType, HashingScheme, PartitionsRoutingMode
from pulsarium.client.producer.producer import Producer
from pulsarium.client.schema.schema import BytesSchema, Schema

__all__ = [
    "Authentication",
    "AuthenticationBasic",
    "AuthenticationTLS",
    "AuthenticationToken",
    "BytesSchema",
    "Client",
    "CompressionType",
    "Consumer",
    "ConsumerCryptoFailureAction",
    "ConsumerKeySharedPolicy",
    "ConsumerType",
    "CryptoKeyReader",
    "HashingScheme",
    "InitialPosition",
    "KeyReader",
    "KeySharedMode",
    "LastEntry",
    "Message",
    "MessageId",
    "MessagePayloadProcessor",
    "PartitionsRoutingMode",
    "PayloadToMessageIdConverter",
    "Producer",
    "PulsarError",
    "Reader",
    "Receipt",
    "RegexSubscriptionMode",
    "Schema",
    "connect",
]
