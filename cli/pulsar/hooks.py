"""Apply a folder of seeds and scripts to a broker that has just started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from pulsarium.broker.logs import PartLog
from pulsarium.cli.refusal import RunRefused

if TYPE_CHECKING:
    from pulsarium.cli.run import RunningBrokers

log = PartLog("hooks")

_SEEDS: Final = (".toml", ".json")


async def apply_hooks(folder: Path, running: RunningBrokers) -> None:
    """Apply the seeds and run the scripts of a folder, in the order of their names.

    Raise `RunRefused` for the first seed or script that fails.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():  # noqa: ASYNC240
        if path.suffix in _SEEDS:
            await _seed(path, running)
        elif path.suffix == ".sh":
            await _execute(path, running)


async def _seed(path: Path, running: RunningBrokers) -> None:
    try:
        made = await running.lab.state.seed(path)
    except ValueError as error:
        raise RunRefused(str(error)) from None
    log.info("applied a seed", file=path, made=", ".join(f"{count} {name}" for name, count in made.items() if count))


async def _execute(path: Path, running: RunningBrokers) -> None:
    from pulsarium.cli.exec import environment

    log.info("runs a script", file=path)
    urls = {name: value.replace("//0.0.0.0:", "//localhost:") for name, value in environment(running).items()}
    done = await trio.run_process(["bash", str(path)], env=urls, check=False)
    if done.returncode:
        raise RunRefused(f"{path} ended with {done.returncode}: mend the script, or remove it from {path.parent}")
