"""Inputs of the calls of every_route.py: bodies, queries and values of path parameters.

The key of an input is the path after the namespace or the topic, or the whole path. A method may stand before the path.
$name stands for the value of a path parameter; $ledger and $entry are those of the second of three messages.
"""

from __future__ import annotations

from typing import Any

VALUES: dict[str, Any] = {
    "allocator": "default",
    "bookie": "127.0.0.1:3999",
    "bundle": "0x00000000_0xffffffff",
    "clusterName": "standalone",
    "configName": "maxConcurrentLookupRequest",
    "configValue": "49999",
    "coordinatorId": 0,
    "count": 1,
    "domain": "persistent",
    "domainName": "d",
    "entry": 0,
    "file": "app.js",
    "group": "g",
    "key": "k",
    "ledger": 0,
    "namespace": "ns",
    "partition": 0,
    "policyName": "policy",
    "position": 1,
    "role": "r",
    "seconds": 3600,
    "subscription": "s",
    "timeout": 0,
    "timestamp": 1,
    "topic": "t",
    "value": "v",
    "version": 0,
}

RATE = {"dispatchThrottlingRateInMsg": 10, "dispatchThrottlingRateInByte": 1000, "ratePeriodInSecond": 1}
QUOTA = {
    "msgRateIn": 10.0,
    "msgRateOut": 20.0,
    "bandwidthIn": 1000.0,
    "bandwidthOut": 2000.0,
    "memory": 10.0,
    "dynamic": False,
}
MESSAGE = {"ledgerId": "$ledger", "entryId": "$entry", "partitionIndex": -1, "batchIndex": -1}
STRING = '{"name":"String","schema":"","type":"STRING","timestamp":0,"properties":{}}'
GRANTED = "persistent://public/default/granted"
PRODUCED = {
    "schemaVersion": -1,
    "producerName": "rest",
    "keySchema": STRING,
    "valueSchema": STRING,
    "messages": [{"payload": "p", "key": "k", "sequenceId": 1}],
}

SCHEMA = {"type": "STRING", "schema": "", "properties": {}}

