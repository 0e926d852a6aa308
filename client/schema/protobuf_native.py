"""Protobuf messages, whose schema is their descriptor."""

from __future__ import annotations

import base64
import json
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, EncodeError, Message
from typing_extensions import TypeVar

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.schema import Schema, SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from pulsarium.proto.protobuf_native import message_class

M = TypeVar("M", bound=Message)


class ProtobufNativeSchema(Schema[M]):
    """Protobuf messages of a generated class.

    The broker stores the class's file and all files that the file imports.
    """

    def __init__(self, message: type[M]) -> None:
        """Make the schema of a generated class.

        Args:
            message: A class of messages, such as protoc generates.

        Raises:
            InvalidConfiguration: `message` is no class of Protobuf messages.
        """
        if not isinstance(getattr(message, "DESCRIPTOR", None), Descriptor):
            raise InvalidConfiguration(f"ProtobufNativeSchema takes a class of Protobuf messages, not {message!r}")
        self._message = message
        descriptor: Any = message.DESCRIPTOR
        files: dict[str, FileDescriptorProto] = {}
        _collect(descriptor.file, files)
        told = {  # in Java's order, so that the broker recognizes the same schema
            "fileDescriptorSet": base64.b64encode(FileDescriptorSet(file=files.values()).SerializeToString()).decode(),
            "rootMessageTypeName": descriptor.full_name,
            "rootFileDescriptorName": descriptor.file.name,
        }
        self.info: SchemaInfo = SchemaInfo(pb.Schema.ProtobufNative, json.dumps(told, separators=(",", ":")).encode())

    def encode(self, value: M) -> bytes:
        if not isinstance(value, self._message):
            raise InvalidMessage(f"{self._called()} takes {self._message.__name__}, not {type(value).__name__}")
        try:
            return value.SerializeToString()
        except EncodeError as error:
            raise InvalidMessage(f"{self._called()}: {error}") from error

    def decode(self, data: bytes, writer: SchemaInfo | None = None) -> M:
        try:
            return self._message.FromString(data)
        except DecodeError as error:
            raise InvalidMessage(f"{self._called()}: {error}") from error

    def _called(self) -> str:
        return f"ProtobufNativeSchema of {self._message.DESCRIPTOR.full_name}"


def message_of(info: SchemaInfo) -> type[Message]:
    """Return a class for the messages of a schema. Raise `InvalidMessage` when the definition cannot be used."""
    try:
        return message_class(info.data)
    except ValueError as error:
        raise InvalidMessage(*error.args) from error


def _collect(file: Any, files: dict[str, FileDescriptorProto]) -> None:
    """Add a file to `files`, after all files that it imports."""
    if file.name in files:
        return
    for imported in file.dependencies:
        _collect(imported, files)
    files[file.name] = FileDescriptorProto()
    file.CopyToProto(files[file.name])
