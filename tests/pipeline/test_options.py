"""Options of the data source that its source and its sink share."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from pulsarium.client import Authentication, AuthenticationBasic, AuthenticationTLS, AuthenticationToken
from pulsarium.pipeline.options import CONNECTION, BadOption, ConnectionOptions, Options
from pulsarium.pipeline.sink.options import SinkOptions
from pulsarium.pipeline.source.options import SourceOptions

URL = {"service.url": "pulsar://localhost:6650"}
SECRET = "s3cret"


def connection(**options: str) -> ConnectionOptions:
    """Return a connection with options of Pulsar's client. Their names lack the prefix `pulsar.client.`."""
    return ConnectionOptions.of(Options(URL | {f"pulsar.client.{name}": value for name, value in options.items()}))


def test_names_have_no_case() -> None:
    options = Options({"Service.URL": "x", "maxBytesPerTrigger": "5"})
    assert options.required("service.url") == "x"
    assert options.number("MAXBYTESPERTRIGGER", 1) == 5
    assert options.text("nobody") is None
    assert options.text("nobody", "y") == "y"


@pytest.mark.parametrize("read", [SourceOptions.of, SinkOptions.of])
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("Topik", 'unknown option "Topik": did you mean "topic"?'),
        ("pulsar.client.authParam", 'did you mean "pulsar.client.authParams"?'),
        ("xyz", "docs/pipeline-options.md lists all options"),
        ("kafka.bootstrap.servers", "its counterpart is service.url"),
        ("SUBSCRIBE", "its counterpart is topic or topics"),
    ],
)
def test_an_unknown_option_is_refused_with_the_most_similar_name(
    read: Callable[[Mapping[str, str]], Any], given: str, reason: str
) -> None:
    with pytest.raises(BadOption, match=re.escape(reason)):
        read({**URL, "topic": "t", given: "x"})


def test_subscribe_beside_the_same_topic_is_accepted() -> None:
    given = {**URL, "topic": "t"}
    assert SourceOptions.of({**given, "Subscribe": "t"}) == SourceOptions.of(given)


@pytest.mark.parametrize("read", [SourceOptions.of, SinkOptions.of])
def test_options_of_spark_itself_are_no_options_of_the_data_source(read: Callable[[Mapping[str, str]], Any]) -> None:
    read({**URL, "topic": "t", "path": "x", "checkpointLocation": "y", "provider": "pulsar", "option.topic": "t"})


@pytest.mark.parametrize("given", [{}, {"service.url": ""}])
def test_a_missing_required_option_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadOption, match=r'\.option\("service.url", \.\.\.\) is missing'):
        ConnectionOptions.of(Options(given))


def test_a_number_is_read_from_its_option() -> None:
    options = Options({"a": " 7 ", "b": "-1", "c": "x", "d": "", "e": "²", "f": "1.5", "g": "0"})
    assert options.number("a", 1) == 7
    assert options.number("nobody", 1) == 1
    assert options.number("g", 1) == 0
    for name in "bcdef":
        with pytest.raises(BadOption, match=f'option "{name}" must be a whole number of at least 0, not'):
            options.number(name, 1)
    with pytest.raises(BadOption, match="at least 1, not '0'"):
        options.number("g", 1, least=1)


def test_flags_and_choices() -> None:
    options = Options({"a": "TRUE", "b": "false", "c": "yes"})
    assert options.flag("a", default=False) is True
    assert options.flag("b", default=True) is False
    assert options.flag("nobody", default=True) is True
    with pytest.raises(BadOption, match='option "c" must be true or false, not'):
        options.flag("c", default=True)
    assert options.choice("a", {"True": 1, "Other": 2}, "Other") == 1
    assert options.choice("nobody", {"True": 1, "Other": 2}, "Other") == 2
    with pytest.raises(BadOption, match='option "c" must be one of True, Other, not'):
        options.choice("c", {"True": 1, "Other": 2}, "Other")


def test_the_options_of_a_connection_are_read() -> None:
    assert ConnectionOptions.of(Options(URL)) == ConnectionOptions(URL["service.url"])
    made = connection(
        tlsTrustCertsFilePath="ca.pem",
        tlsAllowInsecureConnection="true",
        tlsHostnameVerificationEnable="false",
        connectionTimeoutMs="500",
        operationTimeoutMs="1500",
    )
    assert made == ConnectionOptions(
        URL["service.url"], None, "", "", "ca.pem", allow_insecure=True, validate_hostname=False,
        connection_timeout=0.5, operation_timeout=1.5,
    )  # fmt: skip


