"""Put environment variables into .conf files, by the rules of Pulsar's apply-config-from-env.py.

A variable with the name of a key in the file replaces the key's value, also where the key is commented out. A variable
with the prefix (PULSAR_PREFIX_) before the name replaces the value too, adds a key that the file lacks, and wins over
the variable without the prefix.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pulsarium.cli.terminal import guard

PREFIX: Final = "PULSAR_PREFIX_"
HIDDEN: Final = "********"
SECRETS: Final = ("brokerClientAuthenticationParameters", "bookkeeperClientAuthenticationParameters", "tokenSecretKey")


def main(arguments: Sequence[str], prog: str = "apply-config-from-env.py") -> None:
    """Apply the environment to each named file. End the process with 1 when a file cannot be read or written."""
    guard()
    parser = argparse.ArgumentParser(prog=prog, description="Put environment variables into .conf files.")
    parser.add_argument("--prefix", default=PREFIX, help=f"prefix of the variables (default: {PREFIX})")
    parser.add_argument("conf_files", nargs="*", metavar="FILE", help="a .conf file, which is changed in place")
    asked = parser.parse_args(arguments)
    if not asked.conf_files:
        parser.print_help()
        sys.exit(1)
    for name in asked.conf_files:
        try:
            _apply_to_file(name, os.environ, asked.prefix)
        except OSError as error:
            sys.exit(f"{prog}: {name}: {error.strerror}; name a .conf file that this user can write")


def main_with_prefix(arguments: Sequence[str]) -> None:
    """Apply the environment with the prefix from the first argument."""
    prog = "apply-config-from-env-with-prefix.py"
    if len(arguments) < 2:
        print(f"usage: {prog} PREFIX FILE...")
        sys.exit(1)
    main(["--prefix", *arguments], prog)


def _apply_to_file(name: str, environment: Mapping[str, str], prefix: str) -> None:
    # Surrogates carry bytes that are not UTF-8 from the environment and the file to the new file.
    with Path(name).open("r+", encoding="utf-8", errors="surrogateescape") as file:
        lines, said = apply(file.read().splitlines(), environment, prefix)
        file.seek(0)
        file.write("\n".join(lines) + "\n")
        file.truncate()
    for each in said:
        print(f"[{name}] {each}".encode(errors="replace").decode())


def apply(lines: Sequence[str], environment: Mapping[str, str], prefix: str = PREFIX) -> tuple[list[str], list[str]]:
    """Return the lines of the file with the environment in them, and a report of each change, without secrets."""
    result, said = list(lines), []
    places = {key: place for place, line in enumerate(lines) if (key := _key_of(line))}
    for key in sorted(places.keys() & environment.keys()):
        result[places[key]] = f"{key}={environment[key].strip()}"
        said.append(f"Applying config {key} = {_shown(key, environment[key].strip())}")
    for name in sorted(environment):
        key = name.removeprefix(prefix)
        if not (key and name.startswith(prefix)):
            continue
        value = environment[name].strip()
        if key in places:
            said.append(f"Updating config {key} = {_shown(key, value)}")
            result[places[key]] = f"{key}={value}"
        else:
            said.append(f"Adding config {key} = {_shown(key, value)}")
            result.append(f"{key}={value}")
    return result, said


def _key_of(line: str) -> str:
    """Return the key of a line, also of one that is commented out, or "" for a line without a key."""
    key, equals, _ = line.strip().partition("=")
    return key.removeprefix("#").strip() if equals else ""


def _shown(key: str, value: str) -> str:
    return HIDDEN if "password" in key.lower() or key in SECRETS else value
