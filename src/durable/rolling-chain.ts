// RollingChain: a chain of whole states that also forgets. Its numbers are won once and grow for ever; its old slots are deleted.
//
// Layout: `epochs/<g>` is a plain chain and permanent; each of its records names a directory `<g>-<random>` that holds the slots of that epoch and a file
// `open`. That file is made before the epoch is named and removed before any slot is. So whoever can open it knows that no slot was vacated before:
// a link that succeeded earlier won a name that was never used. No listing and no absence is ever trusted; a stale one costs a lost race.
import { holdfastError } from "../errors.ts";
import { countOf, objectOf, textOf } from "../format/decoding.ts";
import { randomName } from "../format/id.ts";
import { findSlotNumber, slotName } from "../format/name.ts";
import { decodeRecord, encodeRecord, recordBytesMax, type RecordKind } from "../format/record.ts";
import { hasErrno } from "../ports/disk-error.ts";
import { Chain, type ChainEntry } from "./chain.ts";
import { ensureDirectory, removeDirectory, unlinkIfThere } from "./directory.ts";
import { linkOnce, outcomeUnknown } from "./publish.ts";
import { discard, stage, type Staging } from "./staging.ts";

const attemptsMax = 1000;

export interface RollingChainOptions<T> {
  /** Of the state. */
  readonly kind: RecordKind<T>;
  readonly initial: T;
  /**
   * Whether the append `id` is part of this state or of its past. Asked only of the newest state, and only by an appender that slept while its whole epoch
   * went by and was collected.
   */
  readonly counts: (state: T, id: string) => boolean;
  /** Default 4096. */
  readonly slotsPerEpoch?: number | undefined;
  /**
   * Default true. False on a local disk when nobody who saw a number survives a power cut (locks): the first one to open it under another boot then begins a
   * new epoch, and the numbers jump. A network mount always syncs, because there the others live on.
   */
  readonly sync?: boolean | undefined;
  readonly bootId: string;
}

export interface RollingEntry<T> {
  /** Grows with every append; may jump. */
  readonly number: number;
  readonly state: T;
}

export interface AppendedEntry<T> extends RollingEntry<T> {
  /** The second name of the slot's file, when it was asked to be kept. */
  readonly temp?: string;
}

interface Epoch<T> {
  readonly directory: string;
  readonly bootId: string;
  /** The number of slot k is from + k. */
  readonly from: number;
  readonly slots: number;
  readonly base: T;
}
interface Slot<T> {
  readonly id: string;
  readonly number: number;
  readonly state: T;
}
/** Where this process believes the end of the chain to be. */
export interface View<T> {
  readonly epoch: ChainEntry<Epoch<T>>;
  /** 0: nothing in this epoch yet. */
  readonly slot: number;
  readonly state: T;
}

export class RollingChain<T> {
  protected readonly staging: Staging;
  protected readonly directory: string;
  readonly #options: RollingChainOptions<T>;
  readonly #sync: boolean;
  readonly #slotKind: RecordKind<Slot<T>>;
  readonly #epochs: Chain<Epoch<T>>;
  #view: View<T> | undefined;

  protected constructor(staging: Staging, directory: string, options: RollingChainOptions<T>) {
    this.staging = staging;
    this.directory = directory;
    this.#options = options;
    this.#sync = options.sync !== false || staging.disk.volume.kind !== "local";
    this.#slotKind = slotKind(options.kind);
    this.#epochs = new Chain(staging, `${directory}/epochs`, epochKind(options.kind));
  }

  /** Makes the chain if there is none. */
  static async open<T>(staging: Staging, directory: string, options: RollingChainOptions<T>): Promise<RollingChain<T>> {
    await ensureDirectory(staging.disk, `${directory}/epochs`);
    const chain = new this(staging, directory, options);
    await chain.#begin();
    return chain;
  }

