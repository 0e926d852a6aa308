package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.DefaultCryptoKeyReader;
import org.apache.pulsar.client.impl.crypto.MessageCryptoBc;
import org.apache.pulsar.common.api.proto.MessageMetadata;

/** Halves of a test: one side of each is not this client. Messages are so big that all of them are compressed. */
final class Encryption {
    private static final String FILLING = "abcd".repeat(2_000);

    private Encryption() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("encryption-publish", Encryption::publish);
        all.put("encryption-consume", Encryption::consume);
    }

    static DefaultCryptoKeyReader keys(Context context) {
        return DefaultCryptoKeyReader.builder()
                .defaultPublicKey("file:" + context.text("public_key"))
                .defaultPrivateKey("file:" + context.text("private_key"))
                .build();
    }

    /**
     * For a producer. Its first data key is replaced as soon as it begins, on another thread: without a lock messages
     * may go out with a key that is not theirs, and nobody reads them.
     */
    static MessageCryptoBc crypto() {
        return new MessageCryptoBc("", true) {
            @Override
            public synchronized void addPublicKeyCipher(Set<String> names, CryptoKeyReader reader)
                    throws PulsarClientException.CryptoException {
                super.addPublicKeyCipher(names, reader);
            }

            @Override
            public synchronized void encrypt(
                    Set<String> names, CryptoKeyReader reader, Supplier<MessageMetadata> metadata, ByteBuffer from,
                    ByteBuffer to) throws PulsarClientException {
                super.encrypt(names, reader, metadata, from, to);
            }
        };
    }

    private static void publish(Context context) throws Exception {
        var builder = context.client().newProducer().topic(context.topic())
                .compressionType(CompressionType.valueOf(context.text("compression")))
                .enableBatching(context.flag("batched"))
                .batchingMaxMessages(context.number("messages"))
                .batchingMaxBytes(10_000_000)
                .batchingMaxPublishDelay(1, TimeUnit.MINUTES)
                .addEncryptionKey("java")
                .cryptoKeyReader(keys(context))
                .messageCrypto(crypto());
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
