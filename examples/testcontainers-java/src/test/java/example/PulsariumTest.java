package example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.pulsar.PulsarContainer;
import org.testcontainers.utility.DockerImageName;

class PulsariumTest {
    /** `docker build -t pulsarium .` in a checkout of Pulsarium makes this image. */
    private static final DockerImageName IMAGE = DockerImageName
            .parse(System.getenv().getOrDefault("PULSARIUM_IMAGE", "pulsarium"))
            .asCompatibleSubstituteFor("apachepulsar/pulsar");

    @Test
    void aMessageReachesItsConsumer() throws Exception {
        try (var pulsar = new PulsarContainer(IMAGE)) {
            pulsar.start();
            try (var client = PulsarClient.builder().serviceUrl(pulsar.getPulsarBrokerUrl()).build();
                 var admin = PulsarAdmin.builder().serviceHttpUrl(pulsar.getHttpServiceUrl()).build();
                 var consumer = client.newConsumer(Schema.STRING).topic("orders").subscriptionName("billing").subscribe();
                 var producer = client.newProducer(Schema.STRING).topic("orders").create()) {
                producer.send("3 apples");
                assertEquals("3 apples", consumer.receive(30, TimeUnit.SECONDS).getValue());
                assertEquals(List.of("persistent://public/default/orders"), admin.topics().getList("public/default"));
            }
        }
    }

    @Test
    void aTransactionIsSeenWhenItIsCommitted() throws Exception {
        try (var pulsar = new PulsarContainer(IMAGE).withTransactions()) {
            pulsar.start();
            try (var client = PulsarClient.builder()
                         .serviceUrl(pulsar.getPulsarBrokerUrl()).enableTransaction(true).build();
                 var consumer = client.newConsumer(Schema.STRING).topic("orders").subscriptionName("billing").subscribe();
                 var producer = client.newProducer(Schema.STRING).topic("orders").create()) {
                var transaction = client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build().get();
                producer.newMessage(transaction).value("3 apples").send();
                assertNull(consumer.receive(200, TimeUnit.MILLISECONDS));
                transaction.commit().get();
                assertEquals("3 apples", consumer.receive(30, TimeUnit.SECONDS).getValue());
            }
        }
    }

    @Test
    void onlyAClientWithATokenIsLetIn() throws Exception {
        var key = "data:;base64,c2VjcmV0IG9mIDMyIGJ5dGVzIGZvciBhIHRlc3QgLi4=";
        try (var pulsar = new PulsarContainer(IMAGE)
                .withEnv("PULSAR_PREFIX_authenticationEnabled", "true")
                .withEnv("PULSAR_PREFIX_authorizationEnabled", "true")
                .withEnv("PULSAR_PREFIX_authenticationProviders",
                        "org.apache.pulsar.broker.authentication.AuthenticationProviderToken")
                .withEnv("PULSAR_PREFIX_tokenSecretKey", key)
                .withEnv("PULSAR_PREFIX_superUserRoles", "admin")
                // In place of a request that needs a token.
                .waitingFor(Wait.forLogMessage(".*messaging service is ready.*", 1))) {
            pulsar.start();
            var token = pulsar.execInContainer(
                    "bin/pulsar", "tokens", "create", "--secret-key", key, "--subject", "admin").getStdout().trim();
            var builder = PulsarClient.builder().serviceUrl(pulsar.getPulsarBrokerUrl());
            try (var client = builder.clone().authentication(AuthenticationFactory.token(token)).build();
                 var producer = client.newProducer(Schema.STRING).topic("orders").create()) {
                producer.send("3 apples");
            }
            try (var stranger = builder.clone().build()) {
                assertThrows(PulsarClientException.AuthenticationException.class,
                        () -> stranger.newProducer(Schema.STRING).topic("orders").create());
            }
        }
    }
}
