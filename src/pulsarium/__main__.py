"""The `pulsarium` command, and `python -m pulsarium`."""

from __future__ import annotations

import signal


def main() -> None:
    """Have Ctrl-C end the process from here on, then import and run what was asked for."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pulsarium.cli.garbage import collect_seldom

    collect_seldom()
    from pulsarium.cli.main import main

    main()


if __name__ == "__main__":
    main()
