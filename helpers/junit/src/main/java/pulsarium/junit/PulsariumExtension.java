package pulsarium.junit;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** Resolves the parameters of tests with {@link PulsariumTest}. */
final class PulsariumExtension implements ParameterResolver, AfterEachCallback {
    private static final Namespace OURS = Namespace.create(PulsariumExtension.class);

    private static final Map<Class<?>, Function<ExtensionContext, Object>> PARAMETERS = Map.of(
            PulsarClient.class, context -> broker(context).client(),
            PulsarAdmin.class, context -> broker(context).admin(),
            Pulsarium.class, context -> pulsarium(context),
            Faults.class, context -> pulsarium(context).faults(),
            Clock.class, context -> pulsarium(context).clock());

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.isAnnotated(Topic.class) || PARAMETERS.containsKey(parameter.getParameter().getType());
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.findAnnotation(Topic.class)
                .<Object>map(topic -> pulsarium(context).topic(topic.value()))
                .orElseGet(() -> PARAMETERS.get(parameter.getParameter().getType()).apply(context));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        var pulsarium = context.getStore(OURS).remove(Pulsarium.class, Pulsarium.class);
        if (pulsarium != null) {
            pulsarium.end();
        }
    }

    private static Pulsarium pulsarium(ExtensionContext context) {
        return context.getStore(OURS).getOrComputeIfAbsent(
                Pulsarium.class, key -> new Pulsarium(broker(context), name(context)), Pulsarium.class);
    }

    private static String name(ExtensionContext context) {
        return context.getRequiredTestClass().getSimpleName() + "-" + context.getTestMethod().map(m -> m.getName()).orElse("");
    }

    /** JUnit closes what its root store has at the end of the run. */
    private static Broker broker(ExtensionContext context) {
        var options = List.of(options(context.getRequiredTestClass()));
        return context.getRoot().getStore(OURS).getOrComputeIfAbsent(options, Broker::start, Broker.class);
    }

    /** A nested class has the options of the class around it. */
    private static String[] options(Class<?> test) {
        for (var each = test; each != null; each = each.getEnclosingClass()) {
            if (each.isAnnotationPresent(PulsariumTest.class)) {
                return each.getAnnotation(PulsariumTest.class).options();
            }
        }
        return new String[0];
    }
}
