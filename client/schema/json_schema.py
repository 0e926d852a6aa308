"""Records as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, overload

from pulsarium.client.errors import InvalidMessage
from pulsarium.client.schema.nodes import Form
from pulsarium.client.schema.schema import SchemaInfo, T
from pulsarium.client.schema.structured import Structured
from pulsarium.proto.generated import PulsarApi_pb2 as pb


class JsonSchema(Structured[T]):
    """JSON in UTF-8. The broker is told an Avro definition, as official clients do it.

    Of a dataclass bytes are base64, enums their names and datetimes milliseconds, as Java writes them (and its `Date`;
    its `Instant`, which is seconds with a point, is read as well). The dicts of a definition are written and read as
    they are, and not held against it.
    """

    _type = pb.Schema.Json
    _form = Form.JSON

    @overload
    def __init__(self: JsonSchema[dict[str, Any]], record: Mapping[str, Any] | str) -> None: ...

    @overload
    def __init__(self, record: type[T]) -> None: ...

    def __init__(self, record: Any) -> None:
        """`record`: a dataclass, or a record's Avro definition, as a dict or in JSON.

        InvalidConfiguration for what is neither, and for types that Avro has not.
        """
        super().__init__(record)

    def _pack(self, plain: Any) -> bytes:
        if not isinstance(plain, dict):
            raise InvalidMessage(f"{self._called()} takes dict, not {type(plain).__name__}")
        return json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def _unpack(self, data: bytes, writer: SchemaInfo | None) -> Any:
        plain = json.loads(data)
        if not isinstance(plain, dict):
            raise InvalidMessage(f"{self._called()}: no JSON object")
        return plain
