// The connections of a gateway: how many may be open, which of them gives way to a new one, and which
// are only told that there is no room.
import type { Socket } from "node:net";

interface Connection {
  readonly peer: string;
  /** Below TLS, where there is TLS. */
  readonly socket: Socket;
  /** More than one when they are pipelined. */
  requests: number;
}

/** So many are told that there is no room, at a time; others are closed without a word. */
const toldMax = 100;
/** Requests under way on one connection. Clients of S3 do not pipeline; what does more of it is an attack. */
const pipelinedMax = 100;
/** How long one that is told may take to ask, and to hear it. */
const toldMs = 5_000;

export class Connections {
  readonly #max: number;
  /** By the address of the client: TLS hides its own sockets from us. */
  readonly #open = new Map<string, Connection>();
  /** Without a request under way; the one that has been so for the longest comes first. */
  readonly #idle = new Set<Connection>();
  readonly #told = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * To be called when it is accepted, before TLS. Where there is no room, the connection that has
   * waited for a request for the longest is closed: one that costs its client nothing must not keep
   * another client out.
   */
  add(socket: Socket): void {
    const peer = peerOf(socket);
    if (this.#open.size >= this.#max && !this.#makeRoom()) return this.#tell(peer, socket);
    const connection = { peer, socket, requests: 0 };
    this.#open.set(peer, connection);
    this.#idle.add(connection);
    socket.once("close", () => this.#forget(connection));
  }

  /** A request has come; the function that it gives is for its end. Undefined: there is no room for it. */
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
      if (connection.requests === 0 && !connection.socket.destroyed) this.#idle.add(connection);
    };
  }

  closeIdle(): void {
    for (const { socket } of this.#idle) socket.destroy();
  }

  closeAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
    for (const socket of this.#told.values()) socket.destroy();
  }

  #makeRoom(): boolean {
    const [longest] = this.#idle;
    if (longest === undefined) return false;
    // Its "close" comes later.
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
    // A later one may have the same port.
    if (this.#open.get(connection.peer) === connection) this.#open.delete(connection.peer);
    this.#idle.delete(connection);
  }
}

function peerOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress ?? ""} ${remotePort ?? ""} ${localAddress ?? ""}`;
}
