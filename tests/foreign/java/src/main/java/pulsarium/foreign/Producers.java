package pulsarium.foreign;

import static pulsarium.foreign.Check.consume;
import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.fails;
import static pulsarium.foreign.Check.get;
import static pulsarium.foreign.Check.nothingMore;
import static pulsarium.foreign.Check.send;
import static pulsarium.foreign.Check.that;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;

/** Producers: names, access modes, coming back. */
final class Producers {
    private Producers() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("producer-names", Producers::names);
        all.put("producer-again", Producers::again);
        all.put("producer-sequence", Producers::sequence);
        all.put("access-exclusive", Producers::exclusive);
        all.put("access-waiting", Producers::waiting);
        all.put("access-fencing", Producers::fencing);
    }

    private static void names(Context context) throws Exception {
        var names = new HashSet<String>();
        for (int each = 0; each < 3; each++) {
            names.add(context.newProducer().getProducerName());
        }
        equal(names.size(), 3, "names of the broker");
        try (var producer = context.producer().producerName("p").create();
                var other = PulsarClient.builder().serviceUrl(context.serviceUrl()).build()) {
            equal(producer.getProducerName(), "p");
            for (var client : List.of(context.client(), other)) {
                fails(PulsarClientException.ProducerBusyException.class,
                        () -> client.newProducer().topic(context.topic()).producerName("p").create());
            }
        }
        context.producer().producerName("p").create().close();
    }

    private static void again(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Exclusive)) {
            for (int number = 0; number < 5; number++) {
                var producer = context.producer().producerName("p").create();
                producer.send(Check.bytes("" + number));
                producer.close();
                fails(PulsarClientException.AlreadyClosedException.class, () -> producer.send(Check.bytes("never")));
            }
            equal(consume(consumer, 5), List.of("0", "1", "2", "3", "4"));
            nothingMore(consumer);
        }
    }

    private static void sequence(Context context) throws Exception {
        try (var producer = context.producer().producerName("p").initialSequenceId(41).create()) {
            equal(producer.getLastSequenceId(), 41L);
            send(producer, List.of("a", "b"));
            equal(producer.getLastSequenceId(), 43L);
            producer.newMessage().value(Check.bytes("c")).sequenceId(99).send();
            equal(producer.getLastSequenceId(), 99L);
        }
    }

    private static void exclusive(Context context) throws Exception {
        var shared = context.newProducer();
        fails(PulsarClientException.ProducerFencedException.class,
                () -> context.producer().accessMode(ProducerAccessMode.Exclusive).create());
        shared.close();
        try (var owner = context.producer().accessMode(ProducerAccessMode.Exclusive).create()) {
            fails(PulsarClientException.ProducerFencedException.class,
                    () -> context.producer().accessMode(ProducerAccessMode.Exclusive).create());
            fails(PulsarClientException.ProducerBusyException.class, context::newProducer);
            send(owner, List.of("still mine"));
        }
        context.newProducer().close();
    }

    private static void waiting(Context context) throws Exception {
        var owner = context.producer().accessMode(ProducerAccessMode.Exclusive).create();
        var waiting = context.producer().accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
        send(owner, List.of("mine"));
        that(!waiting.isDone(), "the owner is still there");
        owner.close();
        try (Producer<byte[]> next = get(waiting)) {
            send(next, List.of("mine now"));
        }
    }

    private static void fencing(Context context) throws Exception {
        try (var consumer = context.newConsumer(SubscriptionType.Exclusive);
                var owner = context.producer().accessMode(ProducerAccessMode.Exclusive).create()) {
            send(owner, List.of("old"));
            try (var fencer = context.producer().accessMode(ProducerAccessMode.ExclusiveWithFencing).create()) {
                send(fencer, List.of("new"));
                fails(PulsarClientException.class, () -> owner.send(Check.bytes("fenced")));
                send(fencer, List.of("newer"));
                equal(consume(consumer, 3), List.of("old", "new", "newer"));
                nothingMore(consumer);
            }
        }
    }
}
