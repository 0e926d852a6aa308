package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.fails;
import static pulsarium.foreign.Check.get;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.receive;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.sorted;
import static pulsarium.foreign.Check.texts;
import static pulsarium.foreign.Check.that;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** What an acknowledgement covers, and that a subscription keeps its place. */
final class Acknowledging {
    private Acknowledging() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("ack-receipt", Acknowledging::receipt);
        all.put("ack-cumulative", Acknowledging::cumulative);
        all.put("ack-holes", Acknowledging::holes);
        all.put("ack-list", Acknowledging::list);
        all.put("unload", Acknowledging::unload);
        all.put("unsubscribe", Acknowledging::unsubscribe);
        all.put("busy", Acknowledging::busy);
        all.put("last-message-id", Acknowledging::lastMessageId);
        all.put("zero-queue", Acknowledging::zeroQueue);
        all.put("pause", Acknowledging::pause);
        all.put("stats", Acknowledging::stats);
        all.put("reconnect", Acknowledging::reconnect);
    }

    private static void receipt(Context context) throws Exception {
        try (var producer = context.newProducer()) {
            send(producer, texts("before", 0, 1));
            var consumer = context.consumer(context.type()).isAckReceiptEnabled(true).subscribe();
            send(producer, texts("a", 0, 30));
            var messages = receive(consumer, 30);
            acknowledged(consumer, messages.subList(0, 10));
            get(consumer.acknowledgeAsync(messages.subList(10, 15).stream().map(Message::getMessageId).toList()));
            if (context.type() != SubscriptionType.Shared) {
                get(consumer.acknowledgeCumulativeAsync(messages.get(19)));
            }
            consumer.close();
            int next = context.type() == SubscriptionType.Shared ? 15 : 20;
            try (var again = context.newConsumer(context.type())) {
                equal(consume(again, 30 - next), texts("a", next, 30));
                nothingMore(again);
            }
        }
    }

    /** Acknowledges each message, and waits for the broker's answers. */
    private static void acknowledged(Consumer<byte[]> consumer, List<Message<byte[]>> messages) throws Exception {
        var answers = messages.stream().map(consumer::acknowledgeAsync).toList();
        for (var answer : answers) {
            get(answer);
        }
    }

    private static void cumulative(Context context) throws Exception {
        try (var producer = context.newProducer()) {
            var consumer = context.newConsumer(context.type());
            send(producer, texts("a", 0, 20));
            consumer.acknowledgeCumulative(receive(consumer, 13).get(12));
            consumer.close();
            try (var again = context.newConsumer(context.type())) {
                equal(consume(again, 7), texts("a", 13, 20));
            }
        }
        try (var shared = context.client().newConsumer().topic(context.topic()).subscriptionName("shared")
                .subscriptionType(SubscriptionType.Shared).subscribe()) {
            fails(PulsarClientException.InvalidConfigurationException.class, () -> {
                shared.acknowledgeCumulative(MessageId.earliest);
                return null;
            });
        }
    }

    private static void holes(Context context) throws Exception {
        var left = new ArrayList<String>();
        try (var producer = context.newProducer(); var consumer = context.newConsumer(context.type())) {
            send(producer, texts("a", 0, 20));
            for (var message : receive(consumer, 20)) {
                if (message.getSequenceId() % 3 == 1) {
                    consumer.acknowledge(message);
                } else {
                    left.add(Check.text(message));
                }
            }
        }
        context.unload(context.topic());
        try (var again = context.newConsumer(context.type())) {
            equal(sorted(consume(again, left.size())), left);
            nothingMore(again);
        }
    }

    private static void list(Context context) throws Exception {
        try (var producer = context.producer().enableBatching(true).batchingMaxMessages(10).create();
                var consumer = context.consumer(SubscriptionType.Shared).batchReceivePolicy(BatchReceivePolicy.builder()
                        .maxNumMessages(25).timeout(Check.SECONDS, TimeUnit.SECONDS).build()).subscribe()) {
            send(producer, texts("a", 0, 50));
            for (int half = 0; half < 2; half++) {
                var messages = consumer.batchReceive();
                equal(messages.size(), 25);
                consumer.acknowledge(messages);
            }
        }
        try (var again = context.newConsumer(SubscriptionType.Shared)) {
            nothingMore(again);
        }
    }

    private static void unload(Context context) throws Exception {
        try (var producer = context.newProducer();
                var consumer = context.consumer(context.type()).isAckReceiptEnabled(true).subscribe()) {
            send(producer, texts("a", 0, 30));
            acknowledged(consumer, receive(consumer, 30));
            context.unload(context.topic());
            send(producer, texts("a", 30, 60));
            equal(consume(consumer, 30), texts("a", 30, 60));
            nothingMore(consumer);
        }
    }

    private static void unsubscribe(Context context) throws Exception {
        try (var producer = context.newProducer()) {
            send(producer, texts("a", 0, 5));
            var consumer = context.consumer(SubscriptionType.Exclusive)
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
            equal(consume(consumer, 5), texts("a", 0, 5));
            consumer.unsubscribe();
            that(!context.stats(context.topic()).contains("\"s\""), "the subscription is in the stats");
            try (var again = context.consumer(SubscriptionType.Exclusive)
                    .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe()) {
                equal(consume(again, 5), texts("a", 0, 5));
            }
        }
        try (var one = context.newConsumer(SubscriptionType.Shared); var two = context.newConsumer(SubscriptionType.Shared)) {
            fails(PulsarClientException.class, () -> {
                one.unsubscribe();
                return two;
            });
        }
    }

    private static void busy(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Exclusive)) {
            fails(PulsarClientException.ConsumerBusyException.class, () -> context.newConsumer(SubscriptionType.Exclusive));
            fails(PulsarClientException.ConsumerBusyException.class, () -> context.newConsumer(SubscriptionType.Shared));
            that(consumer.isConnected(), "the first stays");
        }
        context.newConsumer(SubscriptionType.Shared).close();
    }

    private static void lastMessageId(Context context) throws Exception {
        try (var producer = context.newProducer(); var consumer = context.newConsumer(SubscriptionType.Exclusive)) {
            equal(entry(consumer.getLastMessageIds().get(0)), -1L, "of an empty topic");
            var ids = send(producer, texts("a", 0, 5));
            equal(entry(consumer.getLastMessageIds().get(0)), entry(ids.get(4)));
            equal(consumer.getLastMessageIds().get(0).getOwnerTopic(), context.topic());
        }
    }

    private static long entry(MessageId id) {
        return ((MessageIdAdv) id).getEntryId();
    }

    private static void zeroQueue(Context context) throws Exception {
        try (var producer = context.newProducer();
                var consumer = context.consumer(SubscriptionType.Shared).receiverQueueSize(0).subscribe()) {
            send(producer, texts("a", 0, 50));
            // Such a consumer cannot wait with a timeout.
            for (var text : texts("a", 0, 50)) {
                var message = consumer.receiveAsync().get(Check.SECONDS, TimeUnit.SECONDS);
                equal(Check.text(message), text);
                consumer.acknowledge(message);
            }
        }
    }

    private static void pause(Context context) throws Exception {
        try (var producer = context.newProducer();
                var consumer = context.consumer(SubscriptionType.Shared).receiverQueueSize(4).subscribe()) {
            consumer.pause();
            send(producer, texts("a", 0, 40));
            // What the broker already had permits for still comes.
            var got = new ArrayList<String>();
            for (var message = next(consumer); message != null; message = next(consumer)) {
                got.add(Check.text(message));
                consumer.acknowledge(message);
            }
            that(got.size() <= 8, "paused, and " + got.size() + " came");
            consumer.resume();
            got.addAll(consume(consumer, 40 - got.size()));
            equal(got, texts("a", 0, 40));
        }
    }

    private static Message<byte[]> next(Consumer<byte[]> consumer) throws Exception {
        return consumer.receive(Check.QUIET_MS, TimeUnit.MILLISECONDS);
    }

    private static void stats(Context context) throws Exception {
        try (var producer = context.newProducer();
                var consumer = context.consumer(SubscriptionType.Shared).isAckReceiptEnabled(true).subscribe()) {
            send(producer, texts("a", 0, 10));
            acknowledged(consumer, receive(consumer, 10));
            var stats = context.stats(context.topic());
            that(stats.contains("\"msgInCounter\":10,"), "ten messages came in: " + stats);
            that(stats.contains("\"msgBacklog\":0,"), "none is left: " + stats);
            equal(consumer.getLastDisconnectedTimestamp(), 0L);
        }
    }

    private static void reconnect(Context context) throws Exception {
        try (var producer = context.newProducer()) {
            context.newConsumer(context.type()).close();
            send(producer, texts("a", 0, 30));
            for (int start = 0; start < 30; start += 10) {
                try (var consumer = context.newConsumer(context.type())) {
                    equal(consume(consumer, 10), texts("a", start, start + 10));
                }
            }
            try (var consumer = context.newConsumer(context.type())) {
                nothingMore(consumer);
            }
        }
        equal(get(context.client().getPartitionsForTopic(context.topic(), false)), List.of(context.topic()));
    }
}
