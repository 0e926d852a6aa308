import { Pulsarium } from "./index.js";

/** Gives the tests of a file or a block a broker, and each test a namespace. Options are those of "pulsarium serve". */
export function usePulsarium(...options: string[]): Pulsarium;
