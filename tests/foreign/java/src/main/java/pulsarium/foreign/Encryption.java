package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;

import java.util.ArrayList;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.DefaultCryptoKeyReader;

/** Halves of a test: one side of each is not this client. Messages are so big that all of them are compressed. */
final class Encryption {
    private static final String FILLING = "abcd".repeat(2_000);

    private Encryption() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("encryption-publish", Encryption::publish);
        all.put("encryption-consume", Encryption::consume);
    }

    private static DefaultCryptoKeyReader keys(Context context) {
        return DefaultCryptoKeyReader.builder()
                .defaultPublicKey("file:" + context.text("public_key"))
                .defaultPrivateKey("file:" + context.text("private_key"))
                .build();
    }

    private static void publish(Context context) throws Exception {
        var builder = context.client().newProducer().topic(context.topic())
                .compressionType(CompressionType.valueOf(context.text("compression")))
                .enableBatching(context.flag("batched"))
                .batchingMaxMessages(context.number("messages"))
                .batchingMaxBytes(10_000_000)
                .batchingMaxPublishDelay(1, TimeUnit.MINUTES)
                .addEncryptionKey("java")
                .cryptoKeyReader(keys(context));
        try (var producer = builder.create()) {
            var sent = new ArrayList<CompletableFuture<MessageId>>();
            for (int number = 0; number < context.number("messages"); number++) {
                sent.add(producer.newMessage().key("k" + number).value(Check.bytes(number + FILLING)).sendAsync());
            }
            producer.flush();
            for (var each : sent) {
                each.get(Check.SECONDS, TimeUnit.SECONDS);
            }
        }
    }

    private static void consume(Context context) throws Exception {
        var builder = context.consumer(SubscriptionType.Exclusive).cryptoKeyReader(keys(context))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
        try (var consumer = builder.subscribe()) {
            for (int number = 0; number < context.number("messages"); number++) {
                var message = Check.receive(consumer, 1).get(0);
                equal(new String(message.getData()), number + FILLING);
                equal(message.getKey(), "k" + number);
            }
        }
    }
}
