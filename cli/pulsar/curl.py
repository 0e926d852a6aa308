"""A small `curl` for the image, for health checks and start scripts in the same container.

Debian's curl would make the image larger by a fifth. Options, output and exit codes are curl's. Other options of curl
are refused.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Final, NoReturn

from pulsarium.cli.terminal import Terminal, guard

USAGE: Final = 2
NO_CONNECTION: Final = 7
HTTP_ERROR: Final = 22
NO_TIME: Final = 28


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(
            USAGE, f"curl: {message}; this curl has few options; for the others, install curl in an image of your own\n"
        )


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def main(arguments: Sequence[str]) -> NoReturn:
    """Make one request, print its answer and exit as curl does. A terminal receives it with escapes."""
    guard()
    parser = _Parser(prog="curl", allow_abbrev=False, description="Make an HTTP request.")
    parser.add_argument("url", metavar="URL")
    parser.add_argument("-d", "--data", help="body of a POST")
    parser.add_argument(
        "-f", "--fail", action="store_true", help="exit with 22, without output, when the status is 400 or above"
    )
    parser.add_argument("-H", "--header", action="append", default=[], metavar="NAME: VALUE")
    parser.add_argument("-I", "--head", action="store_true", help="request and print only the headers")
    parser.add_argument("-L", "--location", action="store_true", help="follow redirects")
    parser.add_argument("-m", "--max-time", type=float, metavar="SECONDS")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE")
    parser.add_argument("-s", "--silent", action="store_true", help="print no errors")
    parser.add_argument("-S", "--show-error", action="store_true", help="print errors also with --silent")
    parser.add_argument("-X", "--request", metavar="METHOD")
    options = parser.parse_args(arguments)
    try:
        status, head, body = _ask(options)
    except ValueError:
        parser.error(f"{options.url} is no URL; write http://HOST:PORT/PATH")
    except OSError as error:
        code, why = _reason(error)
        _end(options, code, f"{options.url}: {why}")
    if options.fail and status >= HTTPStatus.BAD_REQUEST:
        _end(options, HTTP_ERROR, f"{options.url} answered {status}")
    shown = head if options.head else body
    if options.output is not None:
        options.output.write_bytes(shown)
    elif isinstance(sys.stdout, Terminal):
        print(shown.decode(errors="replace").replace("\r\n", "\n"), end="")
    else:
        sys.stdout.buffer.write(shown)
    sys.exit(0)


def _ask(options: argparse.Namespace) -> tuple[int, bytes, bytes]:
    """Return status, headers and body of the response."""
    url = options.url if "://" in options.url else f"http://{options.url}"
    method = options.request or ("HEAD" if options.head else None)
    data = None if options.data is None else options.data.encode()
    request = urllib.request.Request(url, data, method=method)
    for header in options.header:
        name, _, value = header.partition(":")
        request.add_header(name.strip(), value.strip())
    opener = urllib.request.build_opener(*(() if options.location else (_Stay,)))
    answer: HTTPResponse | urllib.error.HTTPError
    try:
        answer = opener.open(request, timeout=options.max_time)
    except urllib.error.HTTPError as error:
        answer = error
    with contextlib.closing(answer):
        head = f"HTTP/1.1 {answer.status} {answer.reason}\r\n{answer.headers}".encode()
        return answer.status or 0, head, answer.read()


def _reason(error: OSError) -> tuple[int, str]:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return NO_TIME, "no answer in time"
    return NO_CONNECTION, reason.strerror or str(reason) if isinstance(reason, OSError) else str(reason)


def _end(options: argparse.Namespace, code: int, why: str) -> NoReturn:
    if options.show_error or not options.silent:
        print(f"curl: ({code}) {why}", file=sys.stderr)
    sys.exit(code)
