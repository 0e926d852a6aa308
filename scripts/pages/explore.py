"""Generate docs/explore.md: explorations, and the table of kinds."""

from __future__ import annotations

from pulsarium.broker.lab.explore.kinds import KINDS, ONLY_BROKER, ChoiceKind

_INTRODUCTION = """# Explore

Does your application survive what Pulsar may do?

A broker may close a connection before or behind its work, deliver a message again, unload a topic, or crash and come
back. All of this is rare in tests, and certain in production. `pulsarium explore` runs your program again and again.
Each run has a new broker in memory, which does what Pulsar is allowed to do, at moments that a seed chooses.

## Find a bug

This program handles orders. It assumes that each order is delivered once:

<!-- tested: tests/cli/explore/test_explore.py -->
```python
# orders.py
import os, trio
from pulsarium import client as pulsar

ORDERS = 5


async def main():
    billed = []
    async with (
        pulsar.connect(os.environ["PULSAR_SERVICE_URL"]) as client,
        client.create_producer("orders") as producer,
        client.subscribe("orders", "billing", initial_position=pulsar.InitialPosition.Earliest) as consumer,
    ):
        for number in range(ORDERS):
            await producer.send(b"order %d" % number)
        while len(set(billed)) < ORDERS:
            message = await consumer.receive()
            billed.append(message.data())
            await consumer.acknowledge(message)
    assert len(billed) == ORDERS, f"an order was billed twice: {billed}"


trio.run(main)
```

<!-- tested: tests/cli/explore/test_explore.py -->
```sh
pulsarium explore --runs 200 --seed 10 -- python orders.py
```

A run fails when the program ends with another exit code than 0, takes longer than `--timeout`, or when the history of
the run breaks a [promise of Pulsar](check.md). The failing run is repeated, and its decisions are reduced: fewer, then
earlier ones. The report has the least script that still fails:

<!-- tested: tests/cli/explore/test_explore.py -->
```
failed: COMMAND ended with exit code 1
repeated: 5 of 5 more runs of the seed 10/2 failed, 5 with the same decisions
least script: 1 decision
  receipt-lost SEND 0
      Store a message, and close the connection instead of sending the receipt.
      Legal: A network connection can end at any moment. The client sends the message again: at-least-once, ...

Repeat:
  pulsarium explore --decide 'receipt-lost SEND 0' -- python orders.py
  @pytest.mark.pulsar(explore=["receipt-lost SEND 0"])
  pulsarium fault add SEND close --after-work

Frames around the last decision:
  ...
```

The exit code is 0 when no run failed, 1 when one did, and 2 when the command line is wrong. It is 126 when the program
cannot be executed, and 127 when the program does not exist.

## Decisions and scripts

A **choice point** is a frame at which a kind can be chosen. A **decision** is a kind, a command and an index:
`receipt-lost SEND 0` loses the receipt of the first SEND. Some kinds have a value: `clock-jump FLOW 0 65` advances the
clock by 65 seconds. A **script** is a file with a decision on each line. `#` begins a comment.

<!-- tested: tests/cli/explore/test_explore.py -->
```sh
pulsarium explore --decide "receipt-lost SEND 0" -- python orders.py
pulsarium explore --script found.script -- python orders.py
```

Points are counted, and not timed. So a program whose frames have the same order in each run repeats exactly. The report
shows how many of five more runs failed, and how many made the same decisions.

A search ends at its first failure. With `--keep-going`, it makes all its runs, and reports each distinct failure once.
Two failures are the same when their least scripts have the same kinds at the same commands. A failing run that passes
without the decisions of known scripts is only counted.

Scripts that failed are kept in `.pulsarium/explore-failures`, and run first next time (`--failures FILE`).

## Choose what happens

<!-- tested: tests/cli/explore/test_explore.py -->
```sh
pulsarium explore --list
pulsarium explore --runs 20 --only receipt-lost --only ack-lost --rate receipt-lost=0.3 -- python orders.py
pulsarium explore --runs 10 --only not-ready --only slow-receipt -- python orders.py
```

- `--only KIND` uses these kinds alone, `--without KIND` all others, and `--rate KIND=P` sets a probability.
- The first run makes no choice. It shows the choice points, and whether the program works at all.
- Each other run uses a random half of the kinds (swarm testing), and makes at most eight decisions.
- The broker notes which kinds were chosen at which commands, in which state of the subscription or the producer.
  Half of the runs begin with a decision at a place that no run has tried. The summary shows this coverage.
- The options of `pulsarium serve` work here too: `--brokers 2`, `--set`, `--profile`, `--tls-port`. `--create FILE` is
  its `--seed FILE`. Each run has a new broker in memory, so `--data`, `--capture` and `--ready-file` are refused.

## Many runs

A start of a Java program costs more than its run. With `--persistent`, the program is started once. For each run, it
reads one line of JSON from its standard input, and answers one line:

<!-- illustration: the two sides of a dialogue; test_one_process_runs_all_runs has it -->
```
{"run": 3, "serviceUrl": "pulsar://127.0.0.1:40001", "adminUrl": "http://127.0.0.1:40002"}
ok
{"run": 4, "serviceUrl": "pulsar://127.0.0.1:40003", "adminUrl": "http://127.0.0.1:40004"}
failed order 3 was billed twice
```

Other lines of its output go to stderr. At the end of its input, the program ends. `--jobs N` runs N at a time, each
with a broker and a program of its own.

## In Python

<!-- illustration: the application is that of a reader; tests/client/test_explored.py calls the function -->
```python
from pulsarium.broker.testing.explore import explore


def test_orders():
    explore(lambda broker: run_my_application(broker.service_url), runs=200, seed=7, name="test_orders")
```

`explore` raises `Explored`, an `AssertionError` with the same report. Its cause is the error of the application.

## In front of any Pulsar

With `--proxy`, the runs use a running broker of any kind, each by way of a [proxy](real-clusters.md#the-proxy):

<!-- illustration: names the cluster of a reader; tests/examples/test_explore.py explores a broker of its own -->
```sh
pulsarium explore --proxy pulsar://staging:6650 --proxy-admin-url http://staging:8080 --delete-topics \\
  -- python orders.py
```

The proxy makes the choices of a network, and refuses in the broker's place (`not-ready`). It leaves out what only a
broker of Pulsarium can do: OF_BROKER.

The runs share the cluster, so that a message which one run leaves is delivered to the next. Use new topics in each run,
or `--delete-topics`. This option deletes every persistent topic whose producer or consumer a run opened, with all its
messages, also a topic that was there before. It sends the token of `PULSARIUM_TOKEN`. In front of a broker that may be
production, the command refuses to run without `--yes-not-production`. A real broker has timers of its own, so fewer
runs repeat with the same decisions. With `--jobs`, each run needs topics of its own: the command ends when two runs at
once have opened the same topic, for their verdicts would be wrong.

In Python, the test gets a `PulsarProxy`. In pytest, each run of a test with the fixture `pulsar_proxy` has a new proxy:

<!-- illustration: names the cluster of a reader; tests/broker/testing/test_exploring_mark.py runs such tests -->
```python
def test_orders():
    cluster = {"proxy": "pulsar://staging:6650", "proxy_admin_url": "http://staging:8080"}
    explore(lambda proxy: run_my_application(proxy.service_url), **cluster, delete_topics=True, name="test_orders")


@pytest.mark.pulsar(explore=200, delete_topics=True)  # pulsar_proxy_url and pulsar_proxy_admin_url name the cluster
def test_payments(pulsar_proxy):
    assert run_my_application(pulsar_proxy.service_url) == "paid once"
```

The options are `proxy`, `proxy_admin_url`, `delete_topics`, `token` (for the deletion) and `yes_not_production`.

## What is legal, and what is not

Everything here is allowed by Pulsar's contract. A correct application passes however often you run it. The
connection is TCP, so no frame is lost in the middle of a connection: the connection ends, too. Deduplication still
stores one of two equal messages, ordered subscriptions stay in order, and a crash loses nothing that was confirmed.
[Faults](faults.md) can do more, also what no broker does. The history of a run has each frame of the broker where the
broker sent the frame, also one that arrived late.
"""


def explore_page() -> str:
    """Return the text of docs/explore.md."""
    return "\n".join(
        (
            _INTRODUCTION.replace("OF_BROKER", ", ".join(f"`{kind}`" for kind in ONLY_BROKER)),
            "## Kinds",
            "",
            "Generated from `broker/lab/explore/kinds.py`. The rate is the probability at each moment, in runs that",
            "use the kind.",
            "",
            "| kind | what happens | why Pulsar may do the same | at | rate | values |",
            "|---|---|---|---|---|---|",
            *map(_row, KINDS.values()),
            "",
        )
    )


def _row(kind: ChoiceKind) -> str:
    values = f"{', '.join(f'{value:g}' for value in kind.values)} {kind.unit}" if kind.values else ""
    moments = [*(f"`{command}`" for command in kind.before), *(f"after `{command}`" for command in kind.after)]
    at = ", ".join(moments) or "the start"
    return f"| `{kind.name}` | {kind.does} | {kind.legal} | {at} | {kind.rate:g} | {values} |"
