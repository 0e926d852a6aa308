package pulsarium.foreign;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import pulsarium.foreign.Kinds.Kind;

/** Halves of a test whose other half is another client: publishes what it is told, and tells what it reads. */
final class Interop {
    private Interop() {
    }

    static void register(Map<String, Scenario> all) {
        all.put("interop-publish", context -> publish(context, Kinds.named(context.text("kind"))));
        all.put("interop-consume", context -> consume(context, Kinds.named(context.text("kind"))));
    }

    /** `messages`: objects with what is to be sent. Tells `ids`. */
    private static <T> void publish(Context context, Kind<T> kind) throws Exception {
        ProducerBuilder<T> builder = context.client().newProducer(kind.schema()).topic(context.topic())
                .compressionType(CompressionType.valueOf(context.text("compression")))
                .loadConf(Map.of("compressMinMsgBodySize", 0))
                .enableBatching(context.flag("batched"))
                .batchingMaxPublishDelay(1, TimeUnit.MINUTES);
        if (context.flag("chunked")) {
            builder.enableChunking(true).chunkMaxMessageSize(context.number("chunk_size"));
        }
        if (context.arguments().has("public_key")) {
            builder.addEncryptionKey("java").cryptoKeyReader(Encryption.keys(context)).messageCrypto(Encryption.crypto());
        }
        try (var producer = builder.create()) {
            var sent = new ArrayList<CompletableFuture<MessageId>>();
            for (JsonElement each : context.arguments().getAsJsonArray("messages")) {
                var message = each.getAsJsonObject();
                var value = message.get("value");
                var draft = producer.newMessage().value(value.isJsonNull() ? null : kind.read().apply(value));
                if (message.has("key")) {
                    draft.key(message.get("key").getAsString());
                }
                if (message.has("ordering_key")) {
                    draft.orderingKey(message.get("ordering_key").getAsString().getBytes(StandardCharsets.UTF_8));
                }
                if (message.has("event_time")) {
                    draft.eventTime(message.get("event_time").getAsLong());
                }
                message.getAsJsonObject("properties").asMap()
                        .forEach((name, text) -> draft.property(name, text.getAsString()));
                sent.add(draft.sendAsync());
            }
            producer.flush();
            var ids = new JsonArray();
            for (var each : sent) {
                ids.add(Kinds.base64(Check.get(each).toByteArray()));
            }
            context.told().add("ids", ids);
        }
    }

    /** Tells of `count` messages from the earliest on; their values as texts, in which null survives. */
    private static <T> void consume(Context context, Kind<T> kind) throws Exception {
        var builder = context.client().newConsumer(kind.schema()).topic(context.topic())
                .subscriptionName("java-" + context.text("kind"))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
        if (context.arguments().has("public_key")) {
            builder.cryptoKeyReader(Encryption.keys(context));
        }
        try (var consumer = builder.subscribe()) {
            var messages = new JsonArray();
            for (var message : Check.receive(consumer, context.number("count"))) {
                consumer.acknowledge(message);
                messages.add(told(message, kind));
            }
            context.told().add("messages", messages);
        }
    }

    private static <T> JsonObject told(Message<T> message, Kind<T> kind) {
        var told = new JsonObject();
        var value = message.getValue();
        told.addProperty("value", value == null ? "null" : Kinds.GSON.toJson(kind.tell().apply(value)));
        told.add("id", Kinds.base64(message.getMessageId().toByteArray()));
        told.addProperty("key", message.hasKey() ? message.getKey() : "");
        told.addProperty("ordering_key",
                message.hasOrderingKey() ? new String(message.getOrderingKey(), StandardCharsets.UTF_8) : "");
        told.addProperty("event_time", message.getEventTime());
        told.add("properties", Kinds.GSON.toJsonTree(message.getProperties()));
        told.addProperty("producer", message.getProducerName());
        told.addProperty("sequence_id", message.getSequenceId());
        var version = message.getSchemaVersion();
        told.addProperty("schema_version", version == null ? "" : HexFormat.of().formatHex(version));
        return told;
    }
}
