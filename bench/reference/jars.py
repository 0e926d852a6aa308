"""The jars of a real Pulsar, from Maven Central, where every checkout on this machine finds them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

POM = Path(__file__).resolve().parent / "pom.xml"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pulsar-reference")


def stamp(cache: Path) -> Path:
    """Beside the jars once all are there: the SHA-256 of the pom.xml they are of."""
    return cache / "lib" / "stamp"


def fetch(cache: Path) -> Path:
    """The folder with the jars, filled when it is not complete."""
    complete, fingerprint = stamp(cache), hashlib.sha256(POM.read_bytes()).hexdigest()
    jars = complete.parent
    if not complete.exists() or complete.read_text().strip() != fingerprint:
        if shutil.which("mvn") is None:
            sys.exit("reference-pulsar: mvn is needed to fetch Pulsar's jars")
        shutil.rmtree(jars, ignore_errors=True)
        # Group ids go into the names: some of Pulsar's jars differ in nothing else.
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", "-Dmdep.prependGroupId=true"]
        target = f"-DoutputDirectory={jars}"
        subprocess.run(["mvn", "-B", "-q", "-f", str(POM), *goal, target], check=True, stdout=sys.stderr)
        complete.write_text(fingerprint + "\n")
    return jars


if __name__ == "__main__":
    fetch(CACHE)
