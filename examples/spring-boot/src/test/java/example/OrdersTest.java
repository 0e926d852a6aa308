package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.testcontainers.service.connection.ServiceConnection;
import org.springframework.context.annotation.Bean;
import org.springframework.pulsar.core.PulsarTemplate;
import org.testcontainers.pulsar.PulsarContainer;
import org.testcontainers.utility.DockerImageName;

@SpringBootTest
class OrdersTest {
    @TestConfiguration
    static class Containers {
        /** `docker build -t pulsarium .` in a checkout of Pulsarium makes this image. */
        @Bean
        @ServiceConnection
        PulsarContainer pulsar() {
            return new PulsarContainer(DockerImageName
                    .parse(System.getenv().getOrDefault("PULSARIUM_IMAGE", "pulsarium"))
                    .asCompatibleSubstituteFor("apachepulsar/pulsar"));
        }
    }

    @Autowired
    PulsarTemplate<String> pulsar;

    @Autowired
    OrdersApplication application;

    @Test
    void anOrderReachesItsListener() throws Exception {
        pulsar.send("orders", "3 apples");
        assertEquals("3 apples", application.orders.poll(30, TimeUnit.SECONDS));
    }
}