  /**
   * Makes the state that `change` derives from the newest one the next entry, or nothing when it returns undefined. `change` may be called several times, also
   * with a state that turns out to be void, so it must have no effects. What is returned is won for good, whatever comes later. With `keepTemp` the
   * temp file that became the slot stays, as its second name.
   */
  async append(
    id: string,
    change: (newest: T, number: number) => T | undefined,
    { keepTemp = false }: { readonly keepTemp?: boolean } = {},
  ): Promise<AppendedEntry<T> | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = this.#view ?? (await this.#enter());
      if (view.slot >= view.epoch.body.slots) {
        await this.#roll(view);
        continue;
      }
      const number = view.epoch.body.from + view.slot + 1;
      const state = change(view.state, number);
      if (state === undefined) {
        // A refusal is an answer that somebody acts on: it must rest on the newest state, and on one that counts.
        const newest = await this.#advance(view);
        if (newest?.slot === view.slot && (await this.isOpen(view))) return undefined;
        this.#view = newest?.slot === view.slot ? undefined : newest;
        continue;
      }
      // A new temp file each time: one that may have been linked must never be written again.
      const bytes = encodeRecord(this.#slotKind, { id, number, state });
      const temp = await stage(this.staging, bytes, { sync: this.#sync });
      const won = await this.#win(view, temp, bytes, id);
      if (won) return keepTemp ? { number, state, temp } : (await discard(this.staging, temp), { number, state });
      await discard(this.staging, temp);
    }
    const message = `${this.directory}: lost the race for the next number ${attemptsMax} times.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: this.directory, blockedBy: [], worthWaiting: true });
  }

  /** The newest state that can be seen, for those who act on it. */
  async read(): Promise<RollingEntry<T>> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = await this.#advance(this.#view ?? (await this.#enter()));
      this.#view = view;
      // After reading, not before: a slot that was linked late into a collected epoch looks like any other.
      if (view !== undefined && (await this.isOpen(view)))
        return { number: view.epoch.body.from + view.slot, state: view.state };
      this.#view = undefined;
    }
    const path = `${this.directory}/epochs`;
    throw holdfastError("CORRUPT", `${path}: the newest epoch has lost its "open" file. Run \`holdfast verify\`.`, {
      path,
    });
  }

  /** Deletes the slots of epochs that nobody can win in any more; returns how many epochs. Any number of collectors may run at once. */
  async collect(): Promise<number> {
    const newest = (await this.#epochs.last())?.number ?? 0;
    let collected = 0;
    for (const name of await this.staging.disk.list(this.directory)) {
      const epoch = findEpochOfDirectory(name);
      // Two later epochs are named for ever, so this stays right however long this process sleeps now.
      if (epoch !== undefined && epoch + 2 <= newest && (await this.collectDirectory(`${this.directory}/${name}`)))
        collected++;
    }
    return collected;
  }

  protected async collectDirectory(directory: string): Promise<boolean> {
    try {
      // First of all, and durable before anything else goes: from here on no link in this directory is believed.
      await unlinkIfThere(this.staging.disk, `${directory}/open`);
      await this.staging.disk.syncDirectory(directory);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return false;
      throw error;
    }
    return await removeDirectory(this.staging.disk, directory);
  }

  /** Whether everything in this epoch still counts. Only "yes" proves anything. */
  protected async isOpen(view: View<T>): Promise<boolean> {
    return await this.staging.disk.canOpen(`${this.#slots(view)}/open`);
  }

  async #win(view: View<T>, temp: string, bytes: Uint8Array, id: string): Promise<boolean> {
    const slot = view.slot + 1;
    let linked = false;
    try {
      linked = await linkOnce(this.staging.disk, temp, this.#path(view, slot), bytes);
      if (!linked) {
        this.#view = await this.#overtakenAt(view, slot);
        return false;
      }
      if (this.#sync) await this.staging.disk.syncDirectory(this.#slots(view));
      if (await this.isOpen(view)) {
        this.#view = { ...view, slot, state: decodeRecord(this.#slotKind, bytes, temp).state };
        return true;
      }
    } catch (error) {
      this.#view = undefined;
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw linked ? outcomeUnknown(this.#path(view, slot), error) : error;
    }
    // In doubt: the epoch was full and collected while we slept. If our link came before, everybody after us built on it.
    this.#view = undefined;
    return this.#options.counts((await this.read()).state, id);
  }

  async #overtakenAt(view: View<T>, slot: number): Promise<View<T> | undefined> {
    const found = await this.#findSlot(view, slot);
    return found === undefined ? undefined : await this.#advance({ ...view, slot, state: found.state });
  }

  /** Goes to the end of the epoch as far as it can be seen; undefined when the directory is gone. */
  async #advance(view: View<T>): Promise<View<T> | undefined> {
    const isLocal = this.staging.disk.volume.kind === "local";
    const slot = isLocal ? view.slot : await this.#highestSlot(view);
    if (slot === undefined) return undefined;
    let newest = view;
    const start = slot > view.slot ? await this.#findSlot(view, slot) : undefined;
    if (start !== undefined) newest = { ...view, slot, state: start.state };
    while (isLocal && newest.slot < view.epoch.body.slots) {
      const next = await this.#findSlot(view, newest.slot + 1);
      if (next === undefined) break;
      newest = { ...view, slot: newest.slot + 1, state: next.state };
    }
    if (newest.slot < view.epoch.body.slots) return newest;
    // Full: the next epoch may have begun already.
    const epoch = await this.#epochs.last();
    if (epoch === undefined || epoch.number <= view.epoch.number) return newest;
    return await this.#advance({ epoch, slot: 0, state: epoch.body.base });
  }

  async #enter(): Promise<View<T>> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const epoch = await this.#epochs.last();
      if (epoch === undefined) {
        await this.#begin();
        continue;
      }
      const start: View<T> = { epoch, slot: 0, state: epoch.body.base };
      const slot = await this.#highestSlot(start);
      // Gone means collected, so a newer epoch exists, and the next look will find it.
      if (slot === undefined) continue;
      const found = slot === 0 ? undefined : await this.#findSlot(start, slot);
      if (slot > 0 && found === undefined) continue;
      return (this.#view = found === undefined ? start : { epoch, slot, state: found.state });
    }
    const path = `${this.directory}/epochs`;
    throw holdfastError("CORRUPT", `${path}: the directory of the newest epoch is missing. Run \`holdfast verify\`.`, {
      path,
    });
  }

