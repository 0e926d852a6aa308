from __future__ import annotations

import base64
import json
from typing import Any, assert_type

import pytest
from google.protobuf.api_pb2 import Api
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.duration_pb2 import Duration
from google.protobuf.source_context_pb2 import SourceContext
from trio.testing import MockClock

from pulsarium.client.errors import InvalidConfiguration, InvalidMessage
from pulsarium.client.schema.of_info import schema_of
from pulsarium.client.schema.protobuf_native import ProtobufNativeSchema, message_of
from pulsarium.client.schema.schema import SchemaInfo
from pulsarium.proto.generated import PulsarApi_pb2 as pb
from tests.client.schema.kept import there_and_back

API = Api(name="a", source_context=SourceContext(file_name="f"))


@pytest.mark.req("B-30")
def test_messages_of_a_class() -> None:
    schema = ProtobufNativeSchema(Api)
    assert_type(schema, ProtobufNativeSchema[Api])
    assert schema.decode(schema.encode(API)) == API
    with pytest.raises(InvalidMessage, match="takes Api, not Duration"):
        schema.encode(Duration())  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        schema.decode(b"\xff")
    with pytest.raises(InvalidMessage):
        ProtobufNativeSchema(pb.MessageIdData).encode(pb.MessageIdData())  # without its required fields


@pytest.mark.req("B-30")
def test_the_broker_is_told_a_protobuf_definition() -> None:
    info = ProtobufNativeSchema(Api).info
    told = json.loads(info.data)
    assert list(told) == ["fileDescriptorSet", "rootMessageTypeName", "rootFileDescriptorName"]
    assert (info.type, told["rootMessageTypeName"]) == (pb.Schema.ProtobufNative, "google.protobuf.Api")
    assert told["rootFileDescriptorName"] == "google/protobuf/api.proto"
    files = FileDescriptorSet.FromString(base64.b64decode(told["fileDescriptorSet"], validate=True)).file
    names = [file.name for file in files]
    assert len(names) == len(set(names)) == 4
    assert all(set(file.dependency) <= set(names[:at]) for at, file in enumerate(files))


def test_a_class_made_of_a_schema() -> None:
    schema = schema_of(ProtobufNativeSchema(Api).info)
    assert schema.info == ProtobufNativeSchema(Api).info
    read = schema.decode(API.SerializeToString())
    assert (read.name, read.source_context.file_name) == ("a", "f")
    assert type(read) is not Api


def told_of(**changed: Any) -> SchemaInfo:
    told = json.loads(ProtobufNativeSchema(Api).info.data)
    return SchemaInfo(pb.Schema.ProtobufNative, json.dumps(told | changed).encode())


@pytest.mark.parametrize("reverse", [False, True])
def test_files_in_any_order(reverse: bool) -> None:
    files = FileDescriptorSet.FromString(base64.b64decode(json.loads(told_of().data)["fileDescriptorSet"]))
    ordered = sorted(files.file, key=lambda file: file.name, reverse=reverse)
    encoded = base64.b64encode(FileDescriptorSet(file=ordered).SerializeToString()).decode()
    assert message_of(told_of(fileDescriptorSet=encoded)).DESCRIPTOR.full_name == "google.protobuf.Api"


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(pb.Schema.ProtobufNative, b"{"),
        SchemaInfo(pb.Schema.ProtobufNative, b"[]"),
        SchemaInfo(pb.Schema.ProtobufNative, b"{}"),
        told_of(rootMessageTypeName="google.protobuf.Nothing"),
        told_of(fileDescriptorSet=""),
        told_of(fileDescriptorSet=5),
        told_of(fileDescriptorSet="AAAA"),
        told_of(
            fileDescriptorSet=base64.b64encode(
                FileDescriptorSet(
                    file=[
                        FileDescriptorProto(name="a", dependency=["b"]),
                        FileDescriptorProto(name="b", dependency=["a"]),
                    ]
                ).SerializeToString()
            ).decode()
        ),
    ],
)
def test_protobuf_definitions_that_make_no_sense_are_refused(info: SchemaInfo) -> None:
    with pytest.raises(InvalidMessage, match="cannot be used"):
        schema_of(info)


@pytest.mark.parametrize("kind", [int, "Api", None])
def test_a_type_that_is_no_message_class_is_refused(kind: Any) -> None:
    with pytest.raises(InvalidConfiguration):
        ProtobufNativeSchema(kind)


async def test_messages_come_back_from_a_broker_that_knows_their_class(autojump_clock: MockClock) -> None:
    (message,), info = await there_and_back(ProtobufNativeSchema(Api), API)
    assert (message.value(), info.type) == (API, pb.Schema.ProtobufNative)
    assert schema_of(info).decode(message.data()).name == "a"
