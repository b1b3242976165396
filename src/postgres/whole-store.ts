// WholeStore: a store in a database with the methods of a store in a folder. It refuses those that
// only a folder supports.
import type { HolderInfo, NewEvent } from "../common.ts";
import { holdfastError } from "../errors.ts";
import type { EventStore, EventStoreOptions } from "../events/model/event-store.ts";
import type { Handoff, HandoffOptions } from "../handoff/model/handoff.ts";
import type { PathLocks, PathLocksOptions } from "../locks/path/path-locks.ts";
import type { ObjectStore, ObjectStoreOptions } from "../objects/model/object-store.ts";
import type { PgLocksOptions, PgStore } from "./pg-store.ts";

/** The same questions that a folder answers, answered for a database. */
interface WholeStoreCapabilities {
  readonly network: boolean;
  readonly hardLinks: boolean;
  readonly osLocks: boolean;
  readonly directorySync: boolean;
  readonly watch: boolean;
  readonly caseSensitive: boolean;
  readonly warnings: readonly string[];
}

export class WholeStore implements AsyncDisposable {
  readonly location: string;
  readonly id: string;
  readonly capabilities: WholeStoreCapabilities;
  readonly #store: PgStore;

  constructor(store: PgStore) {
    this.location = store.location;
    this.id = store.id;
    const { warnings } = store.capabilities;
    this.capabilities = {
      network: true,
      hardLinks: false,
      osLocks: false,
      directorySync: false,
      watch: true,
      caseSensitive: true,
      warnings,
    };
    this.#store = store;
  }

  async locks({ interop, ...options }: PgLocksOptions & Pick<PathLocksOptions, "interop"> = {}): Promise<PathLocks> {
    return interop === true ? this.refuse("interop") : await this.#store.locks(options);
  }

  async events<E extends NewEvent = NewEvent>(log?: string, options?: EventStoreOptions<E>): Promise<EventStore<E>> {
    return await this.#store.events<E>(log, options);
  }

  async files(): Promise<never> {
    return this.refuse("files");
  }

  async handoff(box: string, options?: HandoffOptions): Promise<Handoff> {
    return await this.#store.handoff(box, options);
  }

  async objects(options?: ObjectStoreOptions): Promise<ObjectStore> {
    return await this.#store.objects(options);
  }

  async holders(): Promise<HolderInfo[]> {
    return await this.#store.holders();
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  refuse(what: string): never {
    const message = `${this.location}: ${what} is only possible with a folder.`;
    throw holdfastError("UNSUPPORTED", message, { what, location: this.location });
  }
}
