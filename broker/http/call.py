"""A REST call as handlers see it: parameters, query and body, read by Pulsar's rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, unquote_plus

from pulsarium.broker.auth.identity import NOBODY, Principal
from pulsarium.broker.http.errors import AdminError, UnreadableBody, WrongMediaType
from pulsarium.broker.jackson import WANTED, place
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import NON_PERSISTENT, PERSISTENT, SCALABLE, NamespaceName, TopicName

if TYPE_CHECKING:
    from pulsarium.broker.broker import Broker
    from pulsarium.broker.rates import Rates

DOMAIN_OF = {NON_PERSISTENT: NON_PERSISTENT, "scalable": SCALABLE, "segments": SCALABLE}
DIGITS = re.compile(rb"\d+")


@dataclass(frozen=True, slots=True)
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

    @property
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
        """Return the domain of a path below /admin/v2 or /topics.

        Paths below /scalable and /segments mean scalable topics. Other paths without a domain, as those of schemas and
        transactions, mean persistent topics.
        """
        parts = self.path.split("/")
        return DOMAIN_OF.get(parts[2] if parts[1] == "topics" else parts[3], PERSISTENT)

    @property
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
        if not self.body:
            return None
        media_type = self.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if not (media_type == "application/json" or media_type.endswith("+json")):
            raise WrongMediaType
        return parse_json(self.body)

    def json_object(self, java_type: str) -> dict[str, Any] | None:
        """Return the body as a JSON object, or None. Errors name `java_type`."""
        value = self.json()
        if value is None or isinstance(value, dict):
            return value
        raise wrong_type(java_type, value)

    def json_list(self, java_type: str = "java.util.ArrayList<java.lang.String>") -> list[str] | None:
        """Return the body as a JSON list of strings, or None."""
        value = self.json()
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise wrong_type(java_type, value)
        return value

    def json_strings(
        self, java_type: str = "java.util.LinkedHashMap<java.lang.String,java.lang.String>"
    ) -> dict[str, str] | None:
        """Return the body as a JSON object of strings, or None."""
        return texts_of(self.json_object(java_type))


def parse_json(body: bytes) -> Any:
    """Parse JSON from a client. Raise `UnreadableBody`, in Jackson's words, for invalid JSON."""
    try:
        return json.loads(body)
    except RecursionError:
        raise UnreadableBody("Document nesting depth exceeds the maximum allowed") from None
    except json.JSONDecodeError as error:
        found = error.doc[error.pos : error.pos + 1]
        what = f"Unexpected character ({found!r} (code {ord(found)}))" if found else "Unexpected end-of-input"
        wanted = WANTED.get(error.msg, error.msg)
        raise UnreadableBody(f"{what}: {wanted}{place(error.lineno, error.colno)}") from None
    except UnicodeDecodeError as error:
        raise UnreadableBody(f"Invalid UTF-8: {error}") from None
    except ValueError:  # more digits than Python reads; Jackson stops at 1,000
        digits = max(map(len, DIGITS.findall(body)))
        limit = "1000, from `StreamReadConstraints.getMaxNumberLength()`"
        raise UnreadableBody(f"Number value length ({digits}) exceeds the maximum allowed ({limit})") from None


def wrong_type(java_type: str, value: Any) -> UnreadableBody:
    """Return the error for a JSON value of the wrong kind, in Jackson's words."""
    if isinstance(value, str):
        found = f'String "{value}": not a valid `{java_type}` value'
    elif isinstance(value, (dict, list)):
        kind = "Object" if isinstance(value, dict) else "Array"
        found = f"{kind} value (token `JsonToken.START_{kind.upper()}`)"
    else:
        kind, token = "Floating-point", "NUMBER_FLOAT"
        if isinstance(value, int):
            kind, token = ("Boolean", str(value).upper()) if isinstance(value, bool) else ("Integer", "NUMBER_INT")
        found = f"{kind} value (token `JsonToken.VALUE_{token}`)"
    return UnreadableBody(f"Cannot deserialize value of type `{java_type}` from {found}{place(1, 1)}")


def texts_of(value: Any) -> dict[str, str] | None:
    """Return a JSON object of strings, or None. Raise `UnreadableBody` for another kind of value."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise wrong_type("java.util.Map<java.lang.String,java.lang.String>", value)
    return {text_of(key): text_of(item) for key, item in value.items() if item is not None}


def text_of(value: Any) -> str:
    """Return a JSON value as a string, also a number or a boolean. Raise `UnreadableBody` for a list or an object."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # "?" for half a surrogate pair, as in Java
    if isinstance(value, (dict, list)):
        raise wrong_type("java.lang.String", value)
    return json.dumps(value)
