package pulsarium.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** Marks a text that gets the full name of a topic in the test's namespace. The topic's first client creates the topic. */
@Target(ElementType.PARAMETER)
@Retention(RetentionPolicy.RUNTIME)
public @interface Topic {
    /** The last part of the name. */
    String value() default "topic";
}
