"""What can go wrong, named as the official Python client names it.

Everything the client raises on purpose is a `PulsarError`; `args[0]` says what happened, where the broker refused in
the broker's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class PulsarError(Exception):
    """Any failure of the client or of the broker behind it."""


# ---- the client's own


class InvalidConfiguration(PulsarError):
    """An option that makes no sense, or two that do not go together."""


class InvalidUrl(PulsarError):
    """A service URL that cannot be read."""


class ConnectError(PulsarError):
    """No connection to the broker, or it was lost."""


class WrongProtocol(ConnectError):
    """Something answers there, and speaks another protocol than the URL says: HTTP, TLS or no TLS. Nothing is opened
    for the first time after it, however long it is tried; what was open before is tried again."""


class LocalProtocolError(PulsarError):
    """A command that must not be sent now: a mistake in the code that uses the connection."""


class Timeout(PulsarError):
    """The broker did not answer within `operation_timeout`."""


class AlreadyClosed(PulsarError):
    """The producer, consumer, reader or client was closed."""


class ProducerQueueIsFull(PulsarError):
    """`max_pending_messages` wait for their receipts, and the call was one that does not wait."""


class MemoryBufferIsFull(PulsarError):
    """`memory_limit` bytes are taken by messages without a receipt, and the call was one that does not wait."""


class MessageTooBig(PulsarError):
    """A message, or the batch it is in, has more bytes than the broker takes."""


class InvalidMessage(PulsarError):
    """An entry that cannot be taken apart, or a call that needs another kind of message."""


class CryptoError(PulsarError):
    """A message cannot be encrypted or decrypted."""


class TransactionHasOperationFailed(PulsarError):
    """The transaction was aborted in place of its commit: something sent or acknowledged in it had failed."""


class OperationNotSupported(PulsarError):
    """Not built yet, or not possible with this broker."""


# ---- the broker's, one for each ServerError


class UnknownError(PulsarError):
    """Anything without an error of its own."""


class BrokerMetadataError(PulsarError):
    """Metadata could not be read or written."""


class BrokerPersistenceError(PulsarError):
    """Storage failed."""


class AuthenticationError(PulsarError):
    """The broker does not know who this is, or with TLS one side does not believe the other."""


class AuthorizationError(PulsarError):
    """The broker knows, and refuses."""


class ConsumerBusy(PulsarError):
    """The subscription has a consumer and takes no second one of that kind."""


class ServiceUnitNotReady(PulsarError):
    """The broker does not serve this topic, or not yet."""


class ProducerBlockedQuotaExceededError(PulsarError):
    """The backlog quota is exceeded; the broker holds producers back."""


class ProducerBlockedQuotaExceededException(PulsarError):
    """The backlog quota is exceeded; the broker refuses producers."""


class ChecksumError(PulsarError):
    """A message was damaged on its way."""


class UnsupportedVersionError(PulsarError):
    """The broker wants a client of a newer protocol."""


class TopicNotFound(PulsarError):
    """No such topic, or no such namespace."""


class SubscriptionNotFound(PulsarError):
    """No such subscription."""


class ConsumerNotFound(PulsarError):
    """No such consumer."""


class TooManyLookupRequestException(PulsarError):
    """The broker has too much to do."""


class TopicTerminated(PulsarError):
    """Nothing can be published to the topic any more."""


class ProducerBusy(PulsarError):
    """The producer's name is taken, or there are too many producers."""


class InvalidTopicName(PulsarError):
    """No name of a topic."""


class IncompatibleSchema(PulsarError):
    """The topic has another schema."""


class ConsumerAssignError(PulsarError):
    """Key_Shared hash ranges that overlap."""


class TransactionCoordinatorNotFoundError(PulsarError):
    """No transaction coordinator here."""


class InvalidTxnStatusError(PulsarError):
    """The transaction is not in a state that allows it."""


class NotAllowedError(PulsarError):
    """The broker does not allow it."""


class TransactionConflict(PulsarError):
    """Another transaction holds this acknowledgement."""


class TransactionNotFound(PulsarError):
    """No such transaction."""


class ProducerFenced(PulsarError):
    """Another producer has the topic for itself."""


#: ServerError -> what is raised for it.
BY_CODE: Mapping[int, type[PulsarError]] = MappingProxyType(
    {
        pb.UnknownError: UnknownError,
        pb.MetadataError: BrokerMetadataError,
        pb.PersistenceError: BrokerPersistenceError,
        pb.AuthenticationError: AuthenticationError,
        pb.AuthorizationError: AuthorizationError,
        pb.ConsumerBusy: ConsumerBusy,
        pb.ServiceNotReady: ServiceUnitNotReady,
        pb.ProducerBlockedQuotaExceededError: ProducerBlockedQuotaExceededError,
        pb.ProducerBlockedQuotaExceededException: ProducerBlockedQuotaExceededException,
        pb.ChecksumError: ChecksumError,
        pb.UnsupportedVersionError: UnsupportedVersionError,
        pb.TopicNotFound: TopicNotFound,
        pb.SubscriptionNotFound: SubscriptionNotFound,
        pb.ConsumerNotFound: ConsumerNotFound,
        pb.TooManyRequests: TooManyLookupRequestException,
        pb.TopicTerminatedError: TopicTerminated,
        pb.ProducerBusy: ProducerBusy,
        pb.InvalidTopicName: InvalidTopicName,
        pb.IncompatibleSchema: IncompatibleSchema,
        pb.ConsumerAssignError: ConsumerAssignError,
        pb.TransactionCoordinatorNotFound: TransactionCoordinatorNotFoundError,
        pb.InvalidTxnStatus: InvalidTxnStatusError,
        pb.NotAllowedError: NotAllowedError,
        pb.TransactionConflict: TransactionConflict,
        pb.TransactionNotFound: TransactionNotFound,
        pb.ProducerFenced: ProducerFenced,
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
