package pulsarium.admin;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;

/** Messages read over REST, and their ids. */
final class MessageCalls {
    private static final String NAMESPACE = "public/java-messages";
    private static final String TOPIC = "persistent://" + NAMESPACE + "/t";
    private static final String MISSING = "persistent://" + NAMESPACE + "/missing";
    private static final int COUNT = 6;

    private MessageCalls() {
    }

    static void run(Context context) throws Exception {
        context.namespaces.createNamespace(NAMESPACE);
        context.topics.createNonPartitionedTopic(TOPIC);
        context.topics.createSubscription(TOPIC, "s", MessageId.earliest);
        context.topics.getLastMessageId(TOPIC);
        var ids = publish(context);
        reading(context, ids);
        ids(context, ids);
        byIndex(context, ids);
        context.namespaces.deleteNamespace(NAMESPACE, true);
    }

    /** Six entries of one message, then one entry of three. */
    private static List<MessageIdAdv> publish(Context context) throws Exception {
        var ids = new ArrayList<MessageIdAdv>();
        var producer = context.client.newProducer().topic(TOPIC).producerName("single").enableBatching(false).create();
        for (int number = 0; number < COUNT; number++) {
            ids.add((MessageIdAdv) producer.newMessage().key("k" + number).value(bytes("m" + number))
                    .property("n", "" + number).eventTime(1000 + number).send());
            // So that each has a time of its own.
            Thread.sleep(3);
        }
        producer.close();
        var batching = context.client.newProducer().topic(TOPIC).producerName("batch").batchingMaxMessages(3)
                .batchingMaxPublishDelay(1, java.util.concurrent.TimeUnit.MINUTES).create();
        for (int number = 0; number < 3; number++) {
            batching.newMessage().key("b" + number).value(bytes("b" + number)).sendAsync();
        }
        batching.flush();
        batching.close();
        return ids;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void reading(Context context, List<MessageIdAdv> ids) throws Exception {
        var topics = context.topics;
        topics.peekMessages(TOPIC, "s", 1);
        var all = topics.peekMessages(TOPIC, "s", COUNT + 3);
        Context.that(all.size() >= COUNT, "all messages were peeked");
        topics.examineMessage(TOPIC, "earliest", 2);
        topics.examineMessage(TOPIC, "latest", 1);
        topics.examineMessage(TOPIC, "latest", 3);
        topics.getMessageById(TOPIC, ids.get(3).getLedgerId(), ids.get(3).getEntryId());
        topics.getMessagesById(TOPIC, ids.get(0).getLedgerId(), COUNT);
        context.fails(404, () -> topics.getMessagesById(MISSING, ids.get(0).getLedgerId(), 0));
        topics.peekMessages(MISSING, "s", 1);
    }

    private static void ids(Context context, List<MessageIdAdv> ids) throws Exception {
        var topics = context.topics;
        topics.getLastMessageId(TOPIC);
        context.fails(404, () -> topics.getLastMessageId(MISSING));
        var times = new ArrayList<Long>();
        for (var id : ids) {
            times.add(context.quietly(() -> topics.getMessagesById(TOPIC, id.getLedgerId(), id.getEntryId())).get(0)
                    .getPublishTime());
        }
        at(context, times.get(4), ids.get(4));
        at(context, times.get(4) - 1, ids.get(4));
        at(context, 1, ids.get(0));
        topics.getMessageIdByTimestamp(TOPIC, times.get(5) + 3_600_000);
        context.fails(404, () -> topics.getMessageIdByTimestamp(MISSING, 1));
        topics.getBacklogSizeByMessageId(TOPIC, ids.get(0));
        topics.getBacklogSizeByMessageId(TOPIC, ids.get(4));
        topics.getBacklogSizeByMessageId(TOPIC, MessageId.earliest);
    }

    private static void at(Context context, long time, MessageIdAdv wanted) throws Exception {
        var found = (MessageIdAdv) context.topics.getMessageIdByTimestamp(TOPIC, time);
        context.equal(List.of(found.getLedgerId(), found.getEntryId()), List.of(wanted.getLedgerId(), wanted.getEntryId()),
                "the message at " + time);
    }

    /** Needs AppendIndexMetadataInterceptor. */
    private static void byIndex(Context context, List<MessageIdAdv> ids) throws Exception {
        var topics = context.topics;
        for (var id : ids) {
            var message = context.quietly(() -> topics.getMessagesById(TOPIC, id.getLedgerId(), id.getEntryId())).get(0);
            var index = message.getIndex().orElseThrow();
            var found = (MessageIdAdv) topics.getMessageIdByIndex(TOPIC, index);
            context.equal(List.of(found.getLedgerId(), found.getEntryId()), List.of(id.getLedgerId(), id.getEntryId()),
                    "the message at " + index);
        }
        context.equal(topics.getMessageIdByIndexAsync(TOPIC, 0).get(), ids.get(0), "the first, asked for later");
        for (int index = COUNT; index < COUNT + 3; index++) {
            var found = (MessageIdAdv) topics.getMessageIdByIndex(TOPIC, index);
            context.equal(found.getEntryId(), COUNT, "the batch's entry");
        }
        context.failsInside(404, () -> topics.getMessageIdByIndex(TOPIC, 1000));
        context.failsInside(404, () -> topics.getMessageIdByIndex(TOPIC, -1));
        context.failsInside(404, () -> topics.getMessageIdByIndex(MISSING, 0));
    }
}
