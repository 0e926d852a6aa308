package example;

import jakarta.enterprise.context.ApplicationScoped;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.eclipse.microprofile.reactive.messaging.Channel;
import org.eclipse.microprofile.reactive.messaging.Emitter;
import org.eclipse.microprofile.reactive.messaging.Incoming;

@ApplicationScoped
public class Orders {
    private final BlockingQueue<String> taken = new LinkedBlockingQueue<>();

    @Channel("orders-out")
    Emitter<String> emitter;

    void place(String order) {
        emitter.send(order);
    }

    @Incoming("orders-in")
    void take(String order) {
        taken.add(order);
    }

    BlockingQueue<String> taken() {
        return taken;
    }
}
