package cookbook;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.TimeUnit;
import org.apache.avro.reflect.AvroDefault;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException.IncompatibleSchemaException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.junit.jupiter.api.Test;
import pulsarium.junit.Pulsarium;
import pulsarium.junit.PulsariumTest;
import pulsarium.junit.Topic;

@PulsariumTest
class SchemaChangeTest {
    static class First {
        static class Order {
            public String customer;
        }
    }

    static class Second {
        static class Order {
            public String customer;

            @AvroDefault("\"none\"") // old orders have no note
            public String note;
        }
    }

    static class Broken {
        static class Order {
            public int customer;
        }
    }

    @Test
    void aNewConsumerReadsOldOrdersAndABreakingChangeIsRefused(
            PulsarClient client, PulsarAdmin admin, Pulsarium pulsarium, @Topic("orders") String topic) throws Exception {
        admin.namespaces().setSchemaCompatibilityStrategy(pulsarium.namespace(), SchemaCompatibilityStrategy.FULL);
        try (var consumer = client.newConsumer(Schema.AVRO(Second.Order.class)).topic(topic).subscriptionName("new").subscribe();
                var producer = client.newProducer(Schema.AVRO(First.Order.class)).topic(topic).create()) {
            var order = new First.Order();
            order.customer = "Ada";
            producer.send(order);
            assertEquals("none", consumer.receive(30, TimeUnit.SECONDS).getValue().note);
        }
        assertThrows(
                IncompatibleSchemaException.class, () -> client.newProducer(Schema.AVRO(Broken.Order.class)).topic(topic).create());
    }
}
