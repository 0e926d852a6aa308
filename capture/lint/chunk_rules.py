"""Rules of messages that come in chunks (PIP-37)."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.frames import Frame
from pulsarium.capture.lint.rule import Severity, rule
from pulsarium.capture.lint.state import State

_FIELDS = ("uuid", "num_chunks_from_msg", "total_chunk_msg_size", "chunk_id")
_CHUNKS = "PIP-37"


@rule(
    "chunk-incomplete",
    "A chunk says which it is, of how many, of which message, and how big that is.",
    _CHUNKS,
    "Set uuid, num_chunks_from_msg, total_chunk_msg_size and chunk_id, the last from 0 on.",
    on=["SEND"],
)
def _incomplete(state: State, frame: Frame) -> Iterator[str]:
    metadata = state.sent(frame).metadata
    if metadata is None:
        return
    missing = [name for name in _FIELDS if not metadata.HasField(name)]
    if missing and len(missing) < len(_FIELDS):
        yield f"a chunk without {', '.join(missing)}"
    elif not missing and not 0 <= metadata.chunk_id < metadata.num_chunks_from_msg:
        yield f"chunk {metadata.chunk_id} of {metadata.num_chunks_from_msg}"


@rule(
    "chunk-flag",
    "is_chunk of SEND says whether its entry is a chunk.",
    "PIP-37; PulsarApi.proto: CommandSend.is_chunk",
    "Set is_chunk for chunks, and for nothing else: deduplication counts chunks in another way.",
    on=["SEND"],
)
def _flag(state: State, frame: Frame) -> Iterator[str]:
    sent = state.sent(frame)
    if sent.metadata is not None and frame.body.is_chunk != sent.chunked:
        yield "a chunk without is_chunk" if sent.chunked else "is_chunk, and the entry is none"


@rule(
    "chunk-order",
    "The chunks of a message follow each other, and agree on how many there are.",
    _CHUNKS,
    "Send all chunks of a message in order, under one uuid, and again from the first that has no receipt.",
    on=["SEND"],
)
def _order(state: State, frame: Frame) -> Iterator[str]:
    metadata, producer = state.sent(frame).metadata, state.producer(frame)
    before = producer.chunked.get(metadata.uuid) if producer is not None and metadata is not None else None
    if before is None or metadata is None or not state.sent(frame).chunked:
        return  # a producer that was opened again begins with the chunk that has no receipt
    if metadata.chunk_id != before.chunk + 1:
        yield f"chunk {metadata.chunk_id} after {before.chunk}"
    if (metadata.num_chunks_from_msg, metadata.total_chunk_msg_size) != (before.chunks, before.total):
        yield (
            f"{metadata.num_chunks_from_msg} chunks with {metadata.total_chunk_msg_size} bytes, "
            f"and it was {before.chunks} with {before.total}"
        )


@rule(
    "chunk-total-wrong",
    "The chunks of a message have total_chunk_msg_size bytes.",
    _CHUNKS,
    "Set total_chunk_msg_size to the bytes of all chunks, compressed, before they are encrypted.",
    on=["SEND"],
    severity=Severity.WARNING,
)
def _total(state: State, frame: Frame) -> Iterator[str]:
    sent, producer = state.sent(frame), state.producer(frame)
    if sent.metadata is None or producer is None or not sent.chunked or sent.metadata.encryption_keys:
        return
    before = producer.chunked.get(sent.metadata.uuid)
    last = sent.metadata.chunk_id == sent.metadata.num_chunks_from_msg - 1
    if last and before is not None and before.size is not None and before.chunk + 1 == sent.metadata.chunk_id:
        size = before.size + len(sent.payload)
        if size != sent.metadata.total_chunk_msg_size:
            yield f"{size} bytes, and total_chunk_msg_size is {sent.metadata.total_chunk_msg_size}"
