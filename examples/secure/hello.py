"""Proves its role with a token, over TLS: ./keys.sh; pulsarium serve --config secure.conf; python hello.py"""

from pathlib import Path

import pulsar

client = pulsar.Client(
    "pulsar+ssl://localhost:6651",
    authentication=pulsar.AuthenticationToken(Path("admin.token").read_text),
    tls_trust_certs_file_path="server.pem",
    tls_validate_hostname=True,
)
consumer = client.subscribe("hello", "secured")
client.create_producer("hello").send(b"Hello over TLS")
message = consumer.receive(10_000)
consumer.acknowledge(message)
print(message.data().decode())
client.close()
