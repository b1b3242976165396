// What a contract is: checks that any implementation of a port or a store must pass, for any test
// runner.
import assert from "node:assert/strict";

/**
 * One guarantee. Register it with your runner: `for (const { name, run } of checks) test(name,
 * run)`.
 */
export interface ContractCheck {
  /** A sentence without its subject: "createFile says EEXIST when the name is taken". */
  readonly name: string;
  /** Rejects with an AssertionError when the guarantee does not hold. Makes a world of its own. */
  readonly run: () => Promise<void>;
}

/** Collects checks, each of which gets a new world. */
export class Contract<World> {
  readonly checks: ContractCheck[] = [];
  readonly #inWorld: (run: (world: World) => Promise<void>) => Promise<void>;
  #group = "";

  /** `inWorld` makes a world, hands it to the check, and takes it down. */
  constructor(inWorld: (run: (world: World) => Promise<void>) => Promise<void>) {
    this.#inWorld = inWorld;
  }

  /** The names of the checks that `define` adds begin with `name`. */
  group(name: string, define: () => void): void {
    this.#group = `${name} `;
    define();
    this.#group = "";
  }

  check(name: string, run: (world: World) => Promise<void>): void {
    this.checks.push({ name: `${this.#group}${name}`, run: () => this.#inWorld(run) });
  }
}

/** `actual` has these properties, and perhaps others. */
export function assertHas(actual: unknown, expected: object): void {
  for (const [name, value] of Object.entries(expected))
    assert.deepEqual((actual as Record<string, unknown>)[name], value);
}
