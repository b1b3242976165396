// The real hasher: one thread for all bodies of the process. It starts with the first body, and
// keeps the process alive only while a body is being hashed.
import { Worker } from "node:worker_threads";
import { holdfastError } from "../../errors.ts";
import type { Hasher, Hashing } from "../hasher.ts";

const blockBytes = 1024 * 1024;
/** The thread hashes one block, the caller fills another, and the third is in transit. */
const blocksEach = 3;
/** One thread keeps up with this many. The blocks of these bodies bound the memory used. */
const bodiesMax = 4;

type Order =
  | { readonly id: number; readonly algorithms: readonly string[]; readonly shared: SharedArrayBuffer }
  | { readonly id: number; readonly at: number; readonly length: number }
  | { readonly id: number; readonly isEnd: boolean };
type Report = { readonly id: number; readonly digests?: readonly string[] };

/** A string, like the heart's program: it must run from the package, from the tests and from a bundle. */
const program = `"use strict";
const { createHash } = require("node:crypto");
const { parentPort } = require("node:worker_threads");
const bodies = new Map();
parentPort.on("message", ({ id, algorithms, shared, at, length, isEnd }) => {
  if (algorithms !== undefined) {
    bodies.set(id, { bytes: new Uint8Array(shared), hashes: algorithms.map((name) => createHash(name)) });
    return;
  }
  const { bytes, hashes } = bodies.get(id);
  if (isEnd === undefined) {
    for (const hash of hashes) hash.update(bytes.subarray(at, at + length));
    parentPort.postMessage({ id });
    return;
  }
  bodies.delete(id);
  parentPort.postMessage({ id, digests: isEnd ? hashes.map((hash) => hash.digest("hex")) : [] });
});
`;

class NodeHasher implements Hasher {
  readonly #bodies = new Map<number, NodeHashing>();
  /** Memory of ended bodies, for reuse. */
  readonly #memory: SharedArrayBuffer[] = [];
  #worker: Worker | undefined;
  #hasFailed = false;
  #count = 0;

  start(algorithms: readonly string[]): Hashing | undefined {
    if (this.#hasFailed || this.#bodies.size >= bodiesMax) return undefined;
    try {
      this.#worker ??= this.#open();
    } catch {
      // Threads may be forbidden or exhausted: then the caller hashes.
      this.#hasFailed = true;
      return undefined;
    }
    const worker = this.#worker;
    const id = ++this.#count;
    const shared = this.#memory.pop() ?? new SharedArrayBuffer(blocksEach * blockBytes);
    const body = new NodeHashing(id, shared, (order) => worker.postMessage(order));
    if (this.#bodies.size === 0) worker.ref();
    this.#bodies.set(id, body);
    worker.postMessage({ id, algorithms, shared } satisfies Order);
    return body;
  }

  #open(): Worker {
    // Pass neither flags nor environment of this process: a module preloaded there would be loaded
    // here too.
    const worker = new Worker(program, { eval: true, execArgv: [], env: {} });
    worker.on("message", ({ id, digests }: Report) => {
      const body = this.#bodies.get(id);
      if (body === undefined) return;
      if (digests === undefined) {
        body.onFree();
        return;
      }
      this.#bodies.delete(id);
      this.#memory.push(body.shared);
      if (this.#bodies.size === 0) worker.unref();
      body.onEnd(digests);
    });
    const fail = (cause: unknown): void => {
      this.#hasFailed = true;
      this.#worker = undefined;
      const bodies = [...this.#bodies.values()];
      this.#bodies.clear();
      for (const body of bodies) body.onFailed(threadEnded(cause));
    };
    worker.once("error", fail);
    worker.once("exit", fail);
    worker.unref();
    return worker;
  }
}

/** Retryable: from now on the caller's thread hashes. */
function threadEnded(cause: unknown): Error {
  const message = "The thread that hashes large bodies ended, so this body was not stored. Put it again.";
  return holdfastError("RESOURCE_BUSY", message, { path: "", blockedBy: [], worthWaiting: true }, cause);
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

class NodeHashing implements Hashing {
  readonly shared: SharedArrayBuffer;
  readonly #id: number;
  readonly #send: (order: Order) => void;
  #free = blocksEach;
  #next = 0;
  #waiter: Waiter | undefined;
  #digests: readonly string[] | undefined;
  #error: Error | undefined;
  #isClosed = false;

  constructor(id: number, shared: SharedArrayBuffer, send: (order: Order) => void) {
    this.#id = id;
    this.shared = shared;
    this.#send = send;
  }

  async block(): Promise<Uint8Array> {
    while (this.#free === 0) await this.#report();
    if (this.#error !== undefined) throw this.#error;
    return new Uint8Array(this.shared, this.#next * blockBytes, blockBytes);
  }

  update(length: number): void {
    this.#send({ id: this.#id, at: this.#next * blockBytes, length });
    this.#free--;
    // Blocks are freed in the order in which they were handed out.
    this.#next = (this.#next + 1) % blocksEach;
  }

  async end(): Promise<readonly string[]> {
    this.#close(true);
    while (this.#digests === undefined) await this.#report();
    return this.#digests;
  }

  close(): void {
    this.#close(false);
  }

  #close(isEnd: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#error === undefined) this.#send({ id: this.#id, isEnd });
  }

  onFree(): void {
    this.#free++;
    this.#wake();
  }

  onEnd(digests: readonly string[]): void {
    this.#digests = digests;
    this.#wake();
  }

  onFailed(error: Error): void {
    this.#error = error;
    this.#wake();
  }

  #wake(): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (this.#error === undefined) waiter?.resolve();
    else waiter?.reject(this.#error);
  }

  async #report(): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    await new Promise<void>((resolve, reject) => (this.#waiter = { resolve, reject }));
  }
}

/** Shared by all stores of the process. */
export const nodeHasher: Hasher = new NodeHasher();
