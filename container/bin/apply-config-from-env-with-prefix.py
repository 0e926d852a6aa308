#!/opt/pulsarium/bin/python -P
import sys

from pulsarium.cli.pulsar.apply_config import main_with_prefix

main_with_prefix(sys.argv[1:])
