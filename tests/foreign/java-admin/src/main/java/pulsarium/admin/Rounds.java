package pulsarium.admin;

import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Policies of one resource: each is asked for, set, asked for, removed and asked for. */
final class Rounds {
    private final Context context;
    private final Class<?> kind;
    private final Object api;
    private final String resource;

    /** `api` is a recorded instance of `kind`, `resource` the first argument of all its methods. */
    Rounds(Context context, Class<?> kind, Object api, String resource) {
        this.context = context;
        this.kind = kind;
        this.api = api;
        this.resource = resource;
    }

    /** A policy whose methods are get, set and remove and its name. */
    void policy(String name, Object value) throws Exception {
        policy("get" + name, "set" + name, "remove" + name, value);
    }

    void policy(String get, String set, String remove, Object value) throws Exception {
        policy(get, set, remove, value, value);
    }

    /** `shown` is how the getter shows `value`. */
    void policy(String get, String set, String remove, Object value, Object shown) throws Exception {
        var getters = getters(get);
        var before = ask(getters);
        call(method(set, value), value);
        context.eventually(() -> context.text(ask(getters).get(0)).equals(context.text(shown)), get + " as it was set");
        ask(getters);
        call(method(remove));
        context.eventually(() -> context.text(ask(getters)).equals(context.text(before)), get + " as before");
        ask(getters);
    }

    /** A policy that cannot be removed: it is set to each value, the last of which should be the default. */
    void without(String get, String set, Object... values) throws Exception {
        var getters = getters(get);
        ask(getters);
        for (var value : values) {
            call(method(set, value), value);
            context.eventually(() -> context.text(ask(getters).get(0)).equals(context.text(value)), get + " as it was set");
            ask(getters);
        }
    }

    boolean has(String name) {
        return Arrays.stream(kind.getMethods()).anyMatch(method -> method.getName().equals(name));
    }

    private List<Method> getters(String name) {
        var own = Stream.of(kind.getMethods()).filter(method -> method.getName().equals(name))
                .filter(method -> method.getParameterTypes()[0] == String.class)
                .filter(method -> method.getParameterCount() == 1
                        || method.getParameterCount() == 2 && method.getParameterTypes()[1] == boolean.class)
                .sorted((one, other) -> one.getParameterCount() - other.getParameterCount()).toList();
        Context.that(!own.isEmpty(), "no method " + name);
        return own;
    }

    /** What all getters say; those that can also say what applies are asked for both. */
    private List<Object> ask(List<Method> getters) throws Exception {
        var answers = new ArrayList<Object>();
        for (var getter : getters) {
            if (getter.getParameterCount() == 1) {
                answers.add(call(getter));
            } else {
                answers.add(call(getter, false));
                answers.add(call(getter, true));
            }
        }
        return answers;
    }

    private Method method(String name, Object... arguments) {
        return Stream.of(kind.getMethods()).filter(method -> method.getName().equals(name))
                .filter(method -> method.getParameterCount() == arguments.length + 1)
                .filter(method -> arguments.length == 0 || boxed(method.getParameterTypes()[1]).isInstance(arguments[0]))
                .findFirst().orElseThrow(() -> new AssertionError("no method " + name + Arrays.toString(arguments)));
    }

    private static Class<?> boxed(Class<?> type) {
        return type.isPrimitive() ? Array.get(Array.newInstance(type, 1), 0).getClass() : type;
    }

    private Object call(Method method, Object... arguments) throws Exception {
        try {
            return method.invoke(api, Stream.concat(Stream.of(resource), Arrays.stream(arguments)).toArray());
        } catch (InvocationTargetException failure) {
            throw failure.getCause() instanceof Exception cause ? cause : failure;
        }
    }
}
