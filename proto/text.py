"""Text fields: protobuf hands those that are not UTF-8 over as bytes."""


def text_of(value: str | bytes) -> str:
    """The text of a field; what is not UTF-8 is replaced, as Pulsar does."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
