"""`bin/pulsar tokens`: keys and tokens as Pulsar's own command makes and takes them."""

from __future__ import annotations

import base64
import io
import time
from pathlib import Path

import pytest

from pulsarium.cli.pulsar.main import main

# Pulsar 4.2.4 made this key, and this token with `create --secret-key file:///... --subject a`.
KEY = "9JyGuhjXJZGZIrnTtATPxESsB3NIUQaD2kO4SWIL5Lw="
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.kQb7oy9-F9iWBufkn0QzB9eJfw6bWKE0193bcEd_akI"


class Tokens:
    """Runs the command in a folder."""

    def __init__(self, home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        self.home = home
        self._capfd = capfdbinary

    def raw(self, *arguments: str) -> bytes:
        status, out, err = self._run(*arguments)
        assert (status, err) == (0, "")
        return out

    def __call__(self, *arguments: str) -> str:
        return self.raw(*arguments).decode().removesuffix("\n")

    def refusal(self, *arguments: str) -> str:
        status, out, err = self._run(*arguments)
        assert status
        assert (out, err.count("\n"), err[:11]) == (b"", 1, "pulsarium: ")
        return err[11:-1]

    def _run(self, *arguments: str) -> tuple[object, bytes, str]:
        with pytest.raises(SystemExit) as ended:
            main(self.home, ["tokens", *arguments])
        out, err = self._capfd.readouterr()
        return ended.value.code or 0, out, err.decode()


@pytest.fixture
def tokens(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Tokens:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOKEN", raising=False)
    return Tokens(tmp_path, capfdbinary)


@pytest.mark.parametrize(("algorithm", "size"), [("HS256", 32), ("HS384", 48), ("HS512", 64)])
def test_a_secret_key_is_bytes_without_a_line_feed(tokens: Tokens, algorithm: str, size: int) -> None:
    assert len(tokens.raw("create-secret-key", "-a", algorithm)) == size


def test_a_secret_key_can_be_base64_in_a_file(tokens: Tokens) -> None:
    assert tokens.raw("create-secret-key", "--base64", "--output", "key") == b""
    assert len(base64.b64decode((tokens.home / "key").read_bytes(), validate=True)) == 32


def test_a_token_is_the_one_that_pulsar_makes(tokens: Tokens) -> None:
    assert tokens("create", "--secret-key", KEY, "--subject", "a") == TOKEN
    assert tokens("validate", "--secret-key", KEY, TOKEN) == "{sub=a}"


@pytest.mark.parametrize("form", ["secret", "file://{home}/secret", "data:;base64,{base64}", "{base64}"])
def test_a_key_is_taken_in_each_of_pulsar_s_forms(tokens: Tokens, form: str) -> None:
    (tokens.home / "secret").write_bytes(base64.b64decode(KEY))
    key = form.format(home=tokens.home, base64=KEY)
    assert tokens("create", "-sk", key, "-s", "a") == tokens("create", "-sk", KEY, "-s", "a")


def test_a_token_names_the_key_that_signs_it(tokens: Tokens) -> None:
    token = tokens("create", "-sk", KEY, "-s", "a", "--key-id", "k")
    assert token == tokens("create", "-sk", KEY, "-s", "a", "--headers", "kid=k")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--key-id", " "], "--key-id: the id is empty; give the kid of the key in the broker's JWKS document"),
        (["--key-id", "k", "-hs", "kid=k"], "--key-id and --headers kid=... both name a key; leave one out"),
    ],
)
def test_a_token_names_one_key_or_none(tokens: Tokens, given: list[str], says: str) -> None:
    assert tokens.refusal("create", "-sk", KEY, "-s", "a", *given) == says


def test_a_token_is_shown(tokens: Tokens) -> None:
    token = tokens("create", "-sk", KEY, "-s", "a", "-hs", "kid=k", "--headers", "x=1=2")
    assert tokens("show", token) == '{"alg":"HS256","kid":"k","x":"1=2"}\n---\n{"sub":"a"}'


def test_a_token_is_validated_with_its_key_only(tokens: Tokens) -> None:
    token = tokens("create", "-sk", KEY, "-s", "a")
    assert tokens("validate", "-sk", KEY, token) == "{sub=a}"
    other = base64.b64encode(b"\1" * 32).decode()
    assert "the token is not valid" in tokens.refusal("validate", "-sk", other, token)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "ES384", "ES512"])
def test_a_pair_of_keys_signs_and_validates(tokens: Tokens, algorithm: str) -> None:
    tokens("create-key-pair", "-a", algorithm, "--output-private-key", "p", "--output-public-key", "q")
    token = tokens("create", "--private-key", "p", "--subject", "a", "-a", algorithm)
    assert tokens("show", token).startswith(f'{{"alg":"{algorithm}"}}')
    assert tokens("validate", "--public-key", "q", "-a", algorithm, token) == "{sub=a}"


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("10m", 600), ("1h", 3600), ("3d", 259200), ("1y", 31536000)]
)
def test_an_expiry_time_is_relative(tokens: Tokens, text: str, seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.5)
    token = tokens("create", "-sk", KEY, "-s", "a", "--expiry-time", text)
    assert tokens("validate", "-sk", KEY, token) == f"{{sub=a, exp={1_800_000_000 + seconds}}}"


def test_an_expired_token_does_not_hold(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens("create", "-sk", KEY, "-s", "a", "-e", "1m")
    later = time.time() + 120
    monkeypatch.setattr(time, "time", lambda: later)
    assert "expired" in tokens.refusal("validate", "-sk", KEY, token)


@pytest.mark.parametrize("where", ["--stdin", "--token-file", "TOKEN"])
def test_a_token_comes_from_elsewhere(tokens: Tokens, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens("create", "-sk", KEY, "-s", "a")
    (tokens.home / "token").write_text(f"{token}\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
    if where == "TOKEN":
        monkeypatch.setenv("TOKEN", token)
    given = {"--stdin": ["--stdin"], "--token-file": ["--token-file", "token"], "TOKEN": []}[where]
    assert tokens("validate", "-sk", KEY, *given) == "{sub=a}"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "-s", "a"], "give either --secret-key or --private-key"),
        (["create", "-s", "a", "-sk", KEY, "-pk", "p"], "give either --secret-key or --private-key"),
        (["create", "-sk", KEY], "Missing option '-s' / '--subject'"),
        (["create", "-s", "a", "-sk", KEY, "-e", "1x"], "--expiry-time 1x"),
        (["create", "-s", "a", "-sk", KEY, "-hs", "x"], "--headers x: write KEY=VALUE"),
        (
            ["create", "-s", "a", "-sk", KEY, "-a", "RS256"],
            "--signature-algorithm RS256: choose an algorithm of this key: HS256",
        ),
        (["create", "-s", "a", "-sk", "AAAA"], "--secret-key: the key has 3 bytes"),
        (["create", "-s", "a", "-sk", "file:///no/file"], "--secret-key: /no/file cannot be read"),
        (["create", "-s", "a", "-pk", KEY], "--private-key: the file is no private key"),
        (["create-secret-key", "-o", "/no/folder/key"], "cannot write /no/folder/key"),
        (["show"], "give a token"),
        (["show", "a.b"], "the token is not three parts"),
        (["validate", "-sk", KEY], "give a token"),
        (["validate", "a.b.c"], "give either --secret-key or --public-key"),
        (["validate", "-sk", KEY, "-f", "none"], "--token-file: cannot read none"),
        ([], "Missing command"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_tokens_refuses_in_one_line_what_cannot_be(tokens: Tokens, arguments: list[str], said: str) -> None:
    assert tokens.refusal(*arguments).startswith(said)
