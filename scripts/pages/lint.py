"""Generate docs/lint.md: the rules, and the rules that official clients break."""

from __future__ import annotations

from collections.abc import Iterator

from pulsarium.capture.lint.checker import SECTIONS
from pulsarium.capture.lint.rule import RULES, LintRule
from pulsarium.proto.commands import Direction

_INTRODUCTION = """# The linter

With the linter you find out which rules of the protocol a client or a broker breaks. `pulsarium lint` reads the frames
between a client and a broker. The linter reports each violation with the rule, the frame, the source in Pulsar, and the
remedy. The frames come from captures of Pulsarium (`pulsarium capture`, `serve --capture`), from captures of any broker
through the proxy or [tcpdump](wire.md#tcpdump), or from a running broker:

<!-- hidden: bash
pulsarium capture start
pulsarium client produce orders --messages first
pulsarium capture stop --out run.pulscap
mkdir captures
cp run.pulscap captures
-->

```sh
pulsarium lint run.pulscap
pulsarium lint captures/ --format html --out report.html   # or json, sarif, junit
pulsarium lint --live --start      # judge connections that are opened from now on
pulsarium lint --live --clear      # print the findings, and forget them
```

The exit code is 1 when a rule was broken (0 with `--exit-zero`), and 2 when a capture cannot be read or a broker does
not answer. Over HTTP, use GET and DELETE `/lab/violations`, and POST `/lab/violations/start` and `/stop`. In Python,
use `lab.linter.start()`, `.violations()` and `.clear()`.

After an **error** the other side refuses a command, drops a frame or closes the connection, or messages are lost,
doubled or garbled. Current brokers accept a frame with a **warning**, but the frame works by chance, or does not have
the effect that it seems to have.

The linter judges a connection when the capture contains its opening. If another connection was open before the
capture began, the linter blames nobody for frames that may have come over that connection. The linter blames nobody for
frames that a fault of the lab dropped, doubled or changed. On such a connection it stops judging the broker, and judges
the client by the frames that the client sent itself. A running broker keeps the first 200 findings of each rule and
counts the others.

The rules of scalable topics follow the requirements C1 to C15 of Pulsar's specification, which the last column names.
They judge all connections of a capture together, because a client has connections to many brokers. The rule of C15 is
`feature-not-offered`. A client is late, and breaks no rule, in the first second after a new layout or assignment.

## Rules that official clients break

`tests/foreign/test_linter.py` runs scenarios of the conformance kit with official clients, and a broker with a running
linter. The clients are Python 3.13.0 (C++ 4.2.0), Java 4.2.4 and Go 0.19.0. They keep all rules except these:

{findings}

Java's violation is a rare race: one capture shows it, and the last 180 scenarios do not. All three clients send grouped
acknowledgements after the SUCCESS of UNSUBSCRIBE. That breaks no rule, because the subscription is deleted and nothing
is lost. These are the frames of Go's `Nack` of one of ten messages on Exclusive:

<!-- illustration: frames of a recorded client, shortened -->
```
→ SUBSCRIBE    subscription=s subType=Exclusive consumer_id=1
← MESSAGE      consumer_id=1 message_id=0:0, and so on to 0:9
→ REDELIVER_UNACKNOWLEDGED_MESSAGES consumer_id=1 message_ids=[0:4]
← MESSAGE      consumer_id=1 message_id=0:0, and so on to 0:9
```

These are the frames of Java's `unsubscribe`:

<!-- illustration: frames of a recorded client, shortened -->
```
→ UNSUBSCRIBE  consumer_id=172 request_id=...673
← SUCCESS      request_id=...673
→ ACK          consumer_id=172 ack_type=Individual message_id=[304:0,304:1,304:2,304:3,304:4]
```

The community's Rust client 6.9.1 breaks three rules in captures of the matrix:

- `compression-wrong`: The client uses Snappy's framed format, which clients of other languages cannot read. Payloads
  begin with `ff 06 00 00 73 4e 61 50 70 59`.
- `closed-twice`: The client closes a closed consumer again when the consumer is dropped.
- `newer-field`: The client announces version 12 and subscribes as Key_Shared, which belongs to version 14.
"""

_FINDINGS = (
    (
        "Go 0.19.0",
        "redeliver-ids-ignored",
        "`Nack` names messages in REDELIVER_UNACKNOWLEDGED_MESSAGES also on Exclusive and Failover",
        "the broker ignores the ids and redelivers all unacknowledged messages, nacked or not",
    ),
    (
        "Java 4.2.4",
        "ack-after-close",
        "grouped acknowledgements may come up to 100 ms after the SUCCESS of CLOSE_CONSUMER",
        "the broker drops them, and redelivers the messages",
    ),
)


def lint_page() -> str:
    """Return the text of docs/lint.md, with every rule in the order of the sections."""
    about = sum(each.about is not Direction.BROKER for each in RULES.values())
    return "\n".join(
        (
            "<!-- Generated by scripts/pages/lint.py from capture/lint; do not edit. -->",
            "",
            _INTRODUCTION.replace("{findings}", "\n".join(_findings())),
            f"## All {len(RULES)} rules, of which clients can break {about}",
            "",
            *_tables(),
            "",
        )
    )


def _findings() -> Iterator[str]:
    yield "| client | rule | behavior | consequence |"
    yield "|---|---|---|---|"
    for client, name, *said in _FINDINGS:
        assert name in RULES, name
        yield f"| {client} | `{name}` | {' | '.join(said)} |"


def _tables() -> Iterator[str]:
    for section in SECTIONS:
        title, _, about = section.title.partition(": ")
        yield from (f"### {title}", "")
        if about:
            yield from (f"{about[0].upper()}{about[1:]}.", "")
        yield "| rule | severity | about | requirement | remedy | source |"
        yield "|---|---|---|---|---|---|"
        yield from map(_row, section.rules)
        yield ""


def _row(rule: LintRule) -> str:
    cells = (rule.demands, rule.mend, rule.reference)
    texts = " | ".join(text.replace("|", "\\|").replace("*", "\\*") for text in cells)
    return f"| `{rule.name}` | {rule.severity.value} | {rule.about.value} | {texts} |"
