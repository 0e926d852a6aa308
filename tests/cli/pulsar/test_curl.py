"""`curl` of the image: what health checks and start scripts ask a broker with it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarium.broker.testing import running
from pulsarium.cli.pulsar.curl import main
from tests.client.refusing import refusing_port


@pytest.fixture(scope="module")
def admin_url() -> Iterator[str]:
    with running() as broker:
        yield broker.admin_url


def curl(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_an_answer_is_printed(admin_url: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert curl(f"{admin_url}/admin/v2/clusters") == 0
    assert capfdbinary.readouterr().out == b'["standalone"]'
    assert curl("-sI", admin_url.removeprefix("http://")) == 0
    assert capfdbinary.readouterr().out.startswith(b"HTTP/1.1 200 OK\r\n")


def test_an_answer_goes_to_a_file(admin_url: str, tmp_path: Path) -> None:
    assert curl("-sfo", str(tmp_path / "out"), f"{admin_url}/admin/v2/clusters") == 0
    assert (tmp_path / "out").read_text() == '["standalone"]'


def test_a_body_with_its_method_and_headers_is_sent(admin_url: str) -> None:
    tenant = '{"allowedClusters": ["standalone"]}'
    header = "Content-Type: application/json"
    assert curl("-f", "-X", "PUT", "-H", header, "-d", tenant, f"{admin_url}/admin/v2/tenants/shop") == 0
    assert curl("-f", f"{admin_url}/admin/v2/tenants/shop") == 0


def test_only_fail_makes_an_error_of_a_status(admin_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = f"{admin_url}/admin/v2/tenants/nobody"
    assert curl("-o", "/dev/null", nowhere) == 0
    assert capsys.readouterr().err == ""
    assert curl("--fail", nowhere) == 22
    assert capsys.readouterr() == ("", f"curl: (22) {nowhere} answered 404\n")


def test_curl_fails_where_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    with refusing_port() as port:
        url = f"http://127.0.0.1:{port}/"
        assert curl("-s", url) == 7
        assert capsys.readouterr().err == ""
        assert curl("-sS", url) == 7
    assert capsys.readouterr().err == f"curl: (7) {url}: Connection refused\n"


def test_no_answer_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert curl("--max-time", "0.5", url) == 28
    assert capsys.readouterr().err == f"curl: (28) {url}: no answer in time\n"


@pytest.mark.parametrize("option", ["-k", "--compressed"])
def test_an_option_of_curl_that_is_not_here_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert curl(option, "http://127.0.0.1/") == 2
    assert capsys.readouterr().err == (
        f"curl: unrecognized arguments: {option}; this curl has few options; "
        "for the others, install curl in an image of your own\n"
    )
