"""Progress of reading captures, without Spark."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from pulsarium.pipeline.capture.progress import Progress, teller
from pulsarium.pipeline.capture.rows import everything
from tests.capture.captures import small, write


def test_the_bytes_read_of_all_captures_make_the_percentage(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / f"{name}.pulscap", [small()])) for name in "ab"]
    progress, told = Progress(paths), list[int]()
    came = Event()

    def tell(percent: int) -> None:
        told.append(percent)
        came.set()

    assert progress.percent == 0
    list(everything(paths[0], tell=teller(progress.folder, 0)))
    with progress.shown(tell):
        came.wait()
    assert told[0] == 50
    assert not Path(progress.folder).exists()


def test_a_task_that_does_not_see_the_folder_reads_without_progress(tmp_path: Path) -> None:
    path = str(write(tmp_path / "a.pulscap", [small()]))
    assert list(everything(path, tell=teller(str(tmp_path / "nowhere"), 0))) == list(everything(path))
