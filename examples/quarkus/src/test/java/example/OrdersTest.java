package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.quarkus.test.junit.QuarkusTest;
import jakarta.inject.Inject;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

@QuarkusTest
class OrdersTest {
    @Inject
    Orders orders;

    @Test
    void anOrderReachesItsChannel() throws Exception {
        orders.place("3 apples");
        assertEquals("3 apples", orders.taken().poll(30, TimeUnit.SECONDS));
    }
}
