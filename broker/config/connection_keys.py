"""The broker.conf keys of connections: binary, HTTP and WebSocket."""

from dataclasses import dataclass

from pulsarium.broker.config.meaning import key
from pulsarium.broker.config.scalable_keys import ScalableTopicsConfig
from pulsarium.proto.numbers import LONG_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig(ScalableTopicsConfig):
    """Settings of connections of one broker, named as in broker.conf."""

    # Connections
    maxMessageSize: int = key(
        5_242_880, "Largest message; a frame may be 10 KiB larger", "bytes", low=1, high=2147473407
    )
    keepAliveIntervalSeconds: int = key(
        30, "Silence before the broker sends PING, and from PING until it closes the connection; 0 for never", "seconds"
    )
    connectionLivenessCheckTimeoutMillis: int = key(
        5_000,
        "How long a connection may take to answer when another wants its place; 0 for no check",
        "milliseconds",
        high=LONG_MAX,
    )
    brokerMaxConnections: int = key(0, "Most connections at once; the broker refuses more; 0: no limit")
    brokerMaxConnectionsPerIp: int = key(0, "Most connections at once from one address; 0: no limit")
    maxHttpServerConnections: int = key(
        2_048, "Most HTTP connections of a port at once; more wait until others end; 0: no limit"
    )
    maxHttpServerConnectionsPerIp: int = key(
        1_024,
        "Most HTTP connections at once from one address, loopback too; more get 503. Pulsarium's own key",
        low=0,
    )
    httpRequestsLimitEnabled: bool = key(False, "Refuse HTTP requests beyond httpRequestsMaxPerSecond (429)")
    httpRequestsMaxPerSecond: float = key(100.0, "Most HTTP requests of httpRequestsLimitEnabled", "per second", low=0)
    httpMaxRequestHeaderSize: int = key(8_192, "Largest head of an HTTP request", "bytes", low=1)
    httpAllowedHosts: frozenset[str] = key(
        frozenset(),
        "More names of this broker in HTTP's Host, and sites (HOST:PORT) whose pages may call it; * for all. "
        "Pulsarium's own key. Always allowed are addresses, names without a dot, private names (.internal, .test, "
        ".home.arpa, .svc.cluster.local), advertised names and the machine's own, also in .local",
    )
    webSocketServiceEnabled: bool = key(True, "Serve the WebSocket API on the HTTP ports")
    webSocketMaxTextFrameSize: int = key(1_048_576, "Largest message of a WebSocket client", "bytes", low=1)
    webSocketSessionIdleTimeoutMillis: int = key(
        300_000, "Silence in both directions before the broker closes a WebSocket; 0: never", "milliseconds", low=0
    )
    webSocketPingDurationSeconds: int = key(
        -1, "Interval of the broker's pings on WebSockets; 0 or less: none", "seconds"
    )
    maxPendingPublishRequestsPerConnection: int = key(
        1_000, "Messages of a connection without a receipt before the broker stops reading", low=1
    )
    maxMessagePublishBufferSizeInMB: int = key(
        16, "Size of published messages not stored yet before the broker stops reading; 0: no limit", "MiB", low=0
    )
    maxConcurrentNonPersistentMessagePerConnection: int = key(
        1_000, "Most messages to non-persistent topics in flight; the broker drops more"
    )
    maxConsumerMetadataSize: int = key(1_024, "Largest metadata of a producer or consumer", "bytes")
