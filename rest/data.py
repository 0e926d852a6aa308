"""What tenants, clusters, brokers and schemas are, in Pulsar's names."""

from __future__ import annotations

from typing import TypedDict


class TenantInfo(TypedDict, total=False):
    """Who may administer it, and which clusters it may use."""

    adminRoles: list[str]
    allowedClusters: list[str]


class ClusterData(TypedDict, total=False):
    """Where a cluster is; a broker may say more."""

    serviceUrl: str
    serviceUrlTls: str
    brokerServiceUrl: str
    brokerServiceUrlTls: str
    proxyServiceUrl: str
    proxyProtocol: str
    authenticationPlugin: str
    authenticationParameters: str
    peerClusterNames: list[str]
    brokerClientTlsEnabled: bool
    tlsAllowInsecureConnection: bool
    brokerClientTrustCertsFilePath: str
    brokerClientKeyFilePath: str
    brokerClientCertificateFilePath: str
    listenerName: str


class ClusterUrl(TypedDict, total=False):
    """Where a cluster migrates to."""

    empty: bool
    serviceUrl: str
    serviceUrlTls: str
    brokerServiceUrl: str
    brokerServiceUrlTls: str


class ClusterPolicies(TypedDict, total=False):
    """Whether a cluster has migrated, and where to."""

    migrated: bool
    migratedClusterUrl: ClusterUrl


class FailureDomain(TypedDict, total=False):
    """Brokers that fail together."""

    brokers: list[str]


class AutoFailoverPolicy(TypedDict):
    """When primary brokers do not do: `min_available` with `min_limit` and `usage_threshold` (percent)."""

    policy_type: str
    parameters: dict[str, str]


class NamespaceIsolation(TypedDict, total=False):
    """Which namespaces go to which brokers, all by regular expressions."""

    namespaces: list[str]
    primary: list[str]
    secondary: list[str]
    auto_failover_policy: AutoFailoverPolicy
    unload_scope: str


class BrokerIsolation(TypedDict, total=False):
    """The namespaces of one broker."""

    brokerName: str
    policyName: str
    isPrimary: bool
    namespaceRegex: list[str]


class BrokerInfo(TypedDict, total=False):
    """The broker that leads."""

    brokerId: str
    serviceUrl: str


class BookieInfo(TypedDict, total=False):
    """Where a bookie is."""

    rack: str
    hostname: str


class BookieAddress(TypedDict):
    """A bookie, `host:port`."""

    bookieId: str


class BookiesClusterInfo(TypedDict):
    """The bookies."""

    bookies: list[BookieAddress]


class ResourceGroup(TypedDict, total=False):
    """Rates that namespaces share, per second; -1 is without limit."""

    publishRateInMsgs: int
    publishRateInBytes: int
    dispatchRateInMsgs: int
    dispatchRateInBytes: int


class ResourceQuota(TypedDict):
    """What load balancing reckons with for a bundle: per second, bytes per second, MB."""

    msgRateIn: float
    msgRateOut: float
    bandwidthIn: float
    bandwidthOut: float
    memory: float
    dynamic: bool


class LookupData(TypedDict, total=False):
    """The broker that serves a topic; None where it has no such port."""

    brokerUrl: str
    brokerUrlTls: str | None
    httpUrl: str
    httpUrlTls: str | None
    nativeUrl: str


class SchemaInfo(TypedDict, total=False):
    """A schema as the registry has it: `data` is its definition, `timestamp` in milliseconds since the epoch."""

    version: int
    type: str
    timestamp: int
    data: str
    properties: dict[str, str]


class PostSchema(TypedDict, total=False):
    """A schema to be registered; `schema` is its definition."""

    type: str
    schema: str
    properties: dict[str, str]


class Compatibility(TypedDict, total=False):
    """Whether a schema would be accepted, and by which strategy."""

    compatibility: bool
    schemaCompatibilityStrategy: str
