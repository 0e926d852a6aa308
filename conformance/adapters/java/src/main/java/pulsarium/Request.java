package pulsarium;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import pulsarium.Adapter.Lack;

/** An object of a request, which knows the fields that nobody has read. */
final class Request {
    private final JsonObject json;
    private final Set<String> unread;
    private final List<Request> parts = new ArrayList<>();

    Request(JsonObject json) {
        this.json = json;
        unread = new HashSet<>(json.keySet());
        unread.remove("id");
    }

    /** Names the handle whose requests are answered in order. */
    String handle() {
        String operation = json.get("do").getAsString();
        for (String name : List.of("as", "producer", "consumer", "reader", "view", "handle", "transaction")) {
            if (json.has(name)) {
                return json.get(name).getAsString() + (operation.equals("receive") ? " receive" : "");
            }
        }
        return "id " + json.get("id");
    }

    JsonElement get(String name) {
        unread.remove(name);
        if (!json.has(name)) {
            throw new IllegalArgumentException("the request has no " + name);
        }
        return json.get(name);
    }

    boolean has(String name) {
        return json.has(name);
    }

    String text(String name) {
        return get(name).getAsString();
    }

    int number(String name) {
        return get(name).getAsInt();
    }

    /** Does something with a field that a request may leave out. */
    void maybe(String name, Consumer<JsonElement> then) {
        if (json.has(name)) {
            then.accept(get(name));
        }
    }

    boolean flag(String name) {
        return json.has(name) && get(name).getAsBoolean();
    }

    Request object(String name) {
        return part(get(name));
    }

    List<Request> objects(String name) {
        List<Request> found = new ArrayList<>();
        get(name).getAsJsonArray().forEach(each -> found.add(part(each)));
        return found;
    }

    Map<String, String> texts(String name) {
        Map<String, String> found = new HashMap<>();
        get(name).getAsJsonObject().entrySet().forEach(each -> found.put(each.getKey(), each.getValue().getAsString()));
        return found;
    }

    /** Fails when a field was not read, which is an option that the adapter does not know. */
    void allRead() {
        if (!unread.isEmpty()) {
            throw new Lack("the adapter does not know " + unread);
        }
        parts.forEach(Request::allRead);
    }

    private Request part(JsonElement element) {
        Request part = new Request(element.getAsJsonObject());
        parts.add(part);
        return part;
    }
}
