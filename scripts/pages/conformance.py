"""Generate docs/conformance.md: the conformance kit, the protocol of its adapters, and its scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pulsarium.conformance.clients import CLIENTS, Release
from pulsarium.conformance.proof import proofs
from pulsarium.conformance.protocol import KINDS, OPERATIONS, PROTOCOL
from pulsarium.conformance.recordings.catalogue import recorded
from pulsarium.conformance.recordings.releases import RELEASES
from pulsarium.conformance.scenarios import SCENARIOS
from pulsarium.conformance.scenarios.scalable import SPECIFICATION

_INTRODUCTION = """# The conformance kit

The kit tests whether a client does what Pulsar's documents demand. Each of its {count} scenarios is one sentence of a
document. The scenario drives the client while brokers deliver, redeliver, move, fail or split segments, and judges
the client by its answers, by the state of the brokers, and by all frames. Scenarios are written once, for every
client: an [adapter](adapters.md) of about 300 lines lets the kit drive a client.

<!-- illustration: plays for minutes, with clients in Java and Go; tests/conformance/test_clients.py does -->
```sh
pulsarium conformance client --client go,java@2.11.4,java --report build/conformance
pulsarium conformance client --command './adapter' --scenario 'a-batch-*,routing-*'
```

```sh
pulsarium conformance client --list    # all scenarios
```

The exit code is 1 when a scenario failed or had an error. The report has a page, `conformance.html`, whose cells link
to logs and frames; Markdown, `conformance.md`; JUnit XML, `conformance.xml`; a line for each result as it comes,
`conformance.jsonl`; and the text of a badge, `badge.txt`. The brokers run in the kit's own process. With `--broker
URL --admin-url URL` the kit drives the client against a running broker of any kind instead, behind a proxy that
records the frames. Scenarios that need a second broker, the broker's clock, or a broken connection are unsupported
there. With `--through-proxy` clients reach the brokers of the kit through [proxies](real-clusters.md#the-proxy), and
the results must be the same.

| result | meaning |
|---|---|
| pass | The client did what the sentence demands, and its frames break no rule of the linter. |
| fail | The client did something else, or its frames break a rule. |
| unsupported | The client, or the broker, lacks what the scenario needs. That is never a pass. |
| error | The adapter or the broker did not do its part, so that the scenario says nothing about the client. |

## The other side: brokers

`pulsarium conformance broker` is for authors of brokers and proxies. A raw client played {recordings} scenarios against
a real Pulsar, and every frame was recorded. The command plays them against a broker that runs, and compares each
answer: fields, order, closings, REST answers.

```sh
pulsarium conformance broker --show-conf > broker.conf
pulsarium conformance broker --release 5.0.1-scalable --list
```

<!-- illustration: plays all recordings; tests/replay does -->
```sh
pulsarium conformance broker --url pulsar://127.0.0.1:6650 --admin-url http://127.0.0.1:8080 --report build/broker
```

Give the broker the settings that `--show-conf` prints. The report has `NAME.jsonl`, all frames; `NAME.diff`, the
answers that differ; and JUnit XML, `broker.xml`. The exit code is 1 when a scenario differs. There are recordings of
{releases}.

## The protocol of adapters

[Write an adapter](adapters.md) teaches how to begin. An adapter reads one JSON object a line from standard input, and
writes one a line to standard output. Requests have an `id` that the answer repeats. Answers may come in any order.

The kit chooses handles (`as`). The adapter chooses message ids and checkpoints, which are texts to the kit. `hello`
is answered with `protocol` ({protocol}), `client`, `version`, and `topics`, the kinds of topics that the client
knows: `classic`, `scalable` (topic://), or both. `operations` names the operations that the client has, and `lacks`
says why it does not have an operation or an option (`operation.option`). A scenario that needs one of these is
unsupported. Every other option must work. `proposals` has the numbers of the [proposals](proposals.md) that the client
knows before a release of Pulsar has them, and other clients need not name it. `send` publishes all its messages at
once, in order. An adapter runs many scenarios one after another; the kit closes what a scenario has opened.

An error has one of these kinds: {kinds}.

Adapters for these clients are part of this package, in `conformance/adapters`; other releases of most can be chosen,
such as `java@2.11.4`: {clients}.

"""

_SPECIFICATION = f"""The sources of scalable topics are sections of Pulsar's
[specification of scalable topics](https://github.com/apache/pulsar/tree/master/spec/scalable-topics), in the text
that PIP-494 adopts as version {SPECIFICATION}, each with its number in the conformance checklist or an optional
capability: `C2: client behavior 2` is section 2 of client-behavior.md, for requirement C2 of conformance.md.
Conformance, data model and error model were read as stable texts, the other documents in their last known draft. See
[where its texts contradict each other](scalable-topics.md#where-texts-contradict-each-other).
"""


def conformance_page() -> str:
    """Return the text of docs/conformance.md."""
    clients = ", ".join(f"`{name}` ({Release(name).title})" for name in CLIENTS)
    kinds = ", ".join(KINDS)
    counts = {name: len(recorded(release)) for name, release in RELEASES.items()}
    introduction = _INTRODUCTION.format(
        count=len(SCENARIOS),
        protocol=PROTOCOL,
        kinds=kinds,
        clients=clients,
        recordings=sum(counts.values()),
        releases=", ".join(f"`{name}` ({count})" for name, count in counts.items()),
    )
    return "\n".join(
        (
            "<!-- Generated by scripts/pages/conformance.py from conformance/; do not edit. -->",
            "",
            f"{introduction}### Operations",
            "",
            "| operation | meaning | options that a client may lack |",
            "|---|---|---|",
            *_operations(),
            "",
            "## Scenarios",
            "",
            "A scenario passed on the real Pulsar of the column *proof*, with the client of this package, or cannot",
            "run there (`conformance/proof.py`). The last column is a bug that the scenario finds when it is planted",
            "between the kit and a client (`conformance/faulty.py`).",
            "",
            _SPECIFICATION,
            *_scenarios(),
        )
    )


def _operations() -> Iterator[str]:
    for name, operation in OPERATIONS.items():
        options = "<br>".join(f"`{option}`: {about}" for option, about in operation.options.items())
        yield f"| `{name}` | {operation.about} | {options} |"


def _scenarios() -> Iterator[str]:
    known = proofs()
    ordered = sorted(SCENARIOS.values(), key=lambda each: (each.topics, each.subject))
    for subject, scenarios in groupby(ordered, key=lambda each: each.subject):
        kind, _, name = subject.rpartition(".")
        yield f"### {name.capitalize()}{' of scalable topics' if kind else ''}"
        yield ""
        yield "| scenario | sentence | source | proof | planted bug |"
        yield "|---|---|---|---|---|"
        for each in scenarios:
            sentence = each.sentence.replace("|", "\\|")
            bug = f"`{each.bug}`" if each.bug else ""
            proof = known[each.name].told
            yield f"| `{each.name}` | {sentence} | {each.requirement}: {each.source} | {proof} | {bug} |"
        yield ""
