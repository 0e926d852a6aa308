package pulsarium.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives the tests of a class a broker, and each test a namespace of its own.
 *
 * <p>Methods take parameters of the types PulsarClient, PulsarAdmin, {@link Pulsarium}, {@link Faults} and {@link Clock},
 * and texts with {@link Topic}. Classes with the same options share a broker, which ends with the run.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(PulsariumExtension.class)
public @interface PulsariumTest {
    /**
     * Options of "pulsarium serve", such as "--profile", "pulsar-4.2". Without options, the variables
     * PULSARIUM_SERVICE_URL and PULSARIUM_ADMIN_URL, which "pulsarium exec" sets, name a running broker.
     */
    String[] options() default {};
}
