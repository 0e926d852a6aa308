"""/admin/v3/transactions: coordinators, transaction buffers, pending acknowledgements."""
