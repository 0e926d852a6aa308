"""What can go wrong, named as the official Python client names it.

Everything the client raises on purpose is a `PulsarError`, and one of three kinds by what can be done: `RetryError`,
`FixError` or `GiveUpError`. `code` is a word for programs; `args[0]` says what happened, where the broker refused in
the broker's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class PulsarError(Exception):
    """Any failure of the client or of the broker behind it."""

    code: ClassVar[str] = "PulsarError"
    """A word that stays: the name of Pulsar's ServerError where there is one, else that of the class."""

    def __init_subclass__(cls, *, code: str = "") -> None:
        super().__init_subclass__()
        cls.code = code or cls.__name__


class RetryError(PulsarError):
    """The same call may succeed later."""


class FixError(PulsarError):
    """The same call will fail again: its arguments, the permissions or the cluster have to change first."""


class GiveUpError(PulsarError):
    """The producer, consumer, topic or transaction is over: what is wanted takes a new one."""


# ---- the client's own


class InvalidConfiguration(FixError):
    """An option that makes no sense, or two that do not go together."""


class InvalidUrl(FixError):
    """A service URL that cannot be read."""


class ConnectError(RetryError):
    """No connection to the broker, or it was lost."""


class WrongProtocol(ConnectError):
    """Something answers there, and speaks another protocol than the URL says: HTTP, TLS or no TLS. Nothing is opened
    for the first time after it, however long it is tried; what was open before is tried again."""


class LocalProtocolError(FixError):
    """A command that must not be sent now: a mistake in the code that uses the connection."""


class Timeout(RetryError):
    """The broker did not answer within `operation_timeout`."""


class AlreadyClosed(GiveUpError):
    """The producer, consumer, reader or client was closed."""


class ProducerQueueIsFull(RetryError):
    """`max_pending_messages` wait for their receipts, and the call was one that does not wait."""


class MemoryBufferIsFull(RetryError):
    """`memory_limit` bytes are taken by messages without a receipt, and the call was one that does not wait."""


class MessageTooBig(FixError):
    """A message, or the batch it is in, has more bytes than the broker takes."""


class InvalidMessage(FixError):
    """An entry that cannot be taken apart, or a call that needs another kind of message."""


class CryptoError(FixError):
    """A message cannot be encrypted or decrypted."""


class TransactionHasOperationFailed(GiveUpError):
    """The transaction was aborted in place of its commit: something sent or acknowledged in it had failed."""


class OperationNotSupported(FixError):
    """Not built yet, or not possible with this broker."""


# ---- the broker's, one for each ServerError


class UnknownError(RetryError):
    """Anything without an error of its own."""


class BrokerMetadataError(RetryError, code="MetadataError"):
    """Metadata could not be read or written."""


class BrokerPersistenceError(RetryError, code="PersistenceError"):
    """Storage failed."""


class AuthenticationError(FixError):
    """The broker does not know who this is, or with TLS one side does not believe the other."""


class AuthorizationError(FixError):
    """The broker knows, and refuses."""


class ConsumerBusy(RetryError):
    """The subscription has a consumer and takes no second one of that kind."""


class ServiceUnitNotReady(RetryError, code="ServiceNotReady"):
    """The broker does not serve this topic, or not yet."""


class ProducerBlockedQuotaExceededError(RetryError):
    """The backlog quota is exceeded; the broker holds producers back."""


class ProducerBlockedQuotaExceededException(RetryError):
    """The backlog quota is exceeded; the broker refuses producers."""


class ChecksumError(RetryError):
    """A message was damaged on its way."""


class UnsupportedVersionError(FixError):
    """The broker wants a client of a newer protocol."""


class TopicNotFound(FixError):
    """No such topic, or no such namespace."""


class SubscriptionNotFound(FixError):
    """No such subscription."""


class ConsumerNotFound(GiveUpError):
    """No such consumer."""


class TooManyLookupRequestException(RetryError, code="TooManyRequests"):
    """The broker has too much to do."""


class TopicTerminated(GiveUpError, code="TopicTerminatedError"):
    """Nothing can be published to the topic any more."""


class ProducerBusy(RetryError):
    """The producer's name is taken, or there are too many producers."""


class InvalidTopicName(FixError):
    """No name of a topic."""


class IncompatibleSchema(FixError):
    """The topic has another schema."""


class ConsumerAssignError(FixError):
    """Key_Shared hash ranges that overlap."""


class TransactionCoordinatorNotFoundError(RetryError, code="TransactionCoordinatorNotFound"):
    """No transaction coordinator here."""


class InvalidTxnStatusError(GiveUpError, code="InvalidTxnStatus"):
    """The transaction is not in a state that allows it."""


class NotAllowedError(FixError):
    """The broker does not allow it."""


class TransactionConflict(GiveUpError):
    """Another transaction holds this acknowledgement."""


class TransactionNotFound(GiveUpError):
    """No such transaction."""


class ProducerFenced(GiveUpError):
    """Another producer has the topic for itself."""


#: ServerError -> what is raised for it.
BY_CODE: Mapping[int, type[PulsarError]] = MappingProxyType(
    {
        pb.ServerError.Value(kind.code): kind
        for base in (RetryError, FixError, GiveUpError)
        for kind in base.__subclasses__()
        if kind.code in pb.ServerError.DESCRIPTOR.values_by_name
    }
)

#: Worth another try when something is opened for the first time.
TRANSIENT = (
    ConnectError,
    Timeout,
    ServiceUnitNotReady,
    TooManyLookupRequestException,
    BrokerPersistenceError,
)

#: What ends a producer or consumer that was open; after any other failure it is opened again and again.
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


#: Characters of the broker's words that an error keeps.
MOST_TEXT = 4096


def error_of(code: int, text: str) -> PulsarError:
    """The error of a ServerError the broker sent."""
    return BY_CODE.get(code, UnknownError)(text[:MOST_TEXT] or f"the broker answered with error {code}")


def copy_of(error: PulsarError) -> PulsarError:
    """The same failure for another who waits: an exception that is raised twice collects both tracebacks."""
    return type(error)(*error.args)
