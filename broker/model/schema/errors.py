"""Why a schema is not taken."""

from __future__ import annotations

from pulsarium.broker.model.errors import BrokerServiceError
from pulsarium.proto.generated import PulsarApi_pb2 as pb

EXCEPTIONS = "org.apache.pulsar.broker.service.schema.exceptions"


class SchemaError(BrokerServiceError):
    """Of PRODUCER and GET_OR_CREATE_SCHEMA, `java_text` is what is told; SUBSCRIBE and REST are told `text`."""

    code: pb.ServerError = pb.IncompatibleSchema

    @property
    def java_text(self) -> str:
        return self.text


class IncompatibleSchemaError(SchemaError):
    """It does not fit those that the topic has, or the topic takes none."""

    @property
    def java_text(self) -> str:
        named = f"{EXCEPTIONS}.IncompatibleSchemaException: {self.text}"
        return f"{named} caused by {named}"


class NoSchemaError(IncompatibleSchemaError):
    """There is none to compare with (NotExistSchemaException)."""

    def __init__(self) -> None:
        super().__init__("Topic does not have schema to check")


class MalformedSchemaError(SchemaError):
    """What Pulsar stumbles over; `java` is its exception as a text, with its class."""

    code = pb.UnknownError

    def __init__(self, java: str) -> None:
        super().__init__("")
        self._java = java

    @property
    def java_text(self) -> str:
        return self._java

    @property
    def message(self) -> str:
        """What the exception says itself."""
        return self._java.partition(": ")[2] or "null"


class InvalidSchemaDataError(SchemaError):
    """It is no schema. `cause` is Java's exception as a text, "" for none."""

    def __init__(self, text: str, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause

    @property
    def java_text(self) -> str:
        return f"{self.text} caused by {self.cause}" if self.cause else self.text
