package pulsarium.foreign;

/** Something a client does with a broker; it throws when that did not go as it must. */
@FunctionalInterface
interface Scenario {
    void run(Context context) throws Exception;

    /** What one thread of it does. */
    @FunctionalInterface
    interface Part {
        void run() throws Exception;
    }
}
