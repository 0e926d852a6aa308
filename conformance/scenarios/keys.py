"""Scenarios of several keys of tokens, of which each is found by its kid."""

from __future__ import annotations

from pulsarium.conformance.material import READ_AGAIN, KeyId
from pulsarium.conformance.scenario import Stage, scenario
from pulsarium.conformance.scenarios.security import refused, talks

PIP_490 = "PIP-490, rotation of the keys of tokens"


def keys(stage: Stage, *others: KeyId) -> None:
    """Let the brokers verify tokens with the key of the kit's own token, and with these."""
    stage.material.publish(KeyId.OWN, *others)
    stage.side.advance(READ_AGAIN)


@scenario(
    "PIP-490",
    "A client whose token has a further key is accepted.",
    PIP_490,
    secured=True,
    bug="without open.token",
    pip=490,
)
def a_token_of_a_further_key_is_accepted(stage: Stage) -> None:
    keys(stage, KeyId.NEXT)
    talks(stage, stage.opened("open", url=stage.urls[0], token=stage.material.token_of(KeyId.NEXT)))


@scenario(
    "PIP-490",
    "A client whose token names a key that the broker does not have is refused.",
    PIP_490,
    secured=True,
    bug="succeeds producer",
    pip=490,
)
def a_token_of_an_unknown_key_is_refused(stage: Stage) -> None:
    keys(stage)
    refused(stage, url=stage.urls[0], token=stage.material.token_of(KeyId.NEXT))


@scenario(
    "PIP-490",
    "Where tokens must name their key, a client whose token names none is refused.",
    PIP_490,
    secured=True,
    bug="succeeds producer",
    pip=490,
)
def a_token_without_a_kid_is_refused(stage: Stage) -> None:
    keys(stage)
    refused(stage, url=stage.urls[0], token=stage.material.unnamed_token)


@scenario(
    "PIP-490",
    "A client goes on when the key of its token is removed, and a new client with the token is refused.",
    PIP_490,
    secured=True,
    bug="succeeds producer",
    pip=490,
)
def a_removed_key_disconnects_nobody(stage: Stage) -> None:
    keys(stage, KeyId.NEXT)
    token = stage.material.token_of(KeyId.NEXT)
    client, topic = stage.opened("open", url=stage.urls[0], token=token), stage.topic()
    consumer, producer = stage.consumer(topic, client=client), stage.producer(topic, client=client)
    keys(stage)
    refused(stage, url=stage.urls[0], token=token)
    stage.send(producer, ["a"])
    stage.receive_in_order(consumer, ["a"], acknowledge=True)
