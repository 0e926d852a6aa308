"""Read and write the corpus of each target: a file of inputs that reach lines of their own, and a file of findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from yardsticks.fuzz.target import Target

FOLDER = Path(__file__).parent / "corpus"


def corpus_of(target: Target) -> list[bytes]:
    """Return the inputs with which a run of the target begins, including those of its findings."""
    return [*inputs_of(target), *(data for _, data in findings_of(target))]


def inputs_of(target: Target) -> list[bytes]:
    return [target.of_line(line) for line in _lines(_inputs(target))]


def findings_of(target: Target) -> list[tuple[str, bytes]]:
    """Return the key of each finding of the past, and an input that showed the finding."""
    lines = _lines(_findings(target))
    return [(key.removeprefix("# "), target.of_line(line)) for key, line in zip(lines[::2], lines[1::2], strict=True)]


def write_inputs(target: Target, inputs: Iterable[bytes]) -> None:
    """Write the inputs sorted by size, so that a diff shows only the lines that changed."""
    lines = sorted({target.to_line(data) for data in inputs}, key=lambda line: (len(line), line))
    _inputs(target).write_text("".join(f"{line}\n" for line in lines))


def add_finding(target: Target, key: str, data: bytes) -> bool:
    """Add an input to the findings unless another input showed the same one, and return whether it was added."""
    if key in dict(findings_of(target)):
        return False
    with _findings(target).open("a") as file:
        file.write(f"# {key}\n{target.to_line(data)}\n")
    return True


def _inputs(target: Target) -> Path:
    return FOLDER / f"{target.name}.txt"


def _findings(target: Target) -> Path:
    return FOLDER / f"{target.name}.findings.txt"


def _lines(path: Path) -> Sequence[str]:
    return path.read_text().splitlines() if path.exists() else []
