import pandas as pd

exchanges = pd.read_parquet("tables/exchanges.parquet").query("direction == 'client->broker'")
print(exchanges.value_counts(["client", "command", "outcome"]))
print(exchanges.groupby(["client", "command"]).latency_us.describe(percentiles=[0.5, 0.9, 0.99]))
print(pd.read_parquet("tables/violations.parquet").value_counts(["side", "rule", "client"]))
