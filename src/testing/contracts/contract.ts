// A contract: checks that every implementation of a port or a store must pass, for any test runner.
import assert from "node:assert/strict";

/**
 * One guarantee of a contract. Register it with your test runner: `for (const { name, run } of
 * checks) test(name, run)`.
 */
export interface ContractCheck {
  /** A sentence without its subject: "createFile says EEXIST when the name is taken". */
  readonly name: string;
  /** Runs the check in a new world. Rejects with an AssertionError if the guarantee does not hold. */
  readonly run: () => Promise<void>;
}

/** Collects checks, each of which gets a new world. */
export class Contract<World> {
  readonly checks: ContractCheck[] = [];
  readonly #inWorld: (run: (world: World) => Promise<void>) => Promise<void>;
  #group = "";

  /** `inWorld` creates a world, passes it to the check, and removes it. */
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

/** Asserts that `actual` has these properties. It may have others. */
export function assertHas(actual: unknown, expected: object): void {
  for (const [name, value] of Object.entries(expected))
    assert.deepEqual((actual as Record<string, unknown>)[name], value);
}
