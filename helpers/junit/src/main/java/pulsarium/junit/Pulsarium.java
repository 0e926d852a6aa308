package pulsarium.junit;

import java.util.Map;

/** The broker as one test sees it, with a namespace of the test's own. */
public final class Pulsarium {
    private final Broker broker;
    private final String namespace;
    private final Faults faults;
    private final Clock clock;

    Pulsarium(Broker broker, String test) {
        this.broker = broker;
        namespace = broker.call("POST", "/lab/namespaces", Map.of("name", test)).get("name").asText();
        faults = new Faults(broker, namespace);
        clock = new Clock(broker, namespace);
    }

    /** Returns the URL pulsar://host:port. */
    public String serviceUrl() {
        return broker.serviceUrl;
    }

    /** Returns the URL http://host:port. */
    public String adminUrl() {
        return broker.adminUrl;
    }

    /** Returns the test's namespace, tenant/namespace. */
    public String namespace() {
        return namespace;
    }

    /** Returns the full name of a topic in the test's namespace. */
    public String topic(String name) {
        return "persistent://" + namespace + "/" + name;
    }

    public Faults faults() {
        return faults;
    }

    public Clock clock() {
        return clock;
    }

    /** Removes the test's faults, its namespace, and the namespace's time. */
    void end() {
        faults.clear();
        clock.reset();
        broker.call("DELETE", "/lab/namespaces/" + namespace, null);
    }
}
