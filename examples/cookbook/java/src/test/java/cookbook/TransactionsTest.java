package cookbook;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.junit.jupiter.api.Test;
import pulsarium.junit.Pulsarium;
import pulsarium.junit.PulsariumTest;

@PulsariumTest
class TransactionsTest {
    @Test
    void anOrderAndItsInvoiceAreCommittedTogether(PulsarAdmin admin, Pulsarium pulsarium) throws Exception {
        var orders = pulsarium.topic("orders");
        var invoices = pulsarium.topic("invoices");
        try (var client = PulsarClient.builder().serviceUrl(pulsarium.serviceUrl()).enableTransaction(true).build();
                var consumer = client.newConsumer(Schema.STRING).topic(orders).subscriptionName("billing").subscribe();
                var mail = client.newConsumer(Schema.STRING).topic(invoices).subscriptionName("mail").subscribe();
                var shop = client.newProducer(Schema.STRING).topic(orders).create();
                var producer = client.newProducer(Schema.STRING).topic(invoices).create()) {
            shop.send("3 apples");
            var order = consumer.receive(30, TimeUnit.SECONDS);

            var transaction = client.newTransaction().withTransactionTimeout(30, TimeUnit.SECONDS).build().get();
            producer.newMessage(transaction).value("pay " + order.getValue()).send();
            consumer.acknowledgeAsync(order.getMessageId(), transaction).get();
            transaction.commit().get();

            assertEquals("pay 3 apples", mail.receive(30, TimeUnit.SECONDS).getValue());
            assertEquals(0, admin.topics().getStats(orders).getSubscriptions().get("billing").getMsgBacklog());
        }
    }
}
