package pulsarium.foreign;

import static pulsarium.foreign.Check.equal;
import static pulsarium.foreign.Check.eventually;
import static pulsarium.foreign.Check.get;
import static pulsarium.foreign.Check.that;

import java.security.Key;
import java.security.KeyPairGenerator;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.DefaultCryptoKeyReader;

/** The example of PIP-429: compaction keeps one message of a batch, and all of an encrypted one. */
final class Compacted {
    private static final List<String> EXAMPLE = List.of("k0=v0", "k0=v1", "k1=v0", "k1=null");

    private Compacted() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("compacted-batch", context -> run(context, null, EXAMPLE.subList(1, 2), 1));
        // The broker cannot look into it.
        all.put("compacted-encrypted", context -> run(context, newKeys(), EXAMPLE, 3));
    }

    /** `kept` is what a reader gets of the example, `last` the batch index of its last message; `keys` may be null. */
    private static void run(Context context, CryptoKeyReader keys, List<String> kept, int last) throws Exception {
        publish(context, keys);
        context.compact(context.topic());
        eventually(() -> context.compaction(context.topic()).contains("\"SUCCESS\""), "the compaction");
        equal(readAll(context, keys, kept.size()), kept);
        var subscribing = context.consumer(SubscriptionType.Exclusive).readCompacted(true);
        if (keys != null) {
            subscribing.cryptoKeyReader(keys);
        }
        try (var consumer = subscribing.subscribe()) {
            var ids = consumer.getLastMessageIds();
            equal(ids.size(), 1, "last ids");
            equal(((MessageIdAdv) ids.get(0)).getBatchIndex(), last, "last batch index");
        }
    }

    private static void publish(Context context, CryptoKeyReader keys) throws Exception {
        var builder = context.producer().enableBatching(true).batchingMaxPublishDelay(1, TimeUnit.MINUTES)
                .compressionType(CompressionType.LZ4)
                // Or it leaves so small a batch as it is.
                .loadConf(Map.of("compressMinMsgBodySize", 0));
        if (keys != null) {
            builder.addEncryptionKey("java").cryptoKeyReader(keys);
        }
        try (var producer = builder.create()) {
            var sent = new ArrayList<CompletableFuture<MessageId>>();
            for (var each : EXAMPLE) {
                var pair = each.split("=");
                var value = pair[1].equals("null") ? null : Check.bytes(pair[1]);
                sent.add(producer.newMessage().key(pair[0]).value(value).sendAsync());
            }
            producer.flush();
            var first = (MessageIdAdv) get(sent.get(0));
            for (int index = 0; index < sent.size(); index++) {
                var id = (MessageIdAdv) get(sent.get(index));
                equal(id.getEntryId(), first.getEntryId(), "entry");
                equal(id.getBatchIndex(), index, "batch index");
            }
        }
    }

    /** Everything until the reader says that there is no more, which must be after `count` messages. */
    private static List<String> readAll(Context context, CryptoKeyReader keys, int count) throws Exception {
        var builder = context.client().newReader().topic(context.topic()).startMessageId(MessageId.earliest)
                .readCompacted(true);
        if (keys != null) {
            builder.cryptoKeyReader(keys);
        }
        var found = new ArrayList<String>();
        try (var reader = builder.create()) {
            while (reader.hasMessageAvailable()) {
                var message = reader.readNext(Check.SECONDS, TimeUnit.SECONDS);
                that(message != null, "available, but nothing came after " + found);
                equal(message.getEncryptionCtx().isPresent(), keys != null, "encrypted");
                found.add(shown(message));
                that(found.size() <= count, "too many: " + found);
            }
        }
        return found;
    }

    private static String shown(Message<byte[]> message) {
        var value = message.getValue();
        return message.getKey() + "=" + (value == null ? "null" : new String(value));
    }

    /** A pair that no other run has. */
    private static CryptoKeyReader newKeys() throws Exception {
        var generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        var pair = generator.generateKeyPair();
        return DefaultCryptoKeyReader.builder()
                .defaultPublicKey(url("PUBLIC KEY", pair.getPublic()))
                .defaultPrivateKey(url("PRIVATE KEY", pair.getPrivate()))
                .build();
    }

    private static String url(String kind, Key key) {
        var lines = Base64.getMimeEncoder().encodeToString(key.getEncoded());
        var pem = "-----BEGIN " + kind + "-----\n" + lines + "\n-----END " + kind + "-----\n";
        return "data:application/x-pem-file;base64," + Base64.getEncoder().encodeToString(Check.bytes(pem));
    }
}
