import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;

/** Follow each order. The bug: two workers of a Shared subscription expect the steps of an order one after the other. */
class OrderOnShared {
    static final List<String> STEPS = List.of("created", "paid", "sent");
    static final int ORDERS = 3;
    static final int SECONDS = 60;

    static void follow(Runs.Clients clients, boolean mended) throws Exception {
        var workers = List.of(worker(clients.open(), mended), worker(clients.open(), mended));
        var shop = clients.open();
        var orders = Runs.again(() -> shop.newProducer(Schema.STRING).topic("orders").enableBatching(false).create());
        for (String step : STEPS)
            for (int order = 0; order < ORDERS; order++) orders.newMessage().key("" + order).value(step).send();

        Map<String, Integer> done = new HashMap<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (done.values().stream().mapToInt(each -> each).sum() < ORDERS * STEPS.size()) {
            if (System.nanoTime() > end) throw new Runs.Broken("after " + SECONDS + " seconds only these steps were done: " + done);
            for (var worker : workers) {
                var message = worker.receive(20, TimeUnit.MILLISECONDS);
                if (message == null) continue;
                int step = STEPS.indexOf(message.getValue());
                int next = done.getOrDefault(message.getKey(), 0);
                if (step > next)
                    throw new Runs.Broken("order " + message.getKey() + " was " + STEPS.get(step) + " before it was " + STEPS.get(next));
                if (step == next) done.put(message.getKey(), next + 1); // an earlier step is done already
                worker.acknowledge(message);
            }
        }
    }

    static Consumer<String> worker(PulsarClient client, boolean mended) throws Exception {
        return Runs.again(() -> client.newConsumer(Schema.STRING)
                .topic("orders")
                .subscriptionName("tracking")
                .subscriptionType(mended ? SubscriptionType.Key_Shared : SubscriptionType.Shared)
                .subscribe());
    }

    public static void main(String[] args) throws Exception {
        Runs.main(args, OrderOnShared::follow);
    }
}
