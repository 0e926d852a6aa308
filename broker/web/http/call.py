"""A REST call as handlers see it: parameters, query and body, read by Pulsar's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

from pulsarium.broker.auth.identity import NOBODY, Principal
from pulsarium.broker.cluster import Broker
from pulsarium.broker.jackson.errors import NoContent, OutOfRange
from pulsarium.broker.jackson.kinds import ANY, JavaType, read, whole_object
from pulsarium.broker.web.http.errors import AdminError, ContainerError, EmptyBody, WrongMediaType, request_failed
from pulsarium.broker.web.http.reply import NAMES
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.numbers import parse_number
from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, SCALABLE, NamespaceName, TopicName

if TYPE_CHECKING:
    from pulsarium.broker.web.rates import Rates

DOMAIN_OF = {NON_PERSISTENT: NON_PERSISTENT, "scalable": SCALABLE, "segments": SCALABLE}


@dataclass(frozen=True)
class Call:
    """A request to one route. `parameters` are the parts of the path, still percent-encoded."""

    broker: Broker
    rates: Rates
    method: str
    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    until_sent: ExitStack  # closed when the answer has been sent or has failed
    body_file: Path | None = None  # the body of a spooled route
    principal: Principal = NOBODY  # the caller
    secure: bool = False  # over HTTPS
    pairs: Sequence[tuple[str, str]] = ()  # the query, with each value of a repeated name

    # path

    def parameter(self, name: str) -> str:
        """Return a parameter of the path, decoded once."""
        return unquote(self.parameters[name])

    def encoded_parameter(self, name: str) -> str:
        """Return a parameter that clients encode with Java's URLEncoder.

        All but topics are encoded once more, as any path.
        """
        return unquote_plus(self.parameters[name] if name == "topic" else self.parameter(name))

    @cached_property
    def namespace(self) -> str:
        """Return tenant/namespace, which need not exist. Raise `AdminError` 412 when the name is invalid."""
        try:
            return str(NamespaceName.parse(f"{self.parameter('tenant')}/{self.parameter('namespace')}"))
        except InvalidTopicName:
            raise AdminError(412, "Namespace name is not valid") from None

    @property
    def existing_namespace(self) -> str:
        """Return tenant/namespace for the routes of namespaces. Raise `AdminError` 404 when it does not exist."""
        namespace = self.namespace
        if namespace not in self.broker.metadata.namespaces:
            raise AdminError(404, "Namespace does not exist")
        return namespace

    @property
    def domain(self) -> str:
        """Return the domain of a path below /admin/v2, /topics or /pulsarium. Below /pulsarium, it may be any text.

        Paths below /scalable and /segments mean scalable topics. Other paths without a domain, as those of schemas and
        transactions, mean persistent topics.
        """
        parts = self.path.split("/")
        if parts[1] == "pulsarium":
            return self.parameter("domain")
        return DOMAIN_OF.get(parts[2] if parts[1] == "topics" else parts[3], PERSISTENT)

    @cached_property
    def topic_anywhere(self) -> TopicName:
        """Return the topic of the path. The topic and its namespace need not exist."""
        try:
            namespace = NamespaceName.parse(f"{self.parameter('tenant')}/{self.parameter('namespace')}")
            return TopicName.parse(f"{self.domain}://{namespace}/{self.encoded_parameter('topic')}")
        except InvalidTopicName:
            raise AdminError(412, "Topic name is not valid") from None

    @property
    def topic(self) -> TopicName:
        """Return the topic of the path, which need not exist.

        Raise `AdminError` 404 when its namespace does not exist.
        """
        name = self.topic_anywhere
        if str(name.namespace_name) not in self.broker.metadata.namespaces:
            raise AdminError(404, "Namespace not found")
        return name

    # query

    def values(self, name: str) -> list[str]:
        """Return all values of a name that the query may repeat."""
        return [value for each, value in self.pairs if each == name]

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean of the query as Java reads it: every text other than "true" is false."""
        value = self.query.get(name)
        return default if value is None else value.lower() == "true"

    # body

    def json(self) -> Any:
        """Return the body as JSON, or None without a body."""
        return self.read(ANY)

    def json_object(self, java_type: str) -> dict[str, Any] | None:
        """Return the body as a JSON object, or None. Errors name `java_type`."""
        found: dict[str, Any] | None = self.read(whole_object(java_type))
        return found

    def read(self, kind: JavaType, *, of_any_media_type: bool = False) -> Any:
        """Return the body as a value of this kind. Raise `ContainerError` where Pulsar has no words of its own."""
        media_type = self.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        is_json = of_any_media_type or media_type == "application/json" or media_type.endswith("+json")
        if self.body and not is_json:
            raise WrongMediaType
        try:
            return read(kind, self.body, whole=True)
        except NoContent:
            if kind.is_primitive:
                raise EmptyBody from None
            return kind.null
        except OutOfRange:
            raise request_failed() from None


def number_of(call: Call, name: str, *, bits: int) -> int:
    """Return a number of the path."""
    return number_in(call.parameter(name), bits=bits)


def number_in(text: str, *, bits: int) -> int:
    """Return a number of a path or query. Raise `ContainerError` 404 for any other text."""
    number = parse_number(text, bits)
    if number is None:
        raise ContainerError(404, NAMES[404])
    return number


def whole(name: str, text: str, digits: int) -> int:
    """Return a number of at most `digits` digits. Raise `AdminError` 400, which names it, for another text."""
    if not (text.isascii() and text.isdecimal() and len(text) <= digits):
        raise AdminError(400, f"{name} is {text!r}; it must be a number, 0 or more")
    return int(text)
