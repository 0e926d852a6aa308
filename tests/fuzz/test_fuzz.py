"""Tests that fuzzing finds the faults that it looks for.

Tests that run every input of the corpus, each of which reached lines of its own or found a fault. Tests that run a few
new inputs for each target, the same ones each time. Coverage does not guide these inputs, but they are made from a
corpus that coverage has guided.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import pytest

from pulsarium.broker.logs import PartLog
from pulsarium.broker.session.session import Session
from pulsarium.broker.web.admin.topic import stats
from pulsarium.proto import batch
from pulsarium.proto.errors import BatchError
from pulsarium.proto.framing import FrameDecoder
from tests.broker.wire import Type, batch_of, frame_of
from yardsticks.fuzz.commands import CONNECT, data_of
from yardsticks.fuzz.corpus import FOLDER, add_finding, corpus_of, findings_of, inputs_of, write_inputs
from yardsticks.fuzz.coverage import fewest
from yardsticks.fuzz.frames import Frames
from yardsticks.fuzz.oracle import Finding, watched
from yardsticks.fuzz.targets import TARGETS


class Fault(Exception):
    """A fault that a test puts into the broker."""


def fail() -> None:
    try:
        raise Fault
    except Fault as fault:
        raise ExceptionGroup("", [fault]) from None


@contextmanager
def found(key: str) -> Iterator[None]:
    with pytest.raises(Finding) as caught:
        yield
    assert caught.value.key.startswith(key), caught.value


def test_errors_in_the_log_and_what_escapes_are_findings() -> None:
    with found("escaped: Fault in tests/fuzz/test_fuzz.py:fail"), watched():
        fail()
    with found("something failed"), watched():
        PartLog("session").error("something failed")
    with watched():
        logging.getLogger("pulsarium.session").warning("only this connection")


def test_a_handler_that_fails_is_found() -> None:
    ping = data_of([(0, CONNECT), (0, frame_of(Type.PING))])
    TARGETS["commands"].run(ping)
    with patch.object(Session, "pong", side_effect=Fault), found("a: Fault in"):
        TARGETS["commands"].run(ping)


def test_frames_that_depend_on_their_pieces_are_found() -> None:
    real = FrameDecoder.feed
    deaf = patch.object(FrameDecoder, "feed", lambda self, data: real(self, data) if len(data) != 1 else [])
    with deaf, found("frames differ"):
        Frames().run(frame_of(Type.PING))


def test_a_batch_that_overruns_is_found() -> None:
    with patch.object(batch, "unpack", side_effect=IndexError), found("escaped: IndexError"):
        TARGETS["batches"].run(batch_of(b"x"))
    with patch.object(batch, "unpack", side_effect=BatchError):
        TARGETS["batches"].run(batch_of(b"x"))
    with patch.object(batch, "unpack", side_effect=IndexError), found("escaped: IndexError"):
        TARGETS["entries"].run(frame_of(Type.SEND, batch_of(b"x"), producer_id=0, sequence_id=0))


def test_a_route_that_fails_is_found() -> None:
    request = json.dumps([["GET", "/admin/v2/persistent/ta/ns/t/stats", "", {}]]).encode()
    TARGETS["rest"].run(request)
    with patch.object(stats, "find", side_effect=Fault), found("a: Fault"):
        TARGETS["rest"].run(request)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_are_the_same_each_time_and_go_somewhere(name: str) -> None:
    target = TARGETS[name]
    corpus = corpus_of(target)[:20]
    first, second = (
        [target.mutate(data, corpus, Random(seed)) for seed, data in enumerate(corpus)] for _ in range(2)
    )  # fmt: skip
    assert first == second
    assert sum(made != data for made, data in zip(first, corpus, strict=True)) > len(corpus) // 2


def test_the_corpus_keeps_what_adds_something(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yardsticks.fuzz.corpus.FOLDER", tmp_path)
    target, ping = Frames(), frame_of(Type.PING)
    kept = fewest(target, [b"", ping, ping + ping, b"\0\0\0\x03"])
    assert len(kept) < 4
    assert b"\0\0\0\x03" in kept
    write_inputs(target, kept)
    assert add_finding(target, "a fault", ping)
    assert not add_finding(target, "a fault", b"another")
    assert findings_of(target) == [("a fault", ping)]
    assert sorted(corpus_of(target)) == sorted([*kept, ping])


MOST_INPUTS = 500
MOST_BYTES = 1 << 20


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_in_the_corpus_breaks_anything(name: str) -> None:
    target = TARGETS[name]
    inputs = corpus_of(target)
    assert inputs
    for data in inputs:
        target.run(data)


def test_the_corpus_stays_small() -> None:
    assert sum(len(inputs_of(target)) for target in TARGETS.values()) <= MOST_INPUTS
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MOST_BYTES


SEED = 20260731


@pytest.mark.heavy
@pytest.mark.parametrize("name", TARGETS)
def test_new_inputs_break_nothing(name: str) -> None:
    target, random = TARGETS[name], Random(SEED)
    corpus = [*corpus_of(target), *target.seeds()]
    for _ in range(target.fresh):
        data = random.choice(corpus)
        for _ in range(random.randint(1, 3)):
            data = target.mutate(data, corpus, random)
        target.run(data[: target.largest])
