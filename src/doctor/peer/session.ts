// The session of two peers that met: notes that both write and read, one per step, so that they run
// the rounds together.
import { decodeRecord, encodeRecord, recordBytesMax, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Role } from "./pairing.ts";
import { sessionParts, type Presence } from "./presence.ts";

/** A value of both sides. */
export interface BothSides<T> {
  readonly first: T;
  readonly second: T;
}

/** The peer no longer answers. That proves nothing about the file system. */
export class PeerGone extends Error {}

// Both sides have the same version (the greeting ensures it), and a checksum guards the bytes: a
// note from the peer has the expected shape.
const noteKind: RecordKind<unknown> = { kind: "doctor-note", decode: (body) => body };

const lookEveryMs = 20;
const peerSilentMs = 30_000;
/** Longer than any round: two peers that wait for each other at different steps would otherwise wait forever. */
const stepMsMax = 120_000;

export interface SessionOptions {
  readonly ports: Ports;
  readonly presence: Presence;
  readonly role: Role;
  /** The id of the peer. */
  readonly peer: string;
  readonly directory: string;
  readonly signal: AbortSignal | undefined;
}

export class PeerSession {
  readonly ports: Ports;
  readonly role: Role;
  readonly directory: string;
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.ports = options.ports;
    this.role = options.role;
    this.directory = options.directory;
  }

  static async make({ disk }: Ports, directory: string): Promise<void> {
    await disk.mkdir(directory);
    for (const part of sessionParts) await disk.mkdir(`${directory}/${part}`);
  }

  get otherRole(): Role {
    return this.role === "first" ? "second" : "first";
  }

  path(part: string, name: string): string {
    return `${this.directory}/${part}/${name}`;
  }

  /** Sends `mine` to the peer, waits for the peer's value at the same step, and returns both. */
  async exchange<T>(step: string, mine: T): Promise<BothSides<T>> {
    await this.#write(`${this.role}.${step}`, mine);
    const name = `${this.otherRole}.${step}`;
    const isTold = async (): Promise<boolean> => (await this.ports.disk.list(this.directory)).includes(name);
    if (!(await this.waitFor(isTold, { limitMs: stepMsMax }))) throw new PeerGone(`it did not reach the step ${step}`);
    const theirs = (await this.#read(name)) as T;
    return this.role === "first" ? { first: mine, second: theirs } : { first: theirs, second: mine };
  }

  /**
   * Returns true as soon as `condition` is true, and false after `limitMs`. Throws PeerGone if the
   * peer falls silent meanwhile.
   */
  async waitFor(
    condition: () => Promise<boolean>,
    { limitMs = Infinity, everyMs = lookEveryMs }: { limitMs?: number; everyMs?: number } = {},
  ): Promise<boolean> {
    const { presence, peer, signal } = this.#options;
    const { clock } = this.ports;
    const startedMs = clock.monotonicMs();
    for (;;) {
      signal?.throwIfAborted();
      if (await condition()) return true;
      if (clock.monotonicMs() - startedMs >= limitMs) return false;
      await presence.keepUp();
      if (presence.silenceMs(peer) > peerSilentMs) throw new PeerGone(`nothing was heard of it for ${peerSilentMs} ms`);
      await clock.sleep(everyMs, { signal });
    }
  }

  /** Stays visible to the peer; for long rounds without waits. */
  async keepUp(): Promise<void> {
    await this.#options.presence.keepUp();
  }

  /** Waits until the peer has read everything too, or has gone: then the session can be removed. */
  async finish(): Promise<void> {
    try {
      await this.exchange("end", {});
    } catch (error) {
      // The side that sees the end first removes the session, even before the other has seen it.
      if (!(error instanceof PeerGone) && !hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
  }

  async #write(name: string, body: unknown): Promise<void> {
    const path = `${this.directory}/${name}`;
    // Use a rename, so that the peer never reads half a note. A plain rename to a free name works everywhere.
    await this.ports.disk.createFile(`${path}.temp`, encodeRecord(noteKind, body), { sync: false });
    await this.ports.disk.rename(`${path}.temp`, path);
  }

  async #read(name: string): Promise<unknown> {
    const path = `${this.directory}/${name}`;
    return decodeRecord(noteKind, await this.ports.disk.readFile(path, recordBytesMax), path);
  }
}
