"""`pulsarium admin`: the admin REST API from the command line, with the commands of pulsar-admin.

`main.py` names the groups of commands, and the modules whose GROUPS hold their tables. `command.py` turns the tables
into click's commands. Nothing here imports the broker.
"""
