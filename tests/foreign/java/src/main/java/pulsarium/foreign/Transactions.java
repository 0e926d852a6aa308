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

/** Transactions: what is visible when, whose acknowledgement counts, and how they end (B-29). */
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
        with(all, "transaction-commit", each -> each.publish(false));
        with(all, "transaction-commit-batched", each -> each.publish(true));
        with(all, "transaction-topics", Transactions::topics);
        with(all, "transaction-ack", Transactions::acknowledge);
        with(all, "transaction-ack-cumulative", Transactions::acknowledgeCumulatively);
        with(all, "transaction-ack-batch", Transactions::acknowledgeOfBatch);
        with(all, "transaction-conflict", Transactions::conflict);
        with(all, "transaction-timeout", Transactions::timeout);
        with(all, "transaction-ended", Transactions::ended);
        with(all, "transaction-plain-behind", Transactions::plainBehind);
        with(all, "transaction-unload", Transactions::unload);
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

    private void publish(boolean batched) throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Exclusive).subscribe();
                var producer = producer(context.topic(), batched)) {
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

    /** One transaction on three topics, one of them partitioned: all or nothing. */
    private void topics() throws Exception {
        var topics = List.of(context.topic(), context.topic("one"), context.topic("parts"));
        context.createPartitioned(topics.get(2), 2);
        for (var commits : new boolean[] {false, true}) {
            var transaction = begin();
            for (var topic : topics) {
                try (var producer = producer(topic, false)) {
                    send(producer, transaction, texts("c" + commits, 0, 4));
                }
            }
            get(commits ? transaction.commit() : transaction.abort());
        }
        for (var topic : topics) {
            try (var consumer = consumer(topic, SubscriptionType.Exclusive).subscribe()) {
                equal(Check.sorted(consume(consumer, 4)), texts("ctrue", 0, 4), topic);
                nothingMore(consumer);
            }
        }
    }

    /** Acknowledged in a transaction that is aborted, messages come again; in one that is committed, never. */
    private void acknowledge() throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Shared).subscribe();
                var producer = producer(context.topic(), false)) {
            Check.send(producer, texts("a", 0, 10));
            var messages = receive(consumer, 10);
            var kept = begin();
            var dropped = begin();
            for (int number = 0; number < 10; number++) {
                get(consumer.acknowledgeAsync(messages.get(number).getMessageId(), number < 5 ? dropped : kept));
            }
            nothingMore(consumer);
            get(kept.commit());
            nothingMore(consumer);
            get(dropped.abort());
            var again = receive(consumer, 5);
            equal(Check.sorted(again.stream().map(Check::text).toList()), texts("a", 0, 5));
            equal(again.get(0).getRedeliveryCount(), 1, "redelivery count");
            for (var message : again) {
                consumer.acknowledge(message);
            }
            backlog(0);
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

    /** Some messages of a batch in one transaction, some in another one. */
    private void acknowledgeOfBatch() throws Exception {
        var shared = consumer(context.topic(), SubscriptionType.Shared);
        try (var consumer = shared.subscribe(); var producer = producer(context.topic(), true)) {
            Check.send(producer, texts("a", 0, 6));
            var messages = receive(consumer, 6);
            var kept = begin();
            var dropped = begin();
            for (int number = 0; number < 6; number++) {
                get(consumer.acknowledgeAsync(messages.get(number).getMessageId(), number % 2 == 0 ? kept : dropped));
            }
            get(kept.commit());
            get(dropped.abort());
        }
        try (var consumer = shared.subscribe()) {
            equal(Check.sorted(consume(consumer, 3)), List.of("a0001", "a0003", "a0005"));
            nothingMore(consumer);
        }
    }

    private void conflict() throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Shared).subscribe();
                var producer = producer(context.topic(), false)) {
            Check.send(producer, texts("a", 0, 1));
            var id = receive(consumer, 1).get(0).getMessageId();
            var first = begin();
            get(consumer.acknowledgeAsync(id, first));
            var second = begin();
            fails(PulsarClientException.TransactionConflictException.class,
                    () -> get(consumer.acknowledgeAsync(id, second)));
            get(second.abort());
            nothingMore(consumer);
            get(first.commit());
            backlog(0);
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

    /** A transaction that is over takes nothing more. */
    private void ended() throws Exception {
        try (var producer = producer(context.topic(), false)) {
            var transaction = begin();
            send(producer, transaction, texts("a", 0, 1));
            get(transaction.commit());
            fails(TransactionCoordinatorClientException.InvalidTxnStatusException.class, () -> get(transaction.abort()));
            fails(TransactionCoordinatorClientException.InvalidTxnStatusException.class,
                    () -> send(producer, transaction, texts("b", 0, 1)));
        }
    }

    /** Plain messages behind an open transaction wait for it. */
    private void plainBehind() throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Exclusive).subscribe();
                var reader = client.newReader().topic(context.topic()).startMessageId(MessageId.earliest).create();
                var producer = producer(context.topic(), false)) {
            Check.send(producer, texts("before", 0, 1));
            var transaction = begin();
            send(producer, transaction, texts("in", 0, 1));
            Check.send(producer, texts("behind", 0, 1));
            equal(consume(consumer, 1), texts("before", 0, 1));
            nothingMore(consumer);
            equal(Check.text(reader.readNext()), "before0000");
            that(!reader.hasMessageAvailable(), "an open transaction's message is available");
            get(transaction.commit());
            equal(consume(consumer, 2), List.of("in0000", "behind0000"));
            that(reader.hasMessageAvailable(), "a committed message is not available");
            equal(Check.text(reader.readNext()), "in0000");
        }
    }

    /** Open transactions outlive an unload of the topics they are on. */
    private void unload() throws Exception {
        try (var consumer = consumer(context.topic(), SubscriptionType.Shared).subscribe();
                var producer = producer(context.topic(), false)) {
            Check.send(producer, texts("a", 0, 1));
            var messages = receive(consumer, 1);
            var kept = begin();
            var dropped = begin();
            send(producer, dropped, texts("dropped", 0, 2));
            send(producer, kept, texts("kept", 0, 2));
            get(consumer.acknowledgeAsync(messages.get(0).getMessageId(), kept));
            context.unload(context.topic());
            nothingMore(consumer);
            send(producer, kept, texts("kept", 2, 4));
            get(dropped.abort());
            get(kept.commit());
            equal(Check.sorted(consume(consumer, 4)), texts("kept", 0, 4));
            nothingMore(consumer);
            backlog(0);
        }
    }

    private void backlog(int messages) throws Exception {
        var wanted = "\"msgBacklog\":" + messages + ",";
        Check.eventually(() -> context.stats(context.topic()).contains(wanted), "a backlog of " + messages);
    }
}
