package pulsarium.junit;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The faults of one test. They are removed after the test. */
public final class Faults {
    private final Broker broker;
    private final String namespace;
    private final List<Fault> added = new ArrayList<>();

    Faults(Broker broker, String namespace) {
        this.broker = broker;
        this.namespace = namespace;
    }

    /** Applies an action, such as "drop", to the first frame of a command, such as "SEND", in the test's namespace. */
    public Fault add(Object action, String command) {
        return add(action, command, Map.of());
    }

    /**
     * Applies an action, such as Map.of("kind", "delay", "seconds", 1), to the frames that `which` selects by the names of
     * POST /lab/faults: "stage", "topic", "count", ... The namespace "*" selects the frames of all tests.
     */
    public Fault add(Object action, String command, Map<String, ?> which) {
        var asked = new HashMap<String, Object>(Map.of("action", action, "command", command, "namespace", namespace));
        asked.putAll(which);
        var fault = new Fault(broker, "/lab/faults/" + broker.call("POST", "/lab/faults", asked).get("id").asInt());
        added.add(fault);
        return fault;
    }

    /** Removes the faults of this test. */
    public void clear() {
        added.forEach(Fault::remove);
        added.clear();
    }

    /** A rule that acts on frames. */
    public static final class Fault {
        private final Broker broker;
        private final String path;

        private Fault(Broker broker, String path) {
            this.broker = broker;
            this.path = path;
        }

        /** Returns when the rule has acted so many times. Throws after 30 seconds. */
        public void await(int hits) {
            broker.call("GET", path + "/wait?timeout=30&n=" + hits, null);
        }

        /** Returns how often the rule has acted. */
        public int hits() {
            return broker.call("GET", path, null).get("hits").asInt();
        }

        /** Removes the rule, which may be removed already. */
        public void remove() {
            broker.call("DELETE", path, null);
        }
    }
}
