"""The async client, under trio and asyncio.

async with connect("pulsar://localhost:6650") as client:
    async with client.create_producer("topic") as producer:
        await producer.send(b"content")

What can go wrong is in `pulsarium.client.errors`.
"""

from pulsarium.client.batching import Receipt
from pulsarium.client.client import Client, connect
from pulsarium.client.consumer import Consumer
from pulsarium.client.consumer_options import ConsumerKeySharedPolicy, ConsumerType, InitialPosition, KeySharedMode
from pulsarium.client.crypto import ConsumerCryptoFailureAction, CryptoKeyReader, KeyReader
from pulsarium.client.errors import PulsarError
from pulsarium.client.last_entry import LastEntry, PayloadToMessageIdConverter
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.payload_processor import MessagePayloadProcessor
from pulsarium.client.producer import Producer
from pulsarium.client.producer_options import CompressionType
from pulsarium.client.reader import Reader

__all__ = [
    "Client",
    "CompressionType",
    "Consumer",
    "ConsumerCryptoFailureAction",
    "ConsumerKeySharedPolicy",
    "ConsumerType",
    "CryptoKeyReader",
    "InitialPosition",
    "KeyReader",
    "KeySharedMode",
    "LastEntry",
    "Message",
    "MessageId",
    "MessagePayloadProcessor",
    "PayloadToMessageIdConverter",
    "Producer",
    "PulsarError",
    "Reader",
    "Receipt",
    "connect",
]
