"""Ask a store from a test, wait for its answer, and fill its disk."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import trio

from pulsarium.broker.storage.interface import Batch, EntryRun


async def ask(call: Callable[..., None], *arguments: object) -> Any:
    """Call `call(*arguments, done)`, and return or raise what `done` gets."""
    answers: list[Any] = []
    answered = trio.Event()

    def done(answer: Any) -> None:
        answers.append(answer)
        answered.set()

    call(*arguments, done)
    await answered.wait()
    if isinstance(answers[0], Exception):
        raise answers[0]
    return answers[0]


def batch_of(ledger_id: int, first: int, *entries: bytes, era: int = 0, **metadata: bytes | None) -> Batch:
    """Build a batch with one run of entries, and with metadata by name."""
    return Batch({ledger_id: [EntryRun(first, list(entries))]} if entries else {}, dict(metadata), era=era)


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """Limit the size of files, because a test without privileges cannot fill a disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
