"""The async client of Pulsar, for trio and asyncio.

    async with connect("pulsar://localhost:6650") as client:
        async with client.create_producer("topic") as producer:
            await producer.send(b"content")

Other public modules: `pulsarium.client.errors` and `pulsarium.client.admin.errors` hold the errors,
`pulsarium.client.topics` the names of topics, and `pulsarium.client.bulk` reads and writes in bulk.

Methods return the facts about an object, as in the official Python client: `producer.topic()`, `message.data()`. Parts
of an object, such as `client.admin`, and fields of values, such as those of `MessageId`, are attributes. Durations are
in seconds. Points in time are in milliseconds since the epoch. Some arguments accept a datetime, too.
"""

from pulsarium.proto.errors import needs

with needs("pulsarium.client", "client"):
    import anyio  # noqa: F401  # imported here, so that `needs` names the missing extra
    import typing_extensions  # noqa: F401

from pulsarium.client.admin.admin import Admin, connect_admin
from pulsarium.client.admin.errors import AdminError
from pulsarium.client.client import Client
from pulsarium.client.connection.authentication import (
    Authentication,
    AuthenticationBasic,
    AuthenticationTLS,
    AuthenticationToken,
)
from pulsarium.client.consumer.consumer import Consumer
from pulsarium.client.consumer.interceptors import ConsumerInterceptor
from pulsarium.client.consumer.last_entry import LastEntry, PayloadToMessageIdConverter
from pulsarium.client.consumer.options import (
    ConsumerKeySharedPolicy,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    OrderedNegativeAckMode,
    RegexSubscriptionMode,
)
from pulsarium.client.consumer.policies import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    MultiplierRedeliveryBackoff,
    RedeliveryBackoff,
)
from pulsarium.client.consumer.raw_reader import RawMessage, RawReader
from pulsarium.client.consumer.reader import Reader
from pulsarium.client.entry.crypto import ConsumerCryptoFailureAction, CryptoKeyReader, KeyReader
from pulsarium.client.entry.decoding import MessagePayloadProcessor
from pulsarium.client.errors import FixError, GiveUpError, PulsarError, RetryError
from pulsarium.client.message import Message
from pulsarium.client.message_id import MessageId
from pulsarium.client.opening import connect
from pulsarium.client.producer.draft import MessageOptions
from pulsarium.client.producer.interceptors import ProducerInterceptor
from pulsarium.client.producer.options import (
    BatchingType,
    CompressionType,
    HashingScheme,
    PartitionsRoutingMode,
    ProducerAccessMode,
)
from pulsarium.client.producer.producer import Producer
from pulsarium.client.producer.receipt import Receipt
from pulsarium.client.scalable.checkpoint import Checkpoint
from pulsarium.client.scalable.checkpoint_consumer import CheckpointConsumer
from pulsarium.client.scalable.message import ScalableMessage
from pulsarium.client.scalable.namespace_consumer import NamespaceStreamConsumer
from pulsarium.client.scalable.producer import ScalableProducer
from pulsarium.client.scalable.queue_consumer import QueueConsumer
from pulsarium.client.scalable.stream_consumer import StreamConsumer
from pulsarium.client.scalable.topics import ScalableTopics
from pulsarium.client.schema.avro_schema import AvroSchema
from pulsarium.client.schema.key_value import KeyValue, KeyValueEncodingType, KeyValueSchema
from pulsarium.client.schema.of_info import AutoProduceBytesSchema
from pulsarium.client.schema.primitives import (
    BooleanSchema,
    DateSchema,
    DoubleSchema,
    FloatSchema,
    InstantSchema,
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    LocalDateSchema,
    LocalDateTimeSchema,
    LocalTimeSchema,
    StringSchema,
    TimeSchema,
    TimestampSchema,
)
from pulsarium.client.schema.protobuf_native import ProtobufNativeSchema
from pulsarium.client.schema.records import AvroFloat, AvroInt, AvroType
from pulsarium.client.schema.schema import BytesSchema, Schema, SchemaInfo
from pulsarium.client.schema.structured import JsonSchema
from pulsarium.client.statistics import ConsumerStatistics, ProducerStatistics
from pulsarium.client.table_view import TableView
from pulsarium.client.transaction.transaction import Transaction, TransactionState
from pulsarium.proto.message_id import TxnId

__all__ = [
    "Admin",
    "AdminError",
    "Authentication",
    "AuthenticationBasic",
    "AuthenticationTLS",
    "AuthenticationToken",
    "AutoProduceBytesSchema",
    "AvroFloat",
    "AvroInt",
    "AvroSchema",
    "AvroType",
    "BatchingType",
    "BooleanSchema",
    "BytesSchema",
    "Checkpoint",
    "CheckpointConsumer",
    "Client",
    "CompressionType",
    "Consumer",
    "ConsumerBatchReceivePolicy",
    "ConsumerCryptoFailureAction",
    "ConsumerDeadLetterPolicy",
    "ConsumerInterceptor",
    "ConsumerKeySharedPolicy",
    "ConsumerStatistics",
    "ConsumerType",
    "CryptoKeyReader",
    "DateSchema",
    "DoubleSchema",
    "FixError",
    "FloatSchema",
    "GiveUpError",
    "HashingScheme",
    "InitialPosition",
    "InstantSchema",
    "Int8Schema",
    "Int16Schema",
    "Int32Schema",
    "Int64Schema",
    "JsonSchema",
    "KeyReader",
    "KeySharedMode",
    "KeyValue",
    "KeyValueEncodingType",
    "KeyValueSchema",
    "LastEntry",
    "LocalDateSchema",
    "LocalDateTimeSchema",
    "LocalTimeSchema",
    "Message",
    "MessageId",
    "MessageOptions",
    "MessagePayloadProcessor",
    "MultiplierRedeliveryBackoff",
    "NamespaceStreamConsumer",
    "OrderedNegativeAckMode",
    "PartitionsRoutingMode",
    "PayloadToMessageIdConverter",
    "Producer",
    "ProducerAccessMode",
    "ProducerInterceptor",
    "ProducerStatistics",
    "ProtobufNativeSchema",
    "PulsarError",
    "QueueConsumer",
    "RawMessage",
    "RawReader",
    "Reader",
    "Receipt",
    "RedeliveryBackoff",
    "RegexSubscriptionMode",
    "RetryError",
    "ScalableMessage",
    "ScalableProducer",
    "ScalableTopics",
    "Schema",
    "SchemaInfo",
    "StreamConsumer",
    "StringSchema",
    "TableView",
    "TimeSchema",
    "TimestampSchema",
    "Transaction",
    "TransactionState",
    "TxnId",
    "connect",
    "connect_admin",
]
