"""What the model refuses, with the ServerError a client is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pulsarium.proto.generated import PulsarApi_pb2 as pb


class BrokerServiceError(Exception):
    """A request that cannot be served. `code` is a ServerError, `text` the words of the reply."""

    code: pb.ServerError = pb.UnknownError
    java_name = "BrokerServiceException"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def java_text(self) -> str:
        """The text as replies to PRODUCER carry it: behind the name of the exception's class."""
        return f"org.apache.pulsar.broker.service.BrokerServiceException${self.java_name}: {self.text}"


class ConsumerBusyError(BrokerServiceError):
    code = pb.ConsumerBusy
    java_name = "ConsumerBusyException"


class ConsumerAssignError(BrokerServiceError):
    code = pb.ConsumerAssignError
    java_name = "ConsumerAssignException"


class SubscriptionBusyError(BrokerServiceError):
    code = pb.ConsumerBusy
    java_name = "SubscriptionBusyException"


class SubscriptionNotFoundError(BrokerServiceError):
    code = pb.SubscriptionNotFound
    java_name = "SubscriptionNotFoundException"


class NamingError(BrokerServiceError):
    code = pb.ProducerBusy
    java_name = "NamingException"


class ProducerBusyError(BrokerServiceError):
    code = pb.ProducerBusy
    java_name = "ProducerBusyException"


class ProducerFencedError(BrokerServiceError):
    code = pb.ProducerFenced
    java_name = "ProducerFencedException"


class NotAllowedError(BrokerServiceError):
    code = pb.NotAllowedError
    java_name = "NotAllowedException"


class UnsupportedSubscriptionTypeError(NotAllowedError):
    """Messages of such a subscription are not acknowledged one by one."""

    def __init__(self) -> None:
        super().__init__("Unsupported subscription type.")


class NoSuchMessageError(BrokerServiceError):
    """A message id, or a batch index in it, that names nothing."""


class TopicNotFoundError(BrokerServiceError):
    code = pb.TopicNotFound
    java_name = "TopicNotFoundException"


class TopicTerminatedError(BrokerServiceError):
    code = pb.TopicTerminatedError
    java_name = "TopicTerminatedException"


class TopicMigratedError(BrokerServiceError):
    java_name = "TopicMigratedException"


class ServiceNotReadyError(BrokerServiceError):
    code = pb.ServiceNotReady
    java_name = "ServiceUnitNotReadyException"


class TopicFencedError(BrokerServiceError):
    code = pb.ServiceNotReady
    java_name = "TopicFencedException"


class MetadataError(BrokerServiceError):
    code = pb.MetadataError
    java_name = "ServerMetadataException"


class PersistenceError(BrokerServiceError):
    code = pb.PersistenceError
    java_name = "PersistenceException"


class SourceNotFoundError(PersistenceError):
    """A shadow topic cannot be loaded: its source is not there."""

    def __init__(self) -> None:
        package = "org.apache.bookkeeper.mledger.ManagedLedgerException$"
        super().__init__(
            f"{package}ManagedLedgerNotFoundException: {package}MetadataNotFoundException: Managed ledger not found"
        )


class TopicHasClientsError(BrokerServiceError):
    """A topic, subscription or namespace that is in use and was not forced."""

    code = pb.NotAllowedError
    java_name = "TopicBusyException"


class HasShadowsError(TopicHasClientsError):
    """A topic whose messages go to shadow topics, and was not forced."""


class BacklogQuotaExceededError(BrokerServiceError):
    """No producer while the backlog is above its quota (P-06); `policy` is what the quota says of producers."""

    java_name = "TopicBacklogQuotaExceededException"

    def __init__(self, policy: str) -> None:
        super().__init__("Cannot create producer on topic with backlog quota exceeded")
        self.text = self.java_text  # unlike other errors that come so early
        holds = policy == "producer_request_hold"
        self.code = pb.ProducerBlockedQuotaExceededError if holds else pb.ProducerBlockedQuotaExceededException


class Owner(Protocol):
    """A connection that has a name or a subscription."""

    def check_liveness(self, answered: Callable[[bool], None]) -> None:
        """PING; `answered(True)` on a sign of life, `answered(False)` after the connection was closed for its silence
        (connectionLivenessCheckTimeoutMillis)."""
        ...


class OwnerMustAnswerError(BrokerServiceError):
    """The name or subscription has an owner. Ask `owner` for a sign of life; only a dead one is evicted (P-02, C-04).

    `refusal` is what the newcomer is told when the owner lives.
    """

    def __init__(self, owner: Owner, refusal: BrokerServiceError) -> None:
        super().__init__(refusal.text)
        self.owner = owner
        self.refusal = refusal


class CoordinatorNotFoundError(BrokerServiceError):
    """No such transaction coordinator, or it is not served here."""

    code = pb.TransactionCoordinatorNotFound


class InvalidTxnStatusError(BrokerServiceError):
    """A transaction that is being committed or aborted already."""

    code = pb.InvalidTxnStatus


class TransactionNotFoundError(BrokerServiceError):
    """A transaction that is over or never was, or somebody else's."""

    code = pb.TransactionNotFound


class TransactionConflictError(BrokerServiceError):
    """What a transaction acknowledges another one has acknowledged, which is not over."""

    code = pb.TransactionConflict

    @property
    def java_text(self) -> str:
        return f"org.apache.pulsar.transaction.common.exception.TransactionConflictException: {self.text}"
