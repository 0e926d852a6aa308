"""Errors of the model, each with the ServerError for the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class BrokerServiceError(Exception):
    """A request that cannot be served. `code` is a ServerError, and `text` is the message of the reply.

    Pulsar's texts often name nobody. `about` has what the log and `pulsarium why` add: the `limit` and how much it has
    `allowed`, and what it is `held_by`.
    """

    code: pb.ServerError = pb.UnknownError
    java_name = "BrokerServiceException"

    def __init__(self, text: str, **about: object) -> None:
        super().__init__(text)
        self.text = text
        self.about = about

    @property
    def java_text(self) -> str:
        """Return the text for replies to PRODUCER, which begins with the name of the exception's class."""
        return f"org.apache.pulsar.broker.service.BrokerServiceException${self.java_name}: {self.text}"


class ConsumerBusyError(BrokerServiceError):
    """The subscription has a consumer, and its type allows no other one."""

    code = pb.ConsumerBusy
    java_name = "ConsumerBusyException"


class ConsumerAssignError(BrokerServiceError):
    """The consumer of a Key_Shared subscription cannot get its key hash ranges."""

    code = pb.ConsumerAssignError
    java_name = "ConsumerAssignException"


class SubscriptionBusyError(BrokerServiceError):
    """The subscription has consumers of another type."""

    code = pb.ConsumerBusy
    java_name = "SubscriptionBusyException"


class SubscriptionNotFoundError(BrokerServiceError):
    """The subscription does not exist."""

    code = pb.SubscriptionNotFound
    java_name = "SubscriptionNotFoundException"


class NamingError(BrokerServiceError):
    """The name of a producer is in use, or the name of a subscription is reserved or empty."""

    code = pb.ProducerBusy
    java_name = "NamingException"


class ProducerBusyError(BrokerServiceError):
    """The topic has an exclusive producer, or as many producers as allowed."""

    code = pb.ProducerBusy
    java_name = "ProducerBusyException"


class ProducerFencedError(BrokerServiceError):
    """Another producer has exclusive access to the topic."""

    code = pb.ProducerFenced
    java_name = "ProducerFencedException"


class NotAllowedError(BrokerServiceError):
    """The topic, the policy or the configuration does not allow the request."""

    code = pb.NotAllowedError
    java_name = "NotAllowedException"


class UnsupportedSubscriptionTypeError(NotAllowedError):
    """A subscription whose messages are not acknowledged individually."""

    def __init__(self) -> None:
        super().__init__("Unsupported subscription type.")


class NoSuchMessageError(BrokerServiceError):
    """A message id or batch index without a message."""


class TopicNotFoundError(BrokerServiceError):
    """The topic does not exist, and is not created."""

    code = pb.TopicNotFound
    java_name = "TopicNotFoundException"


class TopicTerminatedError(BrokerServiceError):
    """The topic was terminated, and accepts no messages."""

    code = pb.TopicTerminatedError
    java_name = "TopicTerminatedException"


class TopicMigratedError(BrokerServiceError):
    """The topic has migrated to another cluster."""

    java_name = "TopicMigratedException"


class ServiceNotReadyError(BrokerServiceError):
    """The broker cannot serve the topic or the subscription now. Clients look the topic up again."""

    code = pb.ServiceNotReady
    java_name = "ServiceUnitNotReadyException"


class TopicFencedError(BrokerServiceError):
    """The topic is being closed or deleted."""

    code = pb.ServiceNotReady
    java_name = "TopicFencedException"


class MetadataError(BrokerServiceError):
    """The metadata does not allow the request, or cannot be read."""

    code = pb.MetadataError
    java_name = "ServerMetadataException"


class PersistenceError(BrokerServiceError):
    """The ledgers of the topic cannot be opened, read or written."""

    code = pb.PersistenceError
    java_name = "PersistenceException"


class SourceNotFoundError(PersistenceError):
    """A shadow topic whose source does not exist, so that the shadow topic cannot be loaded."""

    def __init__(self) -> None:
        package = "org.apache.bookkeeper.mledger.ManagedLedgerException$"
        super().__init__(
            f"{package}ManagedLedgerNotFoundException: {package}MetadataNotFoundException: Managed ledger not found"
        )


class TopicHasClientsError(BrokerServiceError):
    """A topic, subscription or namespace that is in use, and whose deletion is not forced."""

    code = pb.NotAllowedError
    java_name = "TopicBusyException"


class HasShadowsError(TopicHasClientsError):
    """A topic with shadow topics, whose deletion is not forced."""


class BacklogQuotaExceededError(BrokerServiceError):
    """A producer of a topic whose backlog exceeds its quota. `policy` is the retention policy of the quota."""

    java_name = "TopicBacklogQuotaExceededException"

    def __init__(self, policy: str, **about: object) -> None:
        super().__init__("Cannot create producer on topic with backlog quota exceeded", **about)
        self.text = self.java_text  # Pulsar sends the exception's class, unlike with other early errors
        holds = policy == "producer_request_hold"
        self.code = pb.ProducerBlockedQuotaExceededError if holds else pb.ProducerBlockedQuotaExceededException


class OwningConnection(Protocol):
    """A connection that owns a producer name or a subscription."""

    def check_liveness(self, answered: Callable[[bool], None]) -> None:
        """Send PING, and call `answered` with whether the client is alive.

        `answered(True)` follows a sign of life. `answered(False)` follows the end of a silent connection
        (connectionLivenessCheckTimeoutMillis).
        """
        ...


class OwnerMustAnswerError(BrokerServiceError):
    """A name or subscription with an owner, which is evicted only if its connection is dead.

    The caller checks the liveness of `owner`. `refusal` is the error for the newcomer if the owner is alive.
    """

    def __init__(self, owner: OwningConnection, refusal: BrokerServiceError) -> None:
        super().__init__(refusal.text, **refusal.about)
        self.owner = owner
        self.refusal = refusal


class CoordinatorNotFoundError(BrokerServiceError):
    """A transaction coordinator that does not exist, or that this broker does not serve."""

    code = pb.TransactionCoordinatorNotFound


class InvalidTxnStatusError(BrokerServiceError):
    """A transaction that is already being committed or aborted."""

    code = pb.InvalidTxnStatus


class TransactionNotFoundError(BrokerServiceError):
    """A transaction that has ended, never existed, or belongs to another role."""

    code = pb.TransactionNotFound


class TransactionConflictError(BrokerServiceError):
    """An acknowledgement in a transaction that another open transaction has made already."""

    code = pb.TransactionConflict

    @property
    def java_text(self) -> str:
        return f"org.apache.pulsar.transaction.common.exception.TransactionConflictException: {self.text}"
