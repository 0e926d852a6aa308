"""`pulsarium admin`: the admin REST API from the command line, in the grammar of pulsar-admin.

`command.py` turns tables of commands into click's; each other module without an underscore in its table's name is one
group of commands. Nothing here imports the broker.
"""
