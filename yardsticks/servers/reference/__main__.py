"""Run scripts/reference-pulsar: a real Apache Pulsar standalone on loopback, in the foreground."""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from pulsarium.cli.ready import ready_content, write_ready_file
from yardsticks.servers import free_port, stop
from yardsticks.servers.reference.conf import CONFIG, changed
from yardsticks.servers.reference.jars import BROKERS, CACHE, JAVA_OPTIONS, RELEASE, fetch

READY_SECONDS = 140
STOP_SECONDS = 25

ABOUT = f"""\
Starts a real Apache Pulsar standalone on loopback, in the foreground, with the settings of the transcripts. It is
{RELEASE}, or the --release. Options and ready file are those of `pulsarium serve`, which it can replace. Needs a JDK 17
or later and mvn. The first start of a release downloads about 250 MB of jars from Maven Central. The broker is ready
after about ten seconds.
"""


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("reference-pulsar", description=ABOUT, formatter_class=layout)
    parser.add_argument("--release", choices=BROKERS, default=RELEASE, help=f"the release (default: {RELEASE})")
    parser.add_argument(
        "--port", type=int, default=6650, help="port of the binary protocol; 0 takes a free one (default: 6650)"
    )
    parser.add_argument(
        "--http-port", type=int, default=8080, help="port of the admin API; 0 takes a free one (default: 8080)"
    )
    parser.add_argument(
        "--config", type=Path, default=CONFIG, help="use this broker.conf; its port keys are overridden"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="keep the data here; by default they are deleted at the end"
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="write URLs and pid to FILE as JSON when the broker is ready"
    )
    parser.add_argument(
        "--cache", type=Path, default=CACHE, metavar="DIR", help=f"folder of the jars (default: {CACHE})"
    )
    parser.add_argument("--log-level", default="warn", help="level of the log on standard error (default: warn)")
    return parser.parse_args()


def java(options: argparse.Namespace, jars: Path, data: Path, conf: Path) -> list[str]:
    drivers = "org.apache.pulsar.metadata.bookkeeper.PulsarMetadata"
    properties = {
        "log4j.shutdownHookEnabled": "false",
        "log4j2.is.webapp": "false",
        "reference.log.level": options.log_level,
        "bookkeeper.metadata.bookie.drivers": f"{drivers}BookieDriver",
        "bookkeeper.metadata.client.drivers": f"{drivers}ClientDriver",
    }
    return [
        "java",
        *("-cp", f"{jars}/*", "-Xms1g", "-Xmx2g", "-XX:MaxDirectMemorySize=4g", *JAVA_OPTIONS),
        *(f"-D{key}={value}" for key, value in properties.items()),
        *("org.apache.pulsar.PulsarStandaloneStarter", "--config", str(conf)),
        *("--no-functions-worker", "--no-stream-storage"),
        *("--metadata-dir", str(data / "metadata"), "--bookkeeper-dir", str(data / "bookkeeper")),
        *("--bookkeeper-port", str(free_port())),
    ]


def credentials(conf: Path) -> dict[str, str]:
    """Return headers with the token that the configuration gives the broker itself, if there is one."""
    found = re.search(r"^brokerClientAuthenticationParameters=token:(\S+)", conf.read_text(), re.MULTILINE)
    return {"Authorization": f"Bearer {found[1]}"} if found else {}


def await_ready(process: subprocess.Popen[bytes], admin_url: str, headers: dict[str, str]) -> None:
    """Wait until the namespace public/default exists, which is the last step of a standalone's start."""
    request = urllib.request.Request(f"{admin_url}/admin/v2/namespaces/public", headers=headers)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"reference-pulsar: the broker exited with code {process.returncode}")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                if "public/default" in json.load(answer):
                    return
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    sys.exit(f"reference-pulsar: the broker was not ready within {READY_SECONDS} s")


@dataclass(frozen=True)
class Urls:
    """URLs of the broker."""

    service_url: str
    admin_url: str
    service_url_tls: str | None = None
    admin_url_tls: str | None = None


def serve(options: argparse.Namespace, data: Path) -> int:
    port, http_port = options.port or free_port(), options.http_port or free_port()
    service_url, admin_url = f"pulsar://127.0.0.1:{port}", f"http://127.0.0.1:{http_port}"
    data.mkdir(parents=True, exist_ok=True)
    conf = data / "standalone.conf"
    ports = {"brokerServicePort": port, "webServicePort": http_port}
    conf.write_text(changed(options.config.read_text(), ports))
    jars = fetch(options.cache, BROKERS[options.release])
    process = subprocess.Popen(java(options, jars, data, conf), cwd=data, stdout=sys.stderr)
    try:
        await_ready(process, admin_url, credentials(conf))
        if options.ready_file:
            write_ready_file(options.ready_file, ready_content([Urls(service_url, admin_url)], process.pid))
        print(f"pulsar ready {service_url} {admin_url}", flush=True)
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        stop(process, STOP_SECONDS)


def main() -> int:
    options = arguments()

    # SIGTERM ends the process through the clean-up, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.data:
        return serve(options, options.data.resolve())
    with tempfile.TemporaryDirectory(prefix="reference-pulsar-") as folder:
        return serve(options, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