BODIES: dict[str, Any] = {
    "/admin/v2/schemas/{tenant}/{namespace}/{topic}/compatibility": SCHEMA,
    "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema": SCHEMA,
    "/admin/v2/schemas/{tenant}/{namespace}/{topic}/version": SCHEMA,
    "/admin/v3/transactions/transactionCoordinator/replicas": 3,
    "/admin/v2/bookies/racks-info/{bookie}": {"rack": "/r", "hostname": "h"},
    "/admin/v2/clusters/{cluster}": {
        "serviceUrl": "http://e.example:8080",
        "brokerServiceUrl": "pulsar://e.example:6650",
    },
    "/admin/v2/clusters/{cluster}/failureDomains/{domainName}": {"brokers": ["b:8080"]},
    "/admin/v2/clusters/{cluster}/migrate": {
        "serviceUrl": "http://o.example:8080",
        "brokerServiceUrl": "pulsar://o.example:6650",
    },
    "/admin/v2/clusters/{cluster}/namespaceIsolationPolicies/{policyName}": {
        "namespaces": ["nowhere/.*"],
        "primary": ["none.*"],
        "secondary": [],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "80"},
        },
    },
    "/admin/v2/clusters/{cluster}/peers": ["standalone"],
    "/admin/v2/namespaces/grantPermissionsOnTopics": [{"topic": GRANTED, "role": "r", "actions": ["produce"]}],
    "/admin/v2/namespaces/revokePermissionsOnTopics": [{"topic": GRANTED, "role": "r"}],
    "/admin/v2/resource-quotas": QUOTA,
    "/admin/v2/resourcegroups/{resourcegroup}": {"publishRateInMsgs": 10, "publishRateInBytes": 1000},
    "/admin/v2/tenants/{tenant}": {"adminRoles": ["r"], "allowedClusters": ["standalone"]},
    "/topics/persistent/{tenant}/{namespace}/{topic}": PRODUCED,
    "/topics/persistent/{tenant}/{namespace}/{topic}/partitions/{partition}": PRODUCED,
    "/topics/non-persistent/{tenant}/{namespace}/{topic}": PRODUCED,
    "/topics/non-persistent/{tenant}/{namespace}/{topic}/partitions/{partition}": PRODUCED,
    "/admin/v2/resource-quotas/{tenant}/{namespace}/{bundle}": QUOTA,
    "/allowedClusters": ["standalone"],
    "/allowedTopicPropertyKeysForMetrics": ["k"],
    "/antiAffinity": "g",
    "/autoSubscriptionCreation": {"allowAutoSubscriptionCreation": True},
    "/autoTopicCreation": {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
    "/backlogQuota": {"limitSize": 1000000, "limitTime": -1, "policy": "producer_exception"},
    "/backlogSize": MESSAGE,
    "/compactionThreshold": 100,
    "/deduplication": True,
    "/deduplicationEnabled": True,
    "/deduplicationSnapshotInterval": 10,
    "/delayedDelivery": {"active": True, "tickTime": 1000},
    "/dispatchRate": RATE,
    "/encryptionRequired": True,
    "/entryFilters": {"entryFilterNames": ""},
    "/inactiveTopicPolicies": {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 60,
        "deleteWhileInactive": True,
    },
    "/isAllowAutoUpdateSchema": True,
    "/messageTTL": 60,
    "/migration": False,
    "/offload": MESSAGE,
    "/offloadDeletionLagMs": 1000,
    "/offloadPolicies": {"managedLedgerOffloadDriver": "filesystem", "fileSystemURI": "file:///none"},
    "/offloadThreshold": 1000,
    "/offloadThresholdInSeconds": 100,
    "/partitions": 2,
    "POST /partitions": 3,
    "/permissions/subscription/{subscription}": ["r"],
    "/permissions/{role}": ["produce"],
    "/persistence": {
        "bookkeeperEnsemble": 1,
        "bookkeeperWriteQuorum": 1,
        "bookkeeperAckQuorum": 1,
        "managedLedgerMaxMarkDeleteRate": 1.0,
    },
    "/persistence/bookieAffinity": {"bookkeeperAffinityGroupPrimary": "p"},
    "/properties": {"a": "1"},
    "/publishRate": {"publishThrottlingRateInMsg": 10, "publishThrottlingRateInByte": 1000},
    "/replication": ["standalone"],
    "/replicatorDispatchRate": RATE,
    "/retention": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 10},
    "/schemaAutoUpdateCompatibilityStrategy": "Full",
    "/schemaCompatibilityStrategy": "FULL",
    "/schemaValidationEnforced": True,
    "/shadowTopics": ["persistent://$tenant/ns/t"],
    "/subscribeRate": {"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 30},
    "/subscription/{subscription}": {"ledgerId": -1, "entryId": -1},
    "/subscription/{subscription}/analyzeBacklog": MESSAGE,
    "/subscription/{subscription}/expireMessages": MESSAGE,
    "/subscription/{subscription}/properties": {"a": "1"},
    "/subscription/{subscription}/replicatedSubscriptionStatus": False,
    "/subscription/{subscription}/resetcursor": MESSAGE,
    "/subscription/{subscription}/skipByMessageIds": {
        "type": "messageId",
        "messageIds": [{"ledgerId": "$ledger", "entryId": "$entry"}],
    },
    "/subscriptionAuthMode": "None",
    "/subscriptionDispatchRate": RATE,
    "/subscriptionExpirationTime": 60,
    "/subscriptionTypesEnabled": ["Shared"],
    "/{subscription}/dispatchRate": RATE,
}
for number in (
    *("Producers", "Consumers", "ConsumersPerSubscription", "ConsumersPerTopic", "ProducersPerTopic"),
    *("SubscriptionsPerTopic", "TopicsPerNamespace", "UnackedMessagesOnConsumer", "UnackedMessagesOnSubscription"),
    *("UnackedMessagesPerConsumer", "UnackedMessagesPerSubscription", "MessageSize"),
):
    BODIES[f"/max{number}"] = 10

QUERIES = {
    "/admin/v2/bookies/racks-info/{bookie}": "?group=default",
    "/admin/v2/clusters/{cluster}/migrate": "?migrated=true",
    "/admin/v2/namespaces/{cluster}/antiAffinity/{group}": "?tenant=public",
    "/{bundle}/topicHashPositions": "?topics=persistent://$tenant/ns/t",
    "/examinemessage": "?initialPosition=earliest&messagePosition=1",
    "/getMessageIdByIndex": "?index=0",
    "DELETE /properties": "?key=k",
    "/messageTTL": "?messageTTL=60",
    "/subscriptionExpirationTime": "?subscriptionExpirationTime=60",
}
