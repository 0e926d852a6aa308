"""An adapter with a bug: it carries the lines of another adapter, and breaks one behavior on the way.

`python -m pulsarium.conformance.faulty "forgets key" COMMAND...` starts the adapter COMMAND. A scenario names the bug
that it must find, so that a scenario that cannot fail is noticed. The bugs:

    without OPERATION.OPTION      ignore an option
    ignores OPERATION             answer, and do nothing
    instead OPERATION OTHER       do another operation
    delays OPERATION              do an operation later than those that follow it
    once OPERATION                refuse an operation from its second time on
    sets OPERATION.FIELD JSON     do the operation with another value
    says OPERATION.FIELD JSON     answer with another value
    succeeds OPERATION            hide the errors of an operation
    forgets FIELD                 leave a field of received messages out
    tells FIELD JSON              receive messages with another value of a field
    repeats                       receive the second message of a consumer twice
    reverses                      receive the last message first
    unsends FIELD                 leave a field of published messages out
    unsends-second                publish one message less
    unorders                      publish the last message first
    acknowledges                  acknowledge each message that is received
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import IO, Any

_RECEIVES = ("receive", "receive-batch")
_NOTHING: Mapping[str, Any] = {"ids": [], "messages": []}
_DELAY = 3.0  # seconds; a busy machine may need more than one to look


class Bug:
    """A bug, by its text. Requests and answers pass one after another."""

    def __init__(self, text: str) -> None:
        self._kind, _, rest = text.partition(" ")
        self._what, _, value = rest.partition(" ")
        self._operation, _, self._field = self._what.partition(".")
        self._value: Any = value if self._kind == "instead" else json.loads(value) if value else None
        self._asked: dict[int, Mapping[str, Any]] = {}
        self._received: Counter[str] = Counter()
        self._times = 0
        self._lock = threading.Lock()

    def request(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return what the adapter is asked in place of a request, or None when it is not asked at all."""
        with self._lock:
            self._asked[request["id"]] = dict(request)
        if self._kind in ("unsends", "unsends-second") and request["do"] == "send":
            if self._kind == "unsends-second":
                del request["messages"][1:2]
            for each in request["messages"]:
                each.pop(self._what, None)
        if self._kind == "unorders" and request["do"] == "send":
            request["messages"].reverse()
        if request["do"] != self._operation:
            return request
        self._times += 1
        if self._kind == "ignores":
            return None
        if self._kind == "without":
            request.pop(self._field, None)
            for each in request.get("messages", ()):
                each.pop(self._field, None)
        elif self._kind == "sets":
            request[self._field] = self._value
        elif self._kind == "instead":
            request["do"] = self._value
        return request

    def answer(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return what the kit is told in place of an answer."""
        with self._lock:
            asked = self._asked.pop(answer["id"], {})
        operation = asked.get("do")
        if self._kind == "succeeds" and operation == self._operation and "error" in answer:
            return {"id": answer["id"], "ok": _NOTHING}
        if self._kind == "says" and operation == self._operation and "ok" in answer:
            answer["ok"][self._field] = self._value
        if operation in _RECEIVES and "ok" in answer:
            consumer = asked["consumer"]
            answer["ok"]["messages"] = self._changed(consumer, answer["ok"].get("messages", []))
        return answer

    def refuses(self, request: Mapping[str, Any]) -> bool:
        """Return whether a request that `request` has seen is refused."""
        return self._kind == "once" and request["do"] == self._operation and self._times > 1

    def delays(self, request: Mapping[str, Any]) -> bool:
        return self._kind == "delays" and request["do"] == self._operation

    def acknowledgements(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return requests that come before an answer is told."""
        with self._lock:
            asked = self._asked.get(answer["id"], {})
        if self._kind != "acknowledges" or asked.get("do") not in _RECEIVES:
            return []
        messages = answer.get("ok", {}).get("messages", [])
        return [{"do": "acknowledge", "consumer": asked["consumer"], "message": each["id"]} for each in messages]

    def _changed(self, consumer: str, messages: list[dict[str, Any]]) -> Sequence[Mapping[str, Any]]:
        told: list[dict[str, Any]] = []
        for each in messages:
            self._received[consumer] += 1
            number = self._received[consumer]
            if self._kind == "forgets":
                each.pop(self._what, None)
            elif self._kind == "tells":
                each[self._what] = self._value
            told += [each, each] if self._kind == "repeats" and number == 2 else [each]
        return told[::-1] if self._kind == "reverses" else told


class Carrier:
    """Carries lines between standard input and output and an adapter, past a bug."""

    def __init__(self, bug: Bug, adapter: IO[str]) -> None:
        self._bug = bug
        self._adapter = adapter
        self._lock = threading.Lock()
        self._own: dict[int, threading.Event] = {}

    def tell(self, answer: Mapping[str, Any]) -> None:
        with self._lock:
            sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")
            sys.stdout.flush()

    def ask(self, request: Mapping[str, Any]) -> None:
        with self._lock:
            self._adapter.write(json.dumps(request, ensure_ascii=False) + "\n")
            self._adapter.flush()

    def requested(self, line: str) -> None:
        number = json.loads(line)["id"]
        request = self._bug.request(json.loads(line))
        if request is None:
            self.tell({"id": number, "ok": _NOTHING})
        elif self._bug.refuses(request):
            self.tell({"id": number, "error": {"kind": "AlreadyClosed", "text": "done once already"}})
        elif self._bug.delays(request):
            threading.Timer(_DELAY, self.ask, (request,)).start()
        else:
            self.ask(request)

    def answered(self, line: str) -> None:
        answer = json.loads(line)
        if answer["id"] in self._own:
            self._own.pop(answer["id"]).set()
            return
        own = self._bug.acknowledgements(answer)
        if own:
            threading.Thread(target=self._after, args=(own, answer), daemon=True).start()
        else:
            self.tell(self._bug.answer(answer))

    def _after(self, requests: Sequence[Mapping[str, Any]], answer: dict[str, Any]) -> None:
        """Ask the adapter something of its own before the answer is told."""
        for number, request in enumerate(requests):
            mine = -1 - len(requests) * answer["id"] - number
            done = self._own[mine] = threading.Event()
            self.ask({"id": mine, **request})
            done.wait()
        self.tell(self._bug.answer(answer))


def main(bug: Bug, command: Sequence[str]) -> None:
    """Carry lines until the input ends."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        carrier, answers = Carrier(bug, child.stdin), child.stdout

        def listen() -> None:
            for line in answers:
                carrier.answered(line)

        threading.Thread(target=listen, daemon=True).start()
        for line in sys.stdin:
            carrier.requested(line)
        child.stdin.close()


if __name__ == "__main__":
    main(Bug(sys.argv[1]), sys.argv[2:])
