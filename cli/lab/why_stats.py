"""Explain a subscription from what any Pulsar broker tells, or from stats in files, for `pulsarium why`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pulsarium.cli.admin.api import Api, done
from pulsarium.cli.admin.errors import AdminError
from pulsarium.cli.admin.output import table
from pulsarium.cli.refusal import RunRefused
from pulsarium.proto.errors import InvalidTopicName
from pulsarium.proto.topic_name import PERSISTENT, TopicName
from pulsarium.rest.why import Explained, Facts, explain
from pulsarium.rest.why.explain import as_json, ranked
from pulsarium.rest.why.pasted import NotPasted, pasted
from pulsarium.rest.why.reader import WhyReader


def of_cluster(api: Api, topic: str, subscription: str | None) -> list[Explained]:
    """Return the answers for a topic of any broker, the one that is stuck most first."""
    try:
        name = TopicName.parse(topic)
    except InvalidTopicName as error:
        raise AdminError(str(error)) from None
    if name.domain != PERSISTENT:
        raise AdminError(f"stats explain persistent topics, and {name} is none; name a persistent:// topic")
    return _explained(done(WhyReader(api).read(name, subscription)), subscription)


def of_files(paths: Sequence[Path], topic: str | None, subscription: str | None) -> list[Explained]:
    """Return the answers for stats in files. Raise `RunRefused` for a file that has none."""
    documents = [_read(path) for path in paths]
    try:
        return _explained(pasted(documents, topic or "", subscription), subscription)
    except NotPasted as error:
        raise RunRefused(f"--from {','.join(map(str, paths))}: {error}") from None


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise RunRefused(f"--from: {path}: {error.strerror}") from None
    except ValueError:
        raise RunRefused(f"--from: {path} is no JSON; write there what `topics stats` prints") from None


def _explained(found: Sequence[Facts], subscription: str | None) -> list[Explained]:
    named = [each for each in found if each.subscription or each.refused]
    if subscription is not None and not named:
        others = sorted({name for each in found for name in each.subscriptions})
        raise AdminError(
            f"{found[0].topic} has no subscription {subscription}; there are: {', '.join(others) or 'none'}"
        )
    return ranked(map(explain, named or found))


def tell(answers: list[Explained], *, json_asked: bool) -> None:
    """Print the answers: the first in full, and a table of all where there are several."""
    if json_asked:
        click.echo(json.dumps(as_json(answers), indent=2))
        return
    first = answers[0]
    if not first.findings:
        click.echo(f"{first.reason}: {first.text}")
    for each in first.findings:
        click.echo(f"{each.reason}: {each.text} ({each.certainty})")
        for name, value in each.facts.items():
            click.echo(f"  {name}: {value if isinstance(value, str) else json.dumps(value)}")
        click.echo(f"  next: {each.advice}")
        click.echo(f"  $ {each.command}")
        if each.destructive:
            click.echo(f"  this one loses messages or deletes the topic:\n  $ {each.destructive}")
    if len(answers) > 1:
        click.echo(table([_row(each) for each in answers]))


def _row(answer: Explained) -> dict[str, Any]:
    base, partition, number = answer.facts.topic.rpartition("-partition-")
    return {
        **({"partition": number} if base and partition else {}),
        "subscription": answer.facts.subscription,
        "backlog": answer.backlog,
        "unacked": answer.unacked,
        "reason": answer.reason,
        "text": answer.text,
    }
