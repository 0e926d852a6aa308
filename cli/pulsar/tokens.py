"""`bin/pulsar tokens`: keys and JSON Web Tokens, with the options and formats of Pulsar's command."""

from __future__ import annotations

import base64
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pulsarium.broker.auth.token_keys import LEAST_SECRET
from pulsarium.cli.admin.values import TIME_UNITS
from pulsarium.cli.refusal import RequestRefused, RunRefused
from pulsarium.cli.terminal import unguarded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    PrivateKey = RSAPrivateKey | EllipticCurvePrivateKey

_OF_A_PAIR: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_RSA_BITS: Final = {"256": 2048, "384": 3072, "512": 4096}
_EC_BITS: Final = {256: "ES256", 384: "ES384", 521: "ES512"}
_Command = TypeVar("_Command", bound=Callable[..., object])
_WHERE: Final = "file:///path, data:;base64,..., a path, or base64"


@click.group(no_args_is_help=False)
def tokens() -> None:
    """Create and inspect authentication tokens."""


def _algorithm(names: tuple[str, ...], default: str | None, what: str) -> Callable[[_Command], _Command]:
    shown = f"{what}  [default: {default or 'by the kind and size of the key'}]"
    return click.option(
        "-a",
        "--signature-algorithm",
        "algorithm",
        type=click.Choice(names),
        default=default,
        metavar="NAME",
        help=shown,
    )


_secret_key = click.option("-sk", "--secret-key", metavar="KEY", help=f"The secret key: {_WHERE}.")
_token_from = (
    click.argument("token", required=False),
    click.option("-i", "--stdin", "from_stdin", is_flag=True, help="Read the token from standard input."),
    click.option("-f", "--token-file", metavar="FILE", help="Read the token from a file."),
)


def _takes_a_token(command: _Command) -> _Command:
    for decorate in reversed(_token_from):
        command = decorate(command)
    return command


@tokens.command("create-secret-key")
@_algorithm(tuple(LEAST_SECRET), "HS256", "Create a key for this algorithm.")
@click.option("-o", "--output", metavar="FILE", help="Write the key to FILE.  [default: standard output]")
@click.option("-b", "--base64", "encoded", is_flag=True, help="Write the key in base64.")
def create_secret_key(algorithm: str, output: str | None, encoded: bool) -> None:
    """Create a secret key."""
    key = os.urandom(LEAST_SECRET[algorithm])
    _write(output, base64.b64encode(key) if encoded else key)


@tokens.command("create-key-pair")
@_algorithm(_OF_A_PAIR, "RS256", "Create keys for this algorithm.")
@click.option("--output-private-key", metavar="FILE", required=True, help="Write the private key to FILE, in DER.")
@click.option("--output-public-key", metavar="FILE", required=True, help="Write the public key to FILE, in DER.")
def create_key_pair(algorithm: str, output_private_key: str, output_public_key: str) -> None:
    """Create a private and a public key."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    size = algorithm[2:]
    curves = {"256": ec.SECP256R1(), "384": ec.SECP384R1(), "512": ec.SECP521R1()}
    key: PrivateKey
    if algorithm.startswith("ES"):
        key = ec.generate_private_key(curves[size])
    else:
        key = rsa.generate_private_key(65537, _RSA_BITS[size])
    private = key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    _write(output_public_key, public)
    _write(output_private_key, private)


@tokens.command("create")
@_algorithm((*LEAST_SECRET, *_OF_A_PAIR), None, "Sign with this algorithm.")
@click.option("-s", "--subject", metavar="ROLE", required=True, help="The role that the token proves.")
@click.option(
    "-e",
    "--expiry-time",
    metavar="TIME",
    help="Let the token expire after this time: 10m, 1h, 3d, 2w, 1y.  [default: for ever]",
)
@_secret_key
@click.option("-pk", "--private-key", metavar="KEY", help=f"The private key, in DER: {_WHERE}.")
@click.option("-hs", "--headers", multiple=True, metavar="KEY=VALUE", help="Add a header. May be repeated.")
@click.option("--key-id", metavar="ID", help="Name the key that signs the token, in the header kid.")
def create(
    subject: str,
    algorithm: str | None,
    expiry_time: str | None,
    secret_key: str | None,
    private_key: str | None,
    headers: tuple[str, ...],
    key_id: str | None,
) -> None:
    """Create a token."""
    import jwt

    key, name = _signing_key(secret_key, private_key, algorithm)
    claims: dict[str, Any] = {"sub": subject}
    if expiry_time is not None:
        claims["exp"] = int(time.time()) + seconds(expiry_time)
    given = dict(_pair(each) for each in headers)
    if key_id is not None:
        given["kid"] = _kid(key_id, given)
    # Pulsar's tokens have no `typ`
    click.echo(jwt.encode(claims, key, algorithm=name, headers={"typ": None, **given}))


@tokens.command("show")
@_takes_a_token
def show(token: str | None, from_stdin: bool, token_file: str | None) -> None:
    """Show header and claims of a token, without checking its signature."""
    parts = _token(token, from_stdin, token_file).split(".")
    if len(parts) != 3:
        raise RequestRefused("the token is not three parts with dots between them; check that it is complete")
    try:
        header, claims = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode() for part in parts[:2])
    except ValueError:
        raise RequestRefused("the token is not base64; check that it is complete") from None
    click.echo(f"{header}\n---\n{claims}")


@tokens.command("validate")
@_algorithm(_OF_A_PAIR, "RS256", "Expect this algorithm, with a public key.")
@_takes_a_token
@_secret_key
@click.option("-pk", "--public-key", metavar="KEY", help=f"The public key, in DER: {_WHERE}.")
def validate(
    algorithm: str,
    token: str | None,
    from_stdin: bool,
    token_file: str | None,
    secret_key: str | None,
    public_key: str | None,
) -> None:
    """Check a token with a key, and show its claims."""
    _one_of("--secret-key", secret_key, "--public-key", public_key)
    from pulsarium.broker.auth.identity import AuthenticationError
    from pulsarium.broker.auth.tokens import TokenProvider
    from pulsarium.broker.config import Config, ConfigError

    text = _token(token, from_stdin, token_file)
    try:
        config = Config(tokenSecretKey=secret_key, tokenPublicKey=public_key, tokenPublicAlg=algorithm)
        claims = TokenProvider(config, lambda: int(time.time() * 1000)).claims(text)
    except ConfigError as error:
        option = "--secret-key" if secret_key else "--public-key"
        raise RequestRefused(f"{option}: {error.reason}") from None
    except AuthenticationError as error:
        raise RunRefused(f"the token is not valid: {error}") from None
    click.echo("{" + ", ".join(f"{name}={value}" for name, value in claims.items()) + "}")


def seconds(text: str) -> int:
    """Return the seconds of a relative time in Pulsar's form: a number and s, m, h, d, w or y."""
    found = re.fullmatch(r"([0-9]+)([smhdwy]?)", text.strip().lower())
    if found is None:
        raise RequestRefused(f"--expiry-time {text}: write a number and one of s, m, h, d, w, y")
    return int(found[1]) * TIME_UNITS[found[2] or "s"]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise RequestRefused(f"--headers {text}: write KEY=VALUE")
    return name, value


