// The HTTP side of the gateway: connections and requests, within limits of size and time, and how
// they end.
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { S3AccessEntry } from "./access-entry.ts";
import { RequestExchange, type Answerer } from "./exchange.ts";
import { defaultPace, PaceKeeper, type Pace } from "./pace.ts";

export interface ServerOptions {
  readonly tls?: { readonly cert: string | Uint8Array; readonly key: string | Uint8Array } | undefined;
  readonly answer: Answerer;
  /** Told once for each request, when its answer has been sent. */
  readonly onAnswered: (entry: S3AccessEntry) => void;
  readonly pace?: Pace | undefined;
}

const limits = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 30_000,
  // A body of many gigabytes takes as long as it takes; the pace of its client is watched.
  requestTimeout: 0,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 75_000,
  keepAlive: true,
  noDelay: true,
} as const;
const handshakeTimeout = 10_000;

export class HttpServer {
  readonly #server: Server;
  readonly #options: ServerOptions;
  readonly #pace: PaceKeeper;
  /** With the number of requests that each has under way: more than one when they are pipelined. */
  readonly #connections = new Map<Socket, number>();
  /** Below TLS, where there is TLS: also those that have not shaken hands. */
  readonly #sockets = new Set<Socket>();
  readonly #exchanges = new Set<RequestExchange>();
  #closing: Promise<void> | undefined;

  constructor(options: ServerOptions) {
    const { tls, pace = defaultPace } = options;
    this.#options = options;
    this.#pace = new PaceKeeper(pace);
    this.#server =
      tls === undefined
        ? createHttpServer(limits)
        : createHttpsServer({ ...limits, handshakeTimeout, cert: asBuffer(tls.cert), key: asBuffer(tls.key) });
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
      this.#connections.set(socket, 0);
      socket.once("close", () => this.#connections.delete(socket));
    });
    const handle =
      (waits: boolean) =>
      (incoming: IncomingMessage, response: ServerResponse): void =>
        this.#handle(incoming, response, waits);
    this.#server.on("request", handle(false));
    this.#server.on("checkContinue", handle(true));
    // An expectation that is not known is ignored, as RFC 9110 allows.
    this.#server.on("checkExpectation", handle(false));
  }

  get connections(): number {
    return this.#connections.size;
  }

  get requestsUnderWay(): number {
    return this.#exchanges.size;
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  async listen(port: number, host: string): Promise<AddressInfo> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    return this.#server.address() as AddressInfo;
  }

  /** Finishes what is under way, at most `drainMs`; then it is cut off. */
  async close(drainMs: number): Promise<void> {
    await (this.#closing ??= this.#close(drainMs));
  }

  async #close(drainMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const [socket, count] of this.#connections) if (count === 0) socket.destroy();
    const late = setTimeout(() => {
      for (const exchange of this.#exchanges) exchange.abort(new Error("The gateway was closed."));
      for (const socket of this.#sockets) socket.destroy();
    }, drainMs);
    await closed;
    clearTimeout(late);
    this.#pace.stop();
  }

  #handle(incoming: IncomingMessage, response: ServerResponse, waits: boolean): void {
    const exchange = new RequestExchange(incoming, response, { waits, isClosing: () => this.isClosing });
    const { socket } = incoming;
    this.#count(socket, 1);
    this.#exchanges.add(exchange);
    const unwatch = this.#pace.watch({
      incoming,
      response,
      isWaitingForBody: () => exchange.hasContinued,
      onSlow: (what) => exchange.refuseSlow(what),
    });
    // When the client has all of it, or has gone.
    response.once("close", () => {
      unwatch();
      this.#count(socket, -1);
    });
    void exchange.run(this.#options.answer).then((entry) => {
      this.#exchanges.delete(exchange);
      this.#options.onAnswered(entry);
    });
  }

  #count(socket: Socket, change: number): void {
    const count = this.#connections.get(socket);
    if (count !== undefined) this.#connections.set(socket, count + change);
  }
}

function asBuffer(data: string | Uint8Array): string | Buffer {
  return typeof data === "string" ? data : Buffer.from(data);
}
