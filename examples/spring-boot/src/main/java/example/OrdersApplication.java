package example;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.pulsar.annotation.PulsarListener;

@SpringBootApplication
public class OrdersApplication {
    final BlockingQueue<String> orders = new LinkedBlockingQueue<>();

    public static void main(String[] arguments) {
        SpringApplication.run(OrdersApplication.class, arguments);
    }

    @PulsarListener(topics = "orders", subscriptionName = "billing")
    void take(String order) {
        orders.add(order);
    }
}
