package pulsarium.matrix;

import static pulsarium.matrix.Check.consume;
import static pulsarium.matrix.Check.equal;
import static pulsarium.matrix.Check.nothingMore;
import static pulsarium.matrix.Check.receive;
import static pulsarium.matrix.Check.send;
import static pulsarium.matrix.Check.text;
import static pulsarium.matrix.Check.texts;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import pulsarium.matrix.Main.Scenario;

/** Scenarios of acknowledgement and redelivery. */
final class Acknowledging {
    private Acknowledging() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("shared-nack", Acknowledging::sharedNack);
        all.put("redelivery-count", Acknowledging::redeliveryCount);
        all.put("ack-timeout", Acknowledging::ackTimeout);
        all.put("cumulative-ack", Acknowledging::cumulativeAck);
        all.put("batch-index-ack", Acknowledging::batchIndexAck);
        all.put("ack-receipt", Acknowledging::ackReceipt);
        all.put("dead-letter", Acknowledging::deadLetter);
        all.put("retry-letter", Acknowledging::retryLetter);
        all.put("unsubscribe", Acknowledging::unsubscribe);
    }

    private static ConsumerBuilder<byte[]> refusing(Cell cell) throws Exception {
        return cell.consuming(SubscriptionType.Shared).negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS);
    }

    private static void sharedNack(Cell cell) throws Exception {
        var consumer = refusing(cell).subscribe();
        send(cell.producer(), texts(0, 10));
        for (var message : receive(consumer, 10)) {
            if (text(message).equals("a0004")) {
                consumer.negativeAcknowledge(message);
            } else {
                consumer.acknowledge(message);
            }
        }
        equal(consume(consumer, 1), List.of("a0004"));
        nothingMore(consumer);
    }

    private static void redeliveryCount(Cell cell) throws Exception {
        var consumer = refusing(cell).subscribe();
        send(cell.producer(), List.of("again"));
        var counts = new ArrayList<Integer>();
        for (int count = 0; count < 3; count++) {
            var message = receive(consumer, 1).get(0);
            counts.add(message.getRedeliveryCount());
            consumer.negativeAcknowledge(message);
        }
        equal(counts, List.of(0, 1, 2));
    }

    private static void ackTimeout(Cell cell) throws Exception {
        var consumer = cell.consuming(SubscriptionType.Shared).ackTimeout(1, TimeUnit.SECONDS).subscribe();
        send(cell.producer(), List.of("again"));
        receive(consumer, 1);
        equal(consume(consumer, 1), List.of("again"));
    }

    private static void cumulativeAck(Cell cell) throws Exception {
        var consumer = cell.consumer();
        send(cell.producer(), texts(0, 10));
        consumer.acknowledgeCumulative(receive(consumer, 6).get(5));
        consumer.close();
        var again = cell.consumer();
        equal(consume(again, 4), texts(6, 10));
        nothingMore(again);
    }

    private static void batchIndexAck(Cell cell) throws Exception {
        var builder = cell.consuming(SubscriptionType.Shared).enableBatchIndexAcknowledgment(true);
        var consumer = builder.subscribe();
        send(cell.batches(), texts(0, 10));
        var messages = receive(consumer, 10);
        for (int place = 0; place < 10; place += 2) {
            consumer.acknowledge(messages.get(place));
        }
        consumer.close();
        var again = builder.subscribe();
        equal(consume(again, 5), IntStream.of(1, 3, 5, 7, 9).mapToObj(place -> texts(0, 10).get(place)).toList());
        nothingMore(again);
    }

    private static void ackReceipt(Cell cell) throws Exception {
        var consumer = cell.consuming(SubscriptionType.Exclusive).isAckReceiptEnabled(true).subscribe();
        send(cell.producer(), texts(0, 10));
        for (var message : receive(consumer, 5)) {
            consumer.acknowledge(message);
        }
        consumer.close();
        var again = cell.consumer();
        equal(consume(again, 5), texts(5, 10));
        nothingMore(again);
    }

    private static void deadLetter(Cell cell) throws Exception {
        var letters = cell.client().newConsumer().topic(cell.topic() + "-s-DLQ").subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        var policy = DeadLetterPolicy.builder().maxRedeliverCount(2).build();
        var consumer = refusing(cell).deadLetterPolicy(policy).subscribe();
        send(cell.producer(), List.of("dead"));
        for (int count = 0; count < 3; count++) {
            consumer.negativeAcknowledge(receive(consumer, 1).get(0));
        }
        nothingMore(consumer);
        equal(consume(letters, 1), List.of("dead"));
    }

    private static void retryLetter(Cell cell) throws Exception {
        var consumer = cell.consuming(SubscriptionType.Shared).enableRetry(true).subscribe();
        send(cell.producer(), List.of("later"));
        consumer.reconsumeLater(receive(consumer, 1).get(0), 500, TimeUnit.MILLISECONDS);
        var message = receive(consumer, 1).get(0);
        equal(text(message) + message.getProperty("RECONSUMETIMES"), "later1");
    }

    private static void unsubscribe(Cell cell) throws Exception {
        var consumer = cell.consumer();
        send(cell.producer(), texts(0, 5));
        equal(consume(consumer, 5), texts(0, 5));
        consumer.unsubscribe();
        equal(consume(cell.consumer(), 5), texts(0, 5));
    }
}
