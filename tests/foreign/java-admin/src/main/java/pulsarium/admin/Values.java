package pulsarium.admin;

import java.util.Map;
import org.apache.pulsar.common.policies.data.BacklogQuota;
import org.apache.pulsar.common.policies.data.DelayedDeliveryPolicies;
import org.apache.pulsar.common.policies.data.DispatchRate;
import org.apache.pulsar.common.policies.data.EntryFilters;
import org.apache.pulsar.common.policies.data.InactiveTopicDeleteMode;
import org.apache.pulsar.common.policies.data.InactiveTopicPolicies;
import org.apache.pulsar.common.policies.data.OffloadPolicies;
import org.apache.pulsar.common.policies.data.PersistencePolicies;

/** Values of policies, each unlike the default. */
final class Values {
    static final BacklogQuota QUOTA = BacklogQuota.builder().limitSize(5000).limitTime(60)
            .retentionPolicy(BacklogQuota.RetentionPolicy.consumer_backlog_eviction).build();
    static final Map<BacklogQuota.BacklogQuotaType, BacklogQuota> QUOTAS =
            Map.of(BacklogQuota.BacklogQuotaType.destination_storage, QUOTA);

    private Values() {
    }

    static DispatchRate dispatchRate() {
        return DispatchRate.builder().dispatchThrottlingRateInMsg(10).dispatchThrottlingRateInByte(2000)
                .ratePeriodInSecond(3).relativeToPublishRate(false).build();
    }

    static PersistencePolicies persistence() {
        return persistence(1, 1, 1);
    }

    static PersistencePolicies persistence(int ensemble, int write, int ack) {
        return new PersistencePolicies(ensemble, write, ack, 2.5);
    }

    static InactiveTopicPolicies inactive() {
        return new InactiveTopicPolicies(InactiveTopicDeleteMode.delete_when_subscriptions_caught_up, 3600, true);
    }

    static DelayedDeliveryPolicies delayed() {
        return DelayedDeliveryPolicies.builder().active(true).tickTime(500).maxDeliveryDelayInMillis(5000).build();
    }

    static EntryFilters filters() {
        return new EntryFilters("");
    }

    static OffloadPolicies offload() {
        return OffloadPolicies.builder().managedLedgerOffloadDriver("filesystem").managedLedgerOffloadThresholdInBytes(1000L)
                .fileSystemURI("file:///none").fileSystemProfilePath("none").build();
    }
}
