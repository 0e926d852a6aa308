package pulsarium.matrix;

import static pulsarium.matrix.Check.consume;
import static pulsarium.matrix.Check.equal;
import static pulsarium.matrix.Check.nothingMore;
import static pulsarium.matrix.Check.receive;
import static pulsarium.matrix.Check.refused;
import static pulsarium.matrix.Check.send;
import static pulsarium.matrix.Check.text;
import static pulsarium.matrix.Check.texts;
import static pulsarium.matrix.Check.that;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import pulsarium.matrix.Main.Scenario;

/** Scenarios of topics: access, consumers of a subscription, partitions, lookup and security. */
final class Topics {
    private Topics() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("exclusive-busy", Topics::exclusiveBusy);
        all.put("failover", Topics::failover);
        all.put("shared", Topics::shared);
        all.put("partitioned", Topics::partitioned);
        all.put("pattern", Topics::pattern);
        all.put("multi-topics", Topics::multiTopics);
        all.put("unload", Topics::unload);
        all.put("brokers", Topics::brokers);
        all.put("http-lookup", cell -> five(cell, Cell.builder(cell.text("http_url"))));
        all.put("token", Topics::token);
        all.put("tls", Topics::tls);
        all.put("zero-queue", Topics::zeroQueue);
        all.put("producer-name", Topics::producerName);
        all.put("exclusive-producer", Topics::exclusiveProducer);
        all.put("wait-for-exclusive", Topics::waitForExclusive);
        all.put("terminated", Topics::terminated);
    }

    private static void exclusiveBusy(Cell cell) throws Exception {
        var consumer = cell.consumer();
        refused(PulsarClientException.ConsumerBusyException.class, cell::consumer);
        consumer.close();
        cell.consumer();
    }

    private static void failover(Cell cell) throws Exception {
        var first = cell.consuming(SubscriptionType.Failover).consumerName("a").subscribe();
        var second = cell.consuming(SubscriptionType.Failover).consumerName("b").subscribe();
        var producer = cell.producer();
        send(producer, texts(0, 10));
        // A hash of the consumers' names and the topic's name decides which consumer is active.
        Message<byte[]> message = null;
        var active = second;
        for (int turn = 0; turn < 100 && message == null; turn++) {
            active = active == first ? second : first;
            message = active.receive(100, TimeUnit.MILLISECONDS);
        }
        var standby = active == first ? second : first;
        that(message != null && text(message).equals("a0000"), "no consumer is active");
        equal(consume(active, 9), texts(1, 10));
        active.acknowledge(message);
        nothingMore(standby);
        active.close();
        send(producer, texts(10, 20));
        equal(consume(standby, 10), texts(10, 20));
    }

    private static void shared(Cell cell) throws Exception {
        var builder = cell.consuming(SubscriptionType.Shared).receiverQueueSize(5);
        var consumers = List.of(builder.subscribe(), builder.subscribe());
        send(cell.producer(), texts(0, 20));
        var found = new ArrayList<String>();
        var busy = new HashSet<Integer>();
        for (long end = System.nanoTime() + Check.SECONDS * 1_000_000_000L; found.size() < 20 && System.nanoTime() < end;) {
            for (int place = 0; place < 2; place++) {
                var message = consumers.get(place).receive(100, TimeUnit.MILLISECONDS);
                if (message != null) {
                    consumers.get(place).acknowledge(message);
                    found.add(text(message));
                    busy.add(place);
                }
            }
        }
        equal(Check.sorted(found), texts(0, 20));
        that(busy.size() == 2, "one consumer got everything");
    }

    private static void partitioned(Cell cell) throws Exception {
        var consumer = cell.consumer();
        send(cell.producer(), texts(0, 30));
        var messages = receive(consumer, 30);
        equal(Check.sorted(Check.textsOf(messages)), texts(0, 30));
        equal(messages.stream().map(Message::getTopicName).distinct().count(), 3L, "partitions");
    }

    private static void pattern(Cell cell) throws Exception {
        var base = "persistent://" + cell.text("namespace") + "/";
        for (var name : List.of("red-1", "red-2", "blue")) {
            send(cell.client().newProducer().topic(base + name).create(), List.of(name));
        }
        var consumer = cell.client().newConsumer().topicsPattern(base + "red-.*").subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        equal(Check.sorted(consume(consumer, 2)), List.of("red-1", "red-2"));
        nothingMore(consumer);
    }

    private static void multiTopics(Cell cell) throws Exception {
        var topics = List.of(cell.topic() + "-0", cell.topic() + "-1");
        var consumer = cell.client().newConsumer().topics(topics).subscriptionName("s").subscribe();
        for (var topic : topics) {
            send(cell.client().newProducer().topic(topic).create(), List.of(topic));
        }
        equal(Check.sorted(consume(consumer, 2)), topics);
    }

    private static void unload(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var producer = cell.producer();
        send(producer, texts(0, 5));
        equal(consume(consumer, 5), texts(0, 5));
        cell.administrate("unload");
        send(producer, texts(5, 10));
        // Acknowledgements in flight may have been lost with the old consumer.
        var found = new HashSet<String>();
        while (!found.containsAll(texts(5, 10))) {
            found.addAll(consume(consumer, 1));
        }
    }

    private static void brokers(Cell cell) throws Exception {
        for (var url : cell.serviceUrls()) {
            var client = cell.open(Cell.builder(url));
            for (var topic : IntStream.range(0, 8).mapToObj(number -> cell.topic() + "-" + number).toList()) {
                try (var consumer = client.newConsumer().topic(topic).subscriptionName("s").subscribe();
                        var producer = client.newProducer().topic(topic).create()) {
                    send(producer, List.of(topic));
                    equal(consume(consumer, 1), List.of(topic));
                }
            }
        }
    }

    private static void five(Cell cell, ClientBuilder builder) throws Exception {
        PulsarClient client = cell.open(builder);
        var consumer = cell.consuming(client, SubscriptionType.Exclusive).subscribe();
        send(client.newProducer().topic(cell.topic()).create(), texts(0, 5));
        equal(consume(consumer, 5), texts(0, 5));
    }

    private static void token(Cell cell) throws Exception {
        var url = cell.text("service_url");
        five(cell, Cell.builder(url).authentication(AuthenticationFactory.token(cell.text("token"))));
        var theirs = cell.open(Cell.builder(url).authentication(AuthenticationFactory.token(cell.text("wrong_token"))));
        refused(PulsarClientException.class, () -> theirs.newProducer().topic(cell.topic()).create());
    }

    private static void tls(Cell cell) throws Exception {
        five(cell, Cell.builder(cell.text("tls_url")).tlsTrustCertsFilePath(cell.text("authority"))
                .enableTlsHostnameVerification(true).authentication(AuthenticationFactory.token(cell.text("token"))));
    }

    private static void zeroQueue(Cell cell) throws Exception {
        var consumer = cell.consuming(SubscriptionType.Exclusive).receiverQueueSize(0).subscribe();
        send(cell.producer(), texts(0, 10));
        // This queue size allows no timeout.
        for (var wanted : texts(0, 10)) {
            equal(text(consumer.receive()), wanted);
        }
    }

    private static void producerName(Cell cell) throws Exception {
        var producer = cell.producing().producerName("p").create();
        equal(producer.getProducerName(), "p");
        refused(PulsarClientException.ProducerBusyException.class, () -> cell.producing().producerName("p").create());
        producer.close();
        cell.producing().producerName("p").create();
    }

    private static void exclusiveProducer(Cell cell) throws Exception {
        var owner = cell.producing().accessMode(ProducerAccessMode.Exclusive).create();
        refused(PulsarClientException.class, cell::producer);
        send(owner, List.of("mine"));
    }

    private static void waitForExclusive(Cell cell) throws Exception {
        var owner = cell.producing().accessMode(ProducerAccessMode.Exclusive).create();
        var waiting = cell.producing().accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
        TimeUnit.MILLISECONDS.sleep(500);
        that(!waiting.isDone(), "the producer did not wait");
        owner.close();
        send(waiting.get(Check.SECONDS, TimeUnit.SECONDS), List.of("mine now"));
    }

    private static void terminated(Cell cell) throws Exception {
        var consumer = cell.consumer();
        var producer = cell.producing().sendTimeout(5, TimeUnit.SECONDS).create();
        send(producer, texts(0, 5));
        cell.administrate("terminate");
        equal(consume(consumer, 5), texts(0, 5));
        refused(PulsarClientException.class, () -> producer.send(Check.bytes("too late")));
    }
}
