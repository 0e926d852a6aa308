"""Scenarios of tokens and TLS."""

from __future__ import annotations

from typing import Any

from pulsarium.conformance.scenario import Stage, scenario

SOURCE = "Pulsar's documentation, Security"


def talks(stage: Stage, client: str) -> None:
    topic = stage.topic()
    consumer = stage.consumer(topic, client=client)
    stage.send(stage.producer(topic, client=client), ["a"])
    stage.receive_all(consumer, ["a"])


def refused(stage: Stage, **options: Any) -> None:
    """Fail unless a client with these options can open no producer."""
    topic = stage.topic()
    client = stage.opened("open", **options)
    kinds = ("Authentication", "Authorization", "Connect", "Timeout", "Other")
    stage.refused(kinds, "producer", client=client, topic=topic, **{"as": "x"})


@scenario("CONNECT", "A client with a token is accepted.", f"{SOURCE}: JWT", secured=True, bug="without open.token")
def a_token_is_accepted(stage: Stage) -> None:
    talks(stage, stage.connect())


@scenario(
    "CONNECT",
    "A client with a token of another key is refused.",
    f"{SOURCE}: JWT",
    secured=True,
    bug="succeeds producer",
)
def a_wrong_token_is_refused(stage: Stage) -> None:
    refused(stage, url=stage.urls[0], token=stage.material.wrong_token)


@scenario("CONNECT", "A client without a token is refused.", f"{SOURCE}: JWT", secured=True, bug="succeeds producer")
def a_missing_token_is_refused(stage: Stage) -> None:
    refused(stage, url=stage.urls[0])


@scenario(
    "CONNECT",
    "A client that trusts the authority connects over TLS.",
    f"{SOURCE}: TLS",
    secured=True,
    bug="without open.trust",
)
def a_client_connects_over_tls(stage: Stage) -> None:
    fields = {"token": stage.material.token, "trust": str(stage.material.folder / "authority.pem")}
    talks(stage, stage.opened("open", url=stage.tls_url, **fields))


@scenario(
    "CONNECT",
    "A client that does not trust the authority does not connect over TLS.",
    f"{SOURCE}: TLS",
    secured=True,
    bug="succeeds producer",
)
def a_certificate_of_another_authority_is_refused(stage: Stage) -> None:
    # the server's own certificate is no authority of itself
    other = stage.material.folder / "other.pem"
    refused(stage, url=stage.tls_url, token=stage.material.token, trust=str(other))