def test_each_documented_option_takes_effect() -> None:
    """A nonsense value of an option in the table is refused, or appears in the connection."""
    for described in CONNECTION:
        given = Options(URL | {described.name: "nonsense"})
        if described.name.endswith(".authParams"):
            continue  # read only with a plug-in
        try:
            made = ConnectionOptions.of(given)
            effect = [*vars(made).values(), *vars(made.admin or made).values()]
        except BadOption as refused:
            effect = ["nonsense"] if described.name in str(refused) else []
        assert "nonsense" in effect, described.name


def data_of(made: Authentication | None) -> bytes:
    assert made is not None
    return anyio.run(made.auth_data)


@pytest.mark.parametrize("plugin", ["AuthenticationToken", "org.apache.pulsar.client.impl.auth.AuthenticationToken"])
@pytest.mark.parametrize("params", [f"token:{SECRET}", SECRET, json.dumps({"token": SECRET})])
def test_a_token_is_read_in_each_form(plugin: str, params: str) -> None:
    made = connection(authPluginClassName=plugin, authParams=params)
    assert isinstance(made.authentication(), AuthenticationToken)
    assert data_of(made.authentication()) == SECRET.encode()


@pytest.mark.parametrize("form", ["file://{}", "file:{}"])
def test_a_file_with_a_token_is_read_when_it_is_needed(tmp_path: Path, form: str) -> None:
    path = tmp_path / "token"
    made = connection(authPluginClassName="AuthenticationToken", authParams=form.format(path))
    authentication = pickle.loads(pickle.dumps(made)).authentication()
    for token in ("first", "second"):
        path.write_text(f"{token}\n", encoding="utf-8")
        assert data_of(authentication) == token.encode()


PARAMS = {
    "AuthenticationBasic": ({"userId": "ann", "password": SECRET}, AuthenticationBasic),
    "AuthenticationTls": ({"tlsCertFile": "/c.pem", "tlsKeyFile": "/k.pem"}, AuthenticationTLS),
}


@pytest.mark.parametrize("plugin", PARAMS)
@pytest.mark.parametrize("as_json", [True, False])
def test_both_forms_of_parameters(plugin: str, as_json: bool) -> None:
    given, kind = PARAMS[plugin]
    params = json.dumps(given) if as_json else ",".join(f"{key}:{value}" for key, value in given.items())
    authentication = connection(authPluginClassName=plugin, authParams=params).authentication()
    assert type(authentication) is kind
    if isinstance(authentication, AuthenticationBasic):
        assert data_of(authentication) == f"ann:{SECRET}".encode()
    else:
        assert isinstance(authentication, AuthenticationTLS)
        assert authentication.certificate == ("/c.pem", "/k.pem")


@pytest.mark.parametrize(
    ("plugin", "params", "reason"),
    [
        ("AuthenticationAthenz", SECRET, "not AuthenticationAthenz"),
        ("AuthenticationBasic", f"password:{SECRET}", "AuthenticationBasic .userId and password."),
        ("AuthenticationBasic", SECRET, "userId and password"),
        ("AuthenticationBasic", f'{{"userId": "a:b", "password": "{SECRET}"}}', "contains a colon"),
        ("AuthenticationTls", "tlsCertFile:/c.pem", "tlsCertFile and tlsKeyFile"),
        ("AuthenticationBasic", f'{{"password": "{SECRET}"', "authParams is not a JSON object"),
        ("AuthenticationToken", "", "the token is empty"),
        ("AuthenticationToken", "token:", "the token is empty"),
        ("AuthenticationToken", f'{{"other": "{SECRET}"}}', "the token is empty"),
    ],
)
def test_unusable_credentials_are_refused_without_showing_the_secret(plugin: str, params: str, reason: str) -> None:
    with pytest.raises(BadOption, match=reason) as raised:
        connection(authPluginClassName=plugin, authParams=params)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


def test_no_secret_is_shown() -> None:
    made = connection(authPluginClassName="AuthenticationToken", authParams=f"token:{SECRET}")
    shown: list[Any] = [repr(made), str(made), f"{made}", repr([made]), repr(made.authentication())]
    assert not any(SECRET in each for each in shown)
    assert "localhost" in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made
