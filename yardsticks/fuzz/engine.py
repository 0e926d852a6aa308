"""A process that fuzzes one target with atheris: `python -m yardsticks.fuzz.engine TARGET SECONDS FOLDER`.

libFuzzer decides which inputs to keep and when to end. The target's own `mutate` changes the inputs. A finding does not
end the process, which adds the finding to the corpus and prints it once. Inputs that reach new lines go to FOLDER.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from random import Random

TIMEOUT = 120  # seconds for one input; one that takes longer counts as endless
MEMORY = 2000  # MB that the process may use


def main(name: str, seconds: int, folder: Path, *options: str) -> None:
    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["pulsarium"]):
        from yardsticks.fuzz.targets import TARGETS

    from yardsticks.fuzz.corpus import add_finding, corpus_of
    from yardsticks.fuzz.oracle import Finding

    logging.getLogger("pulsarium").setLevel(logging.ERROR)  # only errors are findings
    logging.getLogger("pulsarium").addHandler(logging.NullHandler())
    target = TARGETS[name]
    others = list(dict.fromkeys([*corpus_of(target), *target.seeds()]))
    told: set[str] = set()

    def run(data: bytes) -> None:
        try:
            target.run(data)
        except Finding as finding:
            if finding.key not in told:
                told.add(finding.key)
                new = add_finding(target, finding.key, data)
                print(f"{'NEW ' if new else ''}FINDING {finding}", flush=True)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        made = target.mutate(data, others, random)
        if len(others) < 5000 and seed % 97 == 0:
            others.append(made)
        return made[:most]

    seeds, kept = folder / "seeds", folder / "kept"
    for each in (seeds, kept):
        each.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(others):
        (seeds / f"{number:04}").write_bytes(data[: target.largest])
    limits = [f"-timeout={TIMEOUT}", f"-rss_limit_mb={MEMORY}", f"-max_len={target.largest}"]
    folders = [f"-artifact_prefix={folder}/", str(kept), str(seeds)]
    atheris.Setup([name, f"-max_total_time={seconds}", *limits, *options, *folders], run, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
