"""`pulsarium admin`: the admin REST API from the command line, in the grammar of pulsar-admin.

`main.py` names the groups of commands and the modules whose GROUPS have their rows; `command.py` turns rows into
click's commands. Nothing here imports the broker.
"""
