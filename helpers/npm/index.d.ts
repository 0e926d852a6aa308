/** An action of a fault: its kind, or its kind with arguments. */
export type Action = string | { kind: string; [argument: string]: unknown };

export interface Fault {
  /** Returns when the rule has acted so many times (1). Throws after 30 seconds. */
  wait(hits?: number): Promise<void>;
  hits(): Promise<number>;
  remove(): Promise<void>;
}

/** The clock of the test's namespace. */
export interface Clock {
  advance(seconds: number): Promise<void>;
  freeze(): Promise<void>;
  resume(): Promise<void>;
  reset(): Promise<void>;
  now(): Promise<Date>;
}

export class Pulsarium {
  readonly serviceUrl: string;
  readonly adminUrl: string;
  /** The test's own namespace, tenant/namespace. */
  readonly namespace: string;
  readonly clock: Clock;
  start(options?: string[]): Promise<void>;
  stop(): Promise<void>;
  begin(name?: string): Promise<void>;
  end(): Promise<void>;
  topic(name: string): string;
  fault(action: Action, command: string, which?: Record<string, unknown>): Promise<Fault>;
  call(method: string, path: string, query?: Record<string, string | number>, body?: unknown): Promise<any>;
}

type Hook = (run: () => Promise<void>, timeout?: number) => unknown;
interface Runner extends Record<"beforeAll" | "beforeEach" | "afterEach" | "afterAll", Hook> {
  expect: { getState(): { currentTestName?: string } };
}
/** Returns usePulsarium() for another test runner, which has these functions. */
export function use(runner: Runner): (...options: string[]) => Pulsarium;
