package pulsarium.foreign;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;

/** What a broker without a transaction coordinator says to a client that wants one. */
final class Transactions {
    private Transactions() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("transactions-refused", Transactions::refused);
    }

    private static void refused(Context context) throws Exception {
        var refusal = Check.fails(PulsarClientException.class, () -> {
            try (var client = PulsarClient.builder().serviceUrl(context.serviceUrl()).enableTransaction(true)
                    .operationTimeout(5, TimeUnit.SECONDS).build()) {
                return Check.get(client.newTransaction().build());
            }
        });
        Check.that(refusal.getMessage().contains("doesn't enable the transaction coordinator"), refusal.getMessage());
    }
}
