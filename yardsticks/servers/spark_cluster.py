"""Run scripts/spark-cluster: a real Spark master and its workers on loopback, in the foreground."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from pulsarium.pipeline.spark import NoJava, require_java
from yardsticks.servers import ROOT, free_port, stop

FOLDER = ROOT / "build" / "spark-cluster"
READY_SECONDS = 300.0
STOP_SECONDS = 20.0
MASTER_VARIABLE = "PULSARIUM_TEST_SPARK_MASTER"

ABOUT = f"""\
Runs a Spark master and its workers on this machine, each in a process of its own, from the pyspark of .venv. As on a
real cluster, executors share only the network and a file system with the program.

  scripts/spark-cluster                                 run until Ctrl-C, and print the master's address when ready
  scripts/spark-cluster scripts/test tests/pipeline     run the tests of the pipeline on it, and end with them
  scripts/spark-cluster --workers 4 scripts/bench pipeline

Programs connect with session(master="spark://127.0.0.1:PORT"). COMMAND gets the address in the environment variable
{MASTER_VARIABLE}. All ports are free ones on loopback. The logs of master, workers and executors stay in
build/spark-cluster/ until the next start; all other files are deleted. Needs Java 17 or later.
"""


class NotStarted(RuntimeError):
    """A master or worker that did not start. The text is for the user."""


def arguments() -> argparse.Namespace:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("spark-cluster", description=ABOUT, formatter_class=layout)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="number of workers (default: 2)")
    parser.add_argument("--cores", type=int, default=1, metavar="N", help="cores of each worker (default: 1)")
    parser.add_argument(
        "--memory", default="1g", metavar="SIZE", help="memory of each worker for executors (default: 1g)"
    )
    parser.add_argument("--port", type=int, default=0, help="port of the master; 0 takes a free one (default: 0)")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="COMMAND", help="run this command, and end with it"
    )
    options = parser.parse_args()
    if options.workers < 1 or options.cores < 1:
        parser.error("at least one worker and one core are needed")
    return options


@contextmanager
def cluster(
    workers: int = 2, cores: int = 1, memory: str = "1g", port: int = 0, folder: Path = FOLDER
) -> Iterator[str]:
    """Start a master with its workers, and yield the master's address. Raise `NotStarted` or `NoJava`.

    The files are in `folder`, which is deleted first.
    """
    require_java()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port, page = port or free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:

        def launch(name: str, main: str, *options: str) -> None:
            process = stack.enter_context(_process(folder, name, f"org.apache.spark.deploy.{main}", *options))
            processes[name] = process

        processes: dict[str, subprocess.Popen[bytes]] = {}
        where = "--host", "127.0.0.1", "--webui-port"
        launch("master", "master.Master", *where, str(page), "--port", str(port))
        _await(page, 0, processes, folder)
        for number in range(1, workers + 1):
            files = "--work-dir", str(folder / f"worker-{number}")
            size = "--cores", str(cores), "--memory", memory
            launch(f"worker-{number}", "worker.Worker", *where, "0", *files, *size, address)
        _await(page, workers, processes, folder)
        yield address
    shutil.rmtree(folder / "local", ignore_errors=True)


@contextmanager
def _process(folder: Path, name: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    given = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "512m"}
    given |= {"SPARK_LOCAL_DIRS": str(folder / "local"), "PYSPARK_PYTHON": sys.executable}
    # A session of its own, because Ctrl-C is for the program, which stops the processes in order.
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**_environment(), **given},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        stop(process, STOP_SECONDS)


def _environment() -> Mapping[str, str]:
    """Return the environment without the path to this package. Workers use the installed packages, as in a cluster."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def _await(page: int, workers: int, processes: Mapping[str, subprocess.Popen[bytes]], folder: Path) -> None:
    """Wait until the master's page shows so many workers."""
    deadline = time.monotonic() + READY_SECONDS
    while _alive(page) < workers:
        gone = [name for name, process in processes.items() if process.poll() is not None]
        if gone or time.monotonic() > deadline:
            name = gone[0] if gone else "master"
            said = (folder / f"{name}.log").read_text(errors="replace")[-3000:]
            raise NotStarted(f"{', '.join(gone) or 'the workers'} did not start; {name}.log ends:\n{said}")
        time.sleep(0.1)


def _alive(page: int) -> int:
    """Return how many workers the master has, or -1 while it does not answer. Its first answers may be pages."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            return int(json.load(answer)["aliveworkers"])
    except (urllib.error.URLError, ConnectionError, TimeoutError, json.JSONDecodeError):
        return -1


def run(options: argparse.Namespace) -> int:
    """Run the cluster until the command ends or Ctrl-C is pressed, and return the exit status."""
    with cluster(options.workers, options.cores, options.memory, options.port) as address:
        print(f"{address}  {options.workers} x {options.cores} cores, {options.memory}", flush=True)
        if options.command:
            given = {**_environment(), MASTER_VARIABLE: address}
            return subprocess.run(options.command, env=given, check=False).returncode
        signal.pause()
    return 0


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, _stop)
    try:
        return run(options)
    except KeyboardInterrupt:
        return 0
    except (NotStarted, NoJava) as error:
        print(f"spark-cluster: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
