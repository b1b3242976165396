// The connections of a gateway: how many may be open, which one is closed in favour of a new one,
// and which are only told that there is no room.
import type { Socket } from "node:net";

interface Connection {
  readonly peer: string;
  /** The TCP socket, also below TLS. */
  readonly socket: Socket;
  /** Number of requests in progress: more than one if the client pipelines. */
  requests: number;
  idleSinceMs: number;
}

/**
 * How many connections at a time are told that there is no room. Others are closed without a
 * response.
 */
const toldMax = 100;
/** Requests in progress on one connection. S3 clients do not pipeline; more than this is an attack. */
const pipelinedMax = 100;
/** A connection that opened or finished a request this recently is about to be used. */
const freshMs = 1_000;
/** How long a connection that is to be refused may take to send a request and read the response. */
const toldMs = 5_000;

export class Connections {
  readonly #max: number;
  /**
   * By the client's address and port: with TLS, a request does not have the socket object of its
   * connection.
   */
  readonly #open = new Map<string, Connection>();
  /** Connections without a request in progress, the longest idle first. */
  readonly #idle = new Set<Connection>();
  /** Connections with an unsigned upload in progress, oldest first. */
  readonly #unsigned = new Set<Connection>();
  readonly #told = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Called when a connection is accepted, before TLS. If there is no room, the longest idle
   * connection is closed, or else the oldest unsigned upload, which costs its client nothing and
   * must not keep others out. A fresh connection is spared while there is such an upload: its
   * request may be signed.
   */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    if (this.#open.size >= this.#max && !this.#makeRoom()) return this.#tell(peer, socket);
    const connection = { peer, socket, requests: 0, idleSinceMs: Date.now() };
    this.#open.set(peer, connection);
    this.#idle.add(connection);
    socket.once("close", () => this.#forget(connection));
  }

  /**
   * Call it at the start of a request. Returns the function to call at its end, or undefined if
   * there is no room.
   */
  begin(socket: Socket): (() => void) | undefined {
    const connection = this.#open.get(peerOf(socket));
    if (connection === undefined) return undefined;
    if (connection.requests >= pipelinedMax) {
      connection.socket.destroy();
      return undefined;
    }
    connection.requests++;
    this.#idle.delete(connection);
    return () => {
      connection.requests--;
      if (connection.requests > 0 || connection.socket.destroyed) return;
      this.#unsigned.delete(connection);
      connection.idleSinceMs = Date.now();
      this.#idle.add(connection);
    };
  }

  /** Sets whether a new connection may replace this one while its request is in progress. */
  giveWay(socket: Socket, mayGiveWay: boolean): void {
    const connection = this.#open.get(peerOf(socket));
    if (connection === undefined) return;
    if (mayGiveWay) this.#unsigned.add(connection);
    else this.#unsigned.delete(connection);
  }

  closeIdle(): void {
    for (const { socket } of this.#idle) socket.destroy();
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
    for (const socket of this.#told.values()) socket.destroy();
  }

  #makeRoom(): boolean {
    const [[idle], [unsigned]] = [this.#idle, this.#unsigned];
    const isFresh = idle !== undefined && Date.now() - idle.idleSinceMs < freshMs;
    const longest = idle === undefined || (isFresh && unsigned !== undefined) ? unsigned : idle;
    if (longest === undefined) return false;
    // Forgets the connection now: the socket's "close" event comes later.
    this.#forget(longest);
    longest.socket.destroy();
    return true;
  }

  #tell(peer: string, socket: Socket): void {
    if (this.#told.size >= toldMax) return void socket.destroy();
    this.#told.set(peer, socket);
    const late = setTimeout(() => socket.destroy(), toldMs).unref();
    socket.once("close", () => {
      clearTimeout(late);
      this.#told.delete(peer);
    });
  }

  #forget(connection: Connection): void {
    // By now, a newer connection may have the same port.
    if (this.#open.get(connection.peer) === connection) this.#open.delete(connection.peer);
    this.#idle.delete(connection);
    this.#unsigned.delete(connection);
  }
}

function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress ?? ""} ${remotePort ?? ""} ${localAddress ?? ""}`;
}