  async #begin(): Promise<void> {
    const newest = await this.#epochs.last();
    if (newest === undefined) {
      await this.#name(undefined, this.#options.initial);
    } else if (!this.#sync && newest.body.bootId !== this.#options.bootId) {
      // Slots of before the restart were never synced: some may be gone, their numbers free again. All of their holders are dead.
      await this.#name(newest, await this.#highestReadableState(newest));
    }
  }

  async #roll(view: View<T>): Promise<void> {
    const epoch = await this.#name(view.epoch, view.state);
    this.#view = epoch === undefined ? undefined : { epoch, slot: 0, state: epoch.body.base };
  }

  /** Names the epoch after `previous`; undefined when somebody else has. */
  async #name(previous: ChainEntry<Epoch<T>> | undefined, base: T): Promise<ChainEntry<Epoch<T>> | undefined> {
    const { disk, random } = this.staging;
    const number = (previous?.number ?? 0) + 1;
    const directory = `${slotName(number)}-${randomName(random.bytes(16))}`;
    const path = `${this.directory}/${directory}`;
    await disk.mkdir(path);
    await disk.createFile(`${path}/open`, new Uint8Array(), { sync: true });
    // Before the name: an epoch that is named but lost its directory or its `open` in a power cut would stop everybody.
    await disk.syncDirectory(path);
    await disk.syncDirectory(this.directory);
    const epoch: Epoch<T> = {
      directory,
      bootId: this.#options.bootId,
      from: previous === undefined ? 0 : previous.body.from + previous.body.slots,
      slots: this.#options.slotsPerEpoch ?? 4096,
      base,
    };
    // The directory of a loser is named nowhere and never will be: it goes with its epoch's number.
    return await this.#epochs.append(directory, (newest) => (newest?.number === previous?.number ? epoch : undefined));
  }

  async #highestReadableState(epoch: ChainEntry<Epoch<T>>): Promise<T> {
    const view: View<T> = { epoch, slot: 0, state: epoch.body.base };
    for (let slot = (await this.#highestSlot(view)) ?? 0; slot > 0; slot--) {
      try {
        const found = await this.#findSlot(view, slot);
        if (found !== undefined) return found.state;
      } catch (error) {
        // Torn by the power cut. Records are whole states, so an older one is only older.
        if (!(error instanceof Error && "code" in error && error.code === "CORRUPT")) throw error;
      }
    }
    return epoch.body.base;
  }

  async #highestSlot(view: View<T>): Promise<number | undefined> {
    try {
      const slots = (await this.staging.disk.list(this.#slots(view))).map(findSlotNumber);
      return Math.max(view.slot, ...slots.filter((slot) => slot !== undefined));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
      throw error;
    }
  }

  async #findSlot(view: View<T>, slot: number): Promise<Slot<T> | undefined> {
    const path = this.#path(view, slot);
    try {
      return decodeRecord(this.#slotKind, await this.staging.disk.readFile(path, recordBytesMax), path);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
      throw error;
    }
  }

  #slots(view: View<T>): string {
    return `${this.directory}/${view.epoch.body.directory}`;
  }

  #path(view: View<T>, slot: number): string {
    return `${this.#slots(view)}/${slotName(slot)}`;
  }
}

function findEpochOfDirectory(name: string): number | undefined {
  const dash = name.indexOf("-");
  return dash < 0 ? undefined : findSlotNumber(name.slice(0, dash));
}

function epochKind<T>(kind: RecordKind<T>): RecordKind<Epoch<T>> {
  return {
    kind: `${kind.kind} epoch`,
    decode: (value) => {
      const { directory, bootId, from, slots, base } = objectOf(value);
      return {
        directory: textOf(directory),
        bootId: textOf(bootId),
        from: countOf(from),
        slots: countOf(slots),
        base: kind.decode(base),
      };
    },
  };
}

function slotKind<T>(kind: RecordKind<T>): RecordKind<Slot<T>> {
  return {
    kind: `${kind.kind} slot`,
    decode: (value) => {
      const { id, number, state } = objectOf(value);
      return { id: textOf(id), number: countOf(number), state: kind.decode(state) };
    },
  };
}
