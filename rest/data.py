"""JSON of tenants, clusters, brokers and schemas, in Pulsar's names."""

from __future__ import annotations

from typing import TypedDict


class TenantInfo(TypedDict, total=False):
    """The admin roles and the allowed clusters of a tenant."""

    adminRoles: list[str]
    allowedClusters: list[str]


class ClusterData(TypedDict, total=False):
    """The addresses of a cluster. A broker may return more fields."""

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
    """The addresses of the cluster that a cluster migrates to."""

    empty: bool
    serviceUrl: str
    serviceUrlTls: str
    brokerServiceUrl: str
    brokerServiceUrlTls: str


class ClusterPolicies(TypedDict, total=False):
    """The state of a cluster's migration, and its target."""

    migrated: bool
    migratedClusterUrl: ClusterUrl


class FailureDomain(TypedDict, total=False):
    """A group of brokers that fail together."""

    brokers: list[str]


class AutoFailoverPolicy(TypedDict):
    """The condition under which secondary brokers take over.

    `min_available` has the parameters `min_limit` and `usage_threshold` (percent).
    """

    policy_type: str
    parameters: dict[str, str]


class NamespaceIsolation(TypedDict, total=False):
    """Assignment of namespaces to brokers, both by regular expressions."""

    namespaces: list[str]
    primary: list[str]
    secondary: list[str]
    auto_failover_policy: AutoFailoverPolicy
    unload_scope: str


class BrokerIsolation(TypedDict, total=False):
    """The namespaces that isolation policies give to one broker."""

    brokerName: str
    policyName: str
    isPrimary: bool
    namespaceRegex: list[str]


class BrokerInfo(TypedDict, total=False):
    """The leader broker."""

    brokerId: str
    serviceUrl: str


class BookieInfo(TypedDict, total=False):
    """The rack of a bookie."""

    rack: str
    hostname: str


class BookieAddress(TypedDict):
    """A bookie, as `host:port`."""

    bookieId: str


class BookiesClusterInfo(TypedDict):
    """The bookies of a cluster."""

    bookies: list[BookieAddress]


class ResourceGroup(TypedDict, total=False):
    """Rates that namespaces share, per second; -1 is without limit."""

    publishRateInMsgs: int
    publishRateInBytes: int
    dispatchRateInMsgs: int
    dispatchRateInBytes: int


class ResourceQuota(TypedDict):
    """The load of a bundle that load balancing expects: messages and bytes per second, memory in MB."""

    msgRateIn: float
    msgRateOut: float
    bandwidthIn: float
    bandwidthOut: float
    memory: float
    dynamic: bool


class LookupData(TypedDict, total=False):
    """The URLs of the broker that serves a topic; none for a port that the broker does not have."""

    brokerUrl: str
    brokerUrlTls: str | None
    httpUrl: str
    httpUrlTls: str | None
    nativeUrl: str


class SchemaInfo(TypedDict, total=False):
    """A schema of the registry. `data` is its definition, `timestamp` is in milliseconds since the epoch."""

    version: int
    type: str
    timestamp: int
    data: str
    properties: dict[str, str]


class PostSchema(TypedDict, total=False):
    """A schema to register; `schema` is its definition."""

    type: str
    schema: str
    properties: dict[str, str]


class Compatibility(TypedDict, total=False):
    """The result of a compatibility check: acceptance, and the strategy."""

    compatibility: bool
    schemaCompatibilityStrategy: str
