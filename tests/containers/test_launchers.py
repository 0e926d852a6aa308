"""Programs that we did not write start the image; docs/launchers.md says with which versions."""

from __future__ import annotations

import pytest

from pulsarium.cli.pages.launchers import read_record

from .launchers import LAUNCHERS, SECONDS, Launcher

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(SECONDS + 30)]


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda launcher: str(launcher.name))
def test_an_example_passes_and_docs_say_so(launcher: Launcher, image: str) -> None:
    seen, printed = launcher.run(image)
    assert not seen.failed, printed
    recorded = {each.launcher: each for each in read_record()}
    assert recorded.get(launcher.name) == seen, (
        "docs/launchers.json tells of another run: PYTHONPATH=. .venv/bin/python -P -m tests.containers.launchers, "
        "then scripts/generate-docs"
    )
