package pulsarium.admin;


/** Topics that keep nothing. */
final class NonPersistentCalls {
    private static final String NAMESPACE = "public/java-non-persistent";
    private static final String TOPIC = "non-persistent://" + NAMESPACE + "/t";

    private NonPersistentCalls() {
    }

    static void run(Context context) throws Exception {
        var topics = context.nonPersistentTopics;
        context.namespaces.createNamespace(NAMESPACE);
        context.topics.createNonPartitionedTopic(TOPIC);
        topics.createPartitionedTopic("non-persistent://" + NAMESPACE + "/p", 2);
        topics.getPartitionedTopicMetadata("non-persistent://" + NAMESPACE + "/p");
        try (var producer = context.client.newProducer().topic(TOPIC).producerName("p").create();
             var consumer = context.client.newConsumer().topic(TOPIC).subscriptionName("s").consumerName("c").subscribe()) {
            producer.send(new byte[10]);
            consumer.receive();
            topics.getStats(TOPIC);
            topics.getInternalStats(TOPIC);
            topics.getList(NAMESPACE);
            topics.getListInBundle(NAMESPACE, context.quietly(() -> context.lookups.getBundleRange(TOPIC)));
            context.topics.getSubscriptions(TOPIC);
        }
        context.failsInside(405, () -> context.topics.getMessageIdByIndex(TOPIC, 0));
        context.fails(405, () -> context.topics.peekMessages(TOPIC, "s", 1));
        topics.unload(TOPIC);
        context.topics.delete(TOPIC, true);
        context.topics.deletePartitionedTopic("non-persistent://" + NAMESPACE + "/p");
        context.namespaces.deleteNamespace(NAMESPACE, true);
    }
}
