"""`python -m pulsarium`: the same as the `pulsarium` command."""

from pulsarium.cli.main import main

if __name__ == "__main__":
    main()
