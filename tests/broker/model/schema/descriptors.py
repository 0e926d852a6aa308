"""Helper that builds PROTOBUF_NATIVE schemas."""

from __future__ import annotations

import base64
import json

from google.protobuf import descriptor_pb2


def descriptor(root: str = "p.M", fields: int = 1, *, file: str = "f.proto") -> bytes:
    """Return a schema of the message `root`. Its messages are p.M and p.N with so many fields, and p.M.Inner."""
    files = descriptor_pb2.FileDescriptorSet()
    base = files.file.add(name="base.proto", package="p")
    base.message_type.add(name="Base")
    own = files.file.add(name="f.proto", package="p", dependency=["base.proto"])
    for name in ("M", "N"):
        message = own.message_type.add(name=name)
        for number in range(1, fields + 1):
            message.field.add(name=f"f{number}", number=number, type=5, label=1)
    own.message_type[0].nested_type.add(name="Inner")
    own.message_type[0].field.add(name="base", number=99, type=11, label=1, type_name=".p.Base")
    packed = base64.b64encode(files.SerializeToString()).decode()
    return json.dumps(
        {"fileDescriptorSet": packed, "rootMessageTypeName": root, "rootFileDescriptorName": file}
    ).encode()
