"""The time for which one piece of work holds a broker's loop."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from bench.accounting import Pulse
from bench.pressure import loop
from bench.pressure.command import main
from bench.pressure.pieces import PIECES
from pulsarium.proto.framing import FrameDecoder, frame
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

CONNECTED = frame(BaseCommand(type=BaseCommand.CONNECTED, connected={"server_version": "x"}).SerializeToString())
PONG = frame(BaseCommand(type=BaseCommand.PONG, pong={}).SerializeToString())


@pytest.mark.heavy
def test_every_piece_of_work_has_a_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CALM_SECONDS", 0.01)
    monkeypatch.setattr(loop, "SETTLE_SECONDS", 0.01)
    assert main([*(piece.name for piece in PIECES), "--rounds", "1", "--scale", "0.0005"]) == 0
    told = capsys.readouterr().out
    assert [piece.title for piece in PIECES] == [line.split(" | ")[0][2:] for line in told.splitlines()[4:]]


def test_a_pulse_tells_the_longest_time_between_two_answers() -> None:
    stopped, went_on, ended = threading.Event(), threading.Event(), threading.Event()

    def broker(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        decoder, answered = FrameDecoder(), 0
        with connection:
            while data := connection.recv(1024):
                for command, _ in decoder.feed(data):
                    asked = BaseCommand.FromString(command)
                    if answered == 3:
                        stopped.set()
                        went_on.wait(60)
                    connection.sendall(CONNECTED if asked.type == BaseCommand.CONNECT else PONG)
                    answered += 1
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=broker, args=(listener,), daemon=True).start()
        with Pulse(f"pulsar://127.0.0.1:{listener.getsockname()[1]}", os.getpid()) as pulse:
            assert stopped.wait(60)
            threading.Event().wait(0.05)  # the pause that the pulse must measure
            went_on.set()
        assert ended.wait(60)
    assert pulse.gap >= 0.05
