"""Services of bin/pulsar as processes, on free ports, in a folder like the image's /pulsar."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = "import sys; from pathlib import Path; from {module} import main; main(Path(sys.argv[1]), sys.argv[2:])"


class Home:
    """A folder with conf, and the services that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []
        (folder / "conf").mkdir()

    def conf(self, name: str, **settings: object) -> None:
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.folder / "conf" / name).write_text(text)

    def start(self, service: str, *arguments: str) -> list[int]:
        """Start a service, and return its ports once it is ready."""
        process = subprocess.Popen(
            self._command("pulsarium.cli.pulsar.main", service, *arguments), stdout=subprocess.PIPE, text=True
        )
        self.running.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"the service is ready service=\S+ ports=(.*)", line)
            if found:
                return [int(port) for port in re.findall(r"[0-9]+", found[1])]
        raise AssertionError(f"{service} ended")

    def stop(self) -> list[int]:
        """Send SIGTERM to every service, and return the exit codes."""
        for process in self.running:
            process.terminate()
        codes = []
        for process in self.running:
            process.communicate(timeout=60)
            codes.append(process.returncode)
        self.running.clear()
        return codes

    def run(self, *arguments: str, module: str = "pulsarium.cli.pulsar.main") -> tuple[int, str, str]:
        """Run a program to its end, and return its exit code, stdout and stderr."""
        done = subprocess.run(self._command(module, *arguments), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def _command(self, module: str, *arguments: str) -> list[str]:
        return [sys.executable, "-P", "-c", PROGRAM.format(module=module), str(self.folder), *arguments]
