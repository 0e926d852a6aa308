package pulsarium.junit;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;

/** The clock of the test's namespace. */
public final class Clock {
    private final Broker broker;
    private final String query;

    Clock(Broker broker, String namespace) {
        this.broker = broker;
        query = "?namespace=" + namespace;
    }

    /** Advances the clock, and returns when all due timers have run. */
    public void advance(Duration by) {
        steer("advance", Map.of("seconds", by.toMillis() / 1000.0));
    }

    /** Stops the clock. */
    public void freeze() {
        steer("freeze", null);
    }

    /** Lets the clock run again from the time that it shows. */
    public void resume() {
        steer("resume", null);
    }

    /** Returns to the broker's time. */
    public void reset() {
        steer("reset", null);
    }

    /** Returns the clock's time. */
    public Instant now() {
        return Instant.ofEpochMilli(broker.call("GET", "/lab/clock" + query, null).get("nowMs").asLong());
    }

    private JsonNode steer(String how, Object body) {
        return broker.call("POST", "/lab/clock/" + how + query, body);
    }
}
