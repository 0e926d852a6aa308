"""The admin REST API: one module per resource, over the same model that the binary protocol uses."""
