#!/opt/pulsarium/bin/python -P
import sys

from pulsarium.cli.pulsar.apply_config import main

main(sys.argv[1:])
