"""Errors of the client, with the names of the official Python client.

Every deliberate error is a `PulsarError` of one of three kinds, by the remedy: `RetryError`, `FixError` or
`GiveUpError`. `code` is a stable word for programs. `args[0]` says what happened, in the broker's words if the broker
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class PulsarError(Exception):
    """A failure of the client or the broker."""

    code: ClassVar[str] = "PulsarError"
    """A stable word: the name of Pulsar's ServerError if one exists, otherwise the name of the class."""

    def __init_subclass__(cls, *, code: str = "") -> None:
        super().__init_subclass__()
        cls.code = code or cls.__name__


class RetryError(PulsarError):
    """The same call may succeed later."""


class FixError(PulsarError):
    """The same call will fail again, unless its arguments, the permissions or the cluster change."""


class GiveUpError(PulsarError):
    """The producer, consumer, topic or transaction has ended. Open a new one."""


# ---- errors of the client


class InvalidConfiguration(FixError):
    """An option is invalid, or two options exclude each other."""


class InvalidUrl(FixError):
    """A service URL cannot be read."""


class ConnectError(RetryError):
    """The connection to the broker was lost, or cannot be made."""


class WrongProtocol(ConnectError):
    """The server speaks another protocol than the URL says: HTTP, TLS, no TLS, or something else.

    A first opening fails at once. A producer or consumer that was open before tries again.
    """


class LocalProtocolError(FixError):
    """A command must not be sent now. The code that uses the connection has a mistake."""


class Timeout(RetryError):
    """The broker did not answer within `operation_timeout`."""


class AlreadyClosed(GiveUpError):
    """The producer, consumer, reader or client is closed."""


class ProducerQueueIsFull(RetryError):
    """`max_pending_messages` messages have no receipt, and the call does not wait."""


class MemoryBufferIsFull(RetryError):
    """Messages without a receipt take `memory_limit` bytes, and the call does not wait."""


class MessageTooBig(FixError):
    """A message, or its batch, has more bytes than the broker accepts."""


class InvalidMessage(FixError):
    """An entry cannot be decoded, or the message does not fit the call."""


class CryptoError(FixError):
    """A message cannot be encrypted or decrypted."""


class TransactionHasOperationFailed(GiveUpError):
    """The transaction was aborted instead of committed, because a message or an acknowledgement in it failed."""


class OperationNotSupported(FixError):
    """The operation is not implemented, or not possible with this broker."""


# ---- errors of the broker, one for each ServerError


class UnknownError(RetryError):
    """The broker reported an error that has no class of its own."""


class BrokerMetadataError(RetryError, code="MetadataError"):
    """The broker could not read or write metadata."""


class BrokerPersistenceError(RetryError, code="PersistenceError"):
    """The broker's storage failed."""


class AuthenticationError(FixError):
    """The broker does not accept the client's credentials, or the TLS certificate of one side is not trusted."""


class AuthorizationError(FixError):
    """The role has no permission."""


class ConsumerBusy(RetryError):
    """The subscription has a consumer, and its type allows no other one."""


class ServiceUnitNotReady(RetryError, code="ServiceNotReady"):
    """The broker does not serve the topic, or not yet."""


class ProducerBlockedQuotaExceededError(RetryError):
    """The backlog quota is exceeded, and the broker holds producers back."""


class ProducerBlockedQuotaExceededException(RetryError):
    """The backlog quota is exceeded, and the broker refuses producers."""


class ChecksumError(RetryError):
    """A message was damaged on its way."""


class UnsupportedVersionError(FixError):
    """The broker requires a newer protocol version."""


class TopicNotFound(FixError):
    """The topic or its namespace does not exist."""


class SubscriptionNotFound(FixError):
    """The subscription does not exist."""


class ConsumerNotFound(GiveUpError):
    """The consumer does not exist."""


class TooManyLookupRequestException(RetryError, code="TooManyRequests"):
    """The broker is overloaded."""


class TopicTerminated(GiveUpError, code="TopicTerminatedError"):
    """The topic is terminated and accepts no more messages."""


class ProducerBusy(RetryError):
    """The producer's name is taken, or the topic has too many producers."""


class InvalidTopicName(FixError):
    """The name is no valid name of a topic."""


class IncompatibleSchema(FixError):
    """The schema is not compatible with the topic's schema."""


class ConsumerAssignError(FixError):
    """The hash ranges of Key_Shared consumers overlap."""


class TransactionCoordinatorNotFoundError(RetryError, code="TransactionCoordinatorNotFound"):
    """The broker has no such transaction coordinator."""


class InvalidTxnStatusError(GiveUpError, code="InvalidTxnStatus"):
    """The state of the transaction does not allow the operation."""


class NotAllowedError(FixError):
    """The broker does not allow the operation."""


class TransactionConflict(GiveUpError):
    """Another transaction has acknowledged the message."""


class TransactionNotFound(GiveUpError):
    """The transaction does not exist."""


class ProducerFenced(GiveUpError):
    """Another producer has exclusive access to the topic."""


#: Maps each ServerError to its class.
BY_CODE: Mapping[int, type[PulsarError]] = MappingProxyType(
    {
        pb.ServerError.Value(kind.code): kind
        for base in (RetryError, FixError, GiveUpError)
        for kind in base.__subclasses__()
        if kind.code in pb.ServerError.DESCRIPTOR.values_by_name
    }
)

#: Errors after which a first opening is tried again.
TRANSIENT = (
    ConnectError,
    Timeout,
    ServiceUnitNotReady,
    TooManyLookupRequestException,
    BrokerPersistenceError,
)

#: Errors that end an open producer or consumer. After any other error it is opened again.
FATAL = (
    AlreadyClosed,
    AuthenticationError,
    AuthorizationError,
    IncompatibleSchema,
    InvalidTopicName,
    LocalProtocolError,
    NotAllowedError,
    OperationNotSupported,
    ProducerFenced,
    TopicNotFound,
    TopicTerminated,
    UnsupportedVersionError,
)


#: The most characters of the broker's text that an error keeps.
MOST_TEXT = 4096


def error_of(code: int, text: str) -> PulsarError:
    """Return the error for a ServerError of the broker."""
    return BY_CODE.get(code, UnknownError)(text[:MOST_TEXT] or f"the broker answered with error {code}")


def copy_of(error: PulsarError) -> PulsarError:
    """Return a copy of the error for another waiting task.

    An exception that is raised twice collects both tracebacks.
    """
    return type(error)(*error.args)
