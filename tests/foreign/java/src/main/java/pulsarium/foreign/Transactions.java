package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.fails;
import static pulsarium.foreign.Check.get;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.api.transaction.TransactionCoordinatorClientException;

/** Transactions: batches, cumulative acknowledgements, and an end that nobody asks for (B-29). */
final class Transactions {
    private static PulsarClient shared;

    private final Context context;
    private final PulsarClient client;

    private Transactions(Context context, PulsarClient client) {
        this.context = context;
        this.client = client;
    }

    static void register(Map<String, Scenario> all) {
        all.put("transactions-refused", Transactions::refused);
        with(all, "transaction-commit-batched", Transactions::publish);
        with(all, "transaction-ack-cumulative", Transactions::acknowledgeCumulatively);
        with(all, "transaction-timeout", Transactions::timeout);
    }

    @FunctionalInterface
    private interface Part {
        void run(Transactions transactions) throws Exception;
    }

    private static void with(Map<String, Scenario> all, String name, Part part) {
        all.put(name, context -> {
            // One for all, and never closed: that takes seconds.
            if (shared == null) {
                shared = PulsarClient.builder().serviceUrl(context.serviceUrl()).enableTransaction(true).build();
            }
            part.run(new Transactions(context, shared));
        });
    }

    /** What a broker without a transaction coordinator says to a client that wants one. */
    private static void refused(Context context) throws Exception {
        var refusal = fails(PulsarClientException.class, () -> {
            try (var client = PulsarClient.builder().serviceUrl(context.serviceUrl()).enableTransaction(true)
                    .operationTimeout(Check.SECONDS, TimeUnit.SECONDS).build()) {
                return get(client.newTransaction().build());
            }
        });
        that(refusal.getMessage().contains("doesn't enable the transaction coordinator"), refusal.getMessage());
    }

    private Transaction begin() throws Exception {
        return begin(60_000);
    }

    private Transaction begin(long milliseconds) throws Exception {
        return get(client.newTransaction().withTransactionTimeout(milliseconds, TimeUnit.MILLISECONDS).build());
    }

    private Producer<byte[]> producer(String topic, boolean batched) throws Exception {
        return client.newProducer().topic(topic).sendTimeout(0, TimeUnit.SECONDS).enableBatching(batched)
                .batchingMaxPublishDelay(1, TimeUnit.SECONDS).create();
    }

    private ConsumerBuilder<byte[]> consumer(String topic, SubscriptionType type) {
        return client.newConsumer().topic(topic).subscriptionName("s").subscriptionType(type)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).enableBatchIndexAcknowledgment(true);
    }

    private static List<MessageId> send(Producer<byte[]> producer, Transaction transaction, List<String> texts)
            throws Exception {
        var futures = new ArrayList<CompletableFuture<MessageId>>();
        for (var text : texts) {
            futures.add(producer.newMessage(transaction).value(Check.bytes(text)).sendAsync());
        }
        producer.flush();
        var ids = new ArrayList<MessageId>();
        for (var future : futures) {
            ids.add(get(future));
        }
        return ids;
    }

    private void publish() throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Exclusive).subscribe();
                var producer = producer(context.topic(), true)) {
            var dropped = begin();
            // The client may change the order and the batch of messages that it sends while it registers the topic.
            send(producer, dropped, texts("dropped", 0, 1));
            send(producer, dropped, texts("dropped", 1, 10));
            nothingMore(consumer);
            get(dropped.abort());
            equal(dropped.getState(), Transaction.State.ABORTED);
            var kept = begin();
            send(producer, kept, texts("kept", 0, 1));
            send(producer, kept, texts("kept", 1, 10));
            nothingMore(consumer);
            get(kept.commit());
            equal(consume(consumer, 10), texts("kept", 0, 10));
            nothingMore(consumer);
            Check.eventually(() -> context.stats(context.topic()).contains("\"msgBacklog\":0,"), "nothing left");
        }
    }

    private void acknowledgeCumulatively() throws Exception {
        var exclusive = consumer(context.topic(), SubscriptionType.Exclusive);
        try (var consumer = exclusive.subscribe(); var producer = producer(context.topic(), false)) {
            Check.send(producer, texts("a", 0, 10));
            var messages = receive(consumer, 10);
            var dropped = begin();
            get(consumer.acknowledgeCumulativeAsync(messages.get(6).getMessageId(), dropped));
            get(dropped.abort());
            consumer.redeliverUnacknowledgedMessages();
            equal(receive(consumer, 10).stream().map(Check::text).toList(), texts("a", 0, 10));
            var kept = begin();
            get(consumer.acknowledgeCumulativeAsync(messages.get(6).getMessageId(), kept));
            get(kept.commit());
        }
        try (var consumer = exclusive.subscribe()) {
            equal(consume(consumer, 3), texts("a", 7, 10));
            nothingMore(consumer);
        }
    }

    /** Nobody ends it, so the broker does. */
    private void timeout() throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Shared).subscribe();
                var producer = producer(context.topic(), false);
                var output = consumer(context.topic("out"), SubscriptionType.Exclusive).subscribe();
                var published = producer(context.topic("out"), false)) {
            Check.send(producer, texts("a", 0, 1));
            var transaction = begin(10_000);  // milliseconds, in which the next two lines are done
            send(published, transaction, texts("dropped", 0, 2));
            get(consumer.acknowledgeAsync(receive(consumer, 1).get(0).getMessageId(), transaction));
            Check.send(published, texts("plain", 0, 2));
            equal(consume(output, 2), texts("plain", 0, 2));
            equal(consume(consumer, 1), texts("a", 0, 1));
            // The client has a timer of its own, which may ring after the broker's.
            eventually(() -> transaction.getState() == Transaction.State.TIME_OUT, "the state TIME_OUT");
            fails(TransactionCoordinatorClientException.InvalidTxnStatusException.class, () -> get(transaction.commit()));
            nothingMore(output);
        }
    }
}