def _kid(key_id: str, headers: Mapping[str, str]) -> str:
    if not key_id.strip():
        raise RequestRefused("--key-id: the id is empty; give the kid of the key in the broker's JWKS document")
    if "kid" in headers:
        raise RequestRefused("--key-id and --headers kid=... both name a key; leave one out")
    return key_id


def _one_of(first: str, first_value: str | None, second: str, second_value: str | None) -> None:
    if (first_value is None) == (second_value is None):
        raise RequestRefused(f"give either {first} or {second}: {_WHERE}")


def _signing_key(secret: str | None, private: str | None, algorithm: str | None) -> tuple[Any, str]:
    """Return the key and the algorithm: the named one, or as in Pulsar the strongest that fits the key."""
    from pulsarium.broker.auth.sources import read_source
    from pulsarium.broker.config import ConfigError

    _one_of("--secret-key", secret, "--private-key", private)
    option, value = ("--private-key", private) if secret is None else ("--secret-key", secret)
    try:
        content = read_source(option, value or "")
    except ConfigError as error:
        raise RequestRefused(f"{option}: {error.reason}") from None
    key, fitting = (content, _of_secret(content)) if secret is not None else _of_private_key(content)
    if algorithm is not None and algorithm not in fitting:
        raise RequestRefused(
            f"--signature-algorithm {algorithm}: choose an algorithm of this key: {', '.join(fitting)}"
        )
    return key, algorithm or fitting[0]


def _of_secret(key: bytes) -> list[str]:
    fitting = [name for name, least in reversed(LEAST_SECRET.items()) if len(key) >= least]
    if not fitting:
        raise RequestRefused(f"--secret-key: the key has {len(key)} bytes; HS256 needs at least 32")
    return fitting


def _of_private_key(content: bytes) -> tuple[PrivateKey, list[str]]:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        key = load_der_private_key(content, None)
    except (ValueError, TypeError):
        raise RequestRefused(
            "--private-key: the file is no private key in DER (PKCS #8), as create-key-pair writes"
        ) from None
    if isinstance(key, RSAPrivateKey):
        first = next((size for size, bits in reversed(_RSA_BITS.items()) if key.key_size >= bits), "256")
        return key, [f"RS{first}", *(name for name in _OF_A_PAIR if name[:2] in ("RS", "PS") and name != f"RS{first}")]
    if isinstance(key, EllipticCurvePrivateKey) and key.key_size in _EC_BITS:
        return key, [_EC_BITS[key.key_size]]
    raise RequestRefused("--private-key: the key is neither RSA nor EC (P-256, P-384, P-521)")


def _token(token: str | None, from_stdin: bool, token_file: str | None) -> str:
    if token is not None:
        return token.strip()
    if from_stdin:
        return sys.stdin.readline().strip()
    if token_file is not None:
        try:
            return Path(token_file).read_text(encoding="ascii").strip()
        except OSError as error:
            raise RequestRefused(f"--token-file: cannot read {token_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise RequestRefused(f"--token-file: {token_file} contains no token") from None
    if "TOKEN" in os.environ:
        return os.environ["TOKEN"].strip()
    raise RequestRefused("give a token: as an argument, by --stdin, --token-file or in the environment as TOKEN")


def _write(output: str | None, content: bytes) -> None:
    if output is None:
        stdout = unguarded(sys.stdout).buffer
        stdout.write(content)
        stdout.flush()
        return
    try:
        Path(output).write_bytes(content)
    except OSError as error:
        raise RunRefused(f"cannot write {output}: {error.strerror}") from None
