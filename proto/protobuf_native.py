"""Classes of Protobuf messages from the schemas of topics, and messages as JSON."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from pulsarium.proto.errors import Misfit

_FIELD: Final = re.compile(r"Failed to parse (\w+) field: ")
_PLACE: Final = re.compile(r" at \w+\.([\w.\[\]]+)\.*(?:\s|$)")


def message_class(definition: bytes) -> type[Message]:
    """Return a class for the messages of a schema. Raise ValueError when the definition cannot be used."""
    try:
        told: dict[str, Any] = json.loads(definition)
        files = FileDescriptorSet.FromString(base64.b64decode(told["fileDescriptorSet"]))
        pool = DescriptorPool()
        for file in _importing_last(list(files.file)):
            pool.Add(file)
        return GetMessageClass(pool.FindMessageTypeByName(told["rootMessageTypeName"]))
    except (ValueError, TypeError, KeyError, DecodeError, RecursionError) as error:
        raise ValueError(f"the Protobuf definition cannot be used: {error!r}"[:200]) from error


def _importing_last(files: list[FileDescriptorProto]) -> list[FileDescriptorProto]:
    """Return the files, each after those that it imports. Clients send them in any order."""
    ordered: list[FileDescriptorProto] = []
    known: set[str] = set()
    while files:
        ready = [file for file in files if known.issuperset(file.dependency)]
        if not ready:
            raise ValueError("a file imports another that is missing")
        ordered += ready
        known.update(file.name for file in ready)
        files = [file for file in files if file.name not in known]
    return ordered


def from_json(message: type[Message], value: Any) -> bytes:
    """Return the bytes of a message. Raise `Misfit`, which names the field, when the value does not fit its class."""
    if not isinstance(value, dict):
        raise Misfit(f"expected an object with the fields of {message.DESCRIPTOR.full_name}")
    try:
        return json_format.ParseDict(value, message()).SerializeToString()
    except RecursionError:
        raise Misfit("it is nested too deeply") from None
    except (json_format.Error, ValueError, TypeError, AttributeError) as error:
        raise _misfit(str(error)) from None


def _misfit(text: str) -> Misfit:
    """Return the error with the place that the text of the library names."""
    text = text.partition("\n")[0]
    exact = _PLACE.search(text)
    path = exact[1] if exact else ".".join(_FIELD.findall(text))
    what = _FIELD.sub("", text)
    found = Misfit((_PLACE.sub("", what) if exact else what).rstrip(". "))
    return found.inside(path) if path else found


def to_json(message: type[Message], data: bytes) -> Any:
    """Return a message as JSON. Raise ValueError for bytes that are no message of the class."""
    try:
        return json_format.MessageToDict(message.FromString(data), preserving_proto_field_name=True)
    except (DecodeError, TypeError, KeyError) as error:
        raise ValueError(str(error)) from None
