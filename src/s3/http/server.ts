// The HTTP server of the gateway: connections and requests within limits of size and time.
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { S3AccessEntry } from "./access-entry.ts";
import { Connections } from "./connections.ts";
import { hasBody, RequestExchange, type Answerer } from "./exchange.ts";
import { defaultPace, PaceKeeper, type Pace } from "./pace.ts";
import { S3Error } from "./s3-error.ts";

export interface ServerOptions {
  readonly tls?: { readonly cert: string | Uint8Array; readonly key: string | Uint8Array } | undefined;
  readonly answer: Answerer;
  /** Called once per request, after its response was sent. */
  readonly onAnswered: (entry: S3AccessEntry) => void;
  readonly pace?: Pace | undefined;
  /** How many connections may be open. Default 1_000. */
  readonly connectionsMax?: number | undefined;
}

const limits = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 30_000,
  // No limit for a whole request: a body of many gigabytes takes its time, and the pace limits
  // catch slow clients.
  requestTimeout: 0,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 75_000,
  keepAlive: true,
  noDelay: true,
} as const;
const handshakeTimeout = 10_000;
/**
 * The limit must be low enough: each connection uses a file descriptor, and systems allow a process
 * a few thousand.
 */
const connectionsMaxDefault = 1_000;

export class HttpServer {
  readonly #server: Server;
  readonly #options: ServerOptions;
  readonly #pace: PaceKeeper;
  readonly #connections: Connections;
  readonly #exchanges = new Set<RequestExchange>();
  #closing: Promise<void> | undefined;

  constructor(options: ServerOptions) {
    const { tls, pace = defaultPace, connectionsMax = connectionsMaxDefault } = options;
    this.#options = options;
    this.#connections = new Connections(connectionsMax);
    this.#pace = new PaceKeeper(pace);
    this.#server =
      tls === undefined
        ? createHttpServer(limits)
        : createHttpsServer({ ...limits, handshakeTimeout, cert: asBuffer(tls.cert), key: asBuffer(tls.key) });
    this.#server.on("connection", (socket: Socket) => this.#connections.add(socket));
    const handle =
      (waits: boolean) =>
      (incoming: IncomingMessage, response: ServerResponse): void =>
        this.#handle(incoming, response, waits);
    this.#server.on("request", handle(false));
    this.#server.on("checkContinue", handle(true));
    // Unknown expectations are ignored, as RFC 9110 allows.
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

  /** Finishes requests in progress for at most `drainMs`, then cuts them off. */
  async close(drainMs: number): Promise<void> {
    await (this.#closing ??= this.#close(drainMs));
  }

  async #close(drainMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#connections.closeIdle();
    const late = setTimeout(() => {
      for (const exchange of this.#exchanges) exchange.abort(new Error("The gateway was closed."));
      this.#connections.closeAll();
    }, drainMs);
    await closed;
    clearTimeout(late);
    this.#pace.stop();
  }

  #handle(incoming: IncomingMessage, response: ServerResponse, waits: boolean): void {
    const end = this.#connections.begin(incoming.socket);
    // Requests that were read before the connection was closed still arrive here.
    if (incoming.socket.destroyed) return;
    const isClosing = (): boolean => this.isClosing || end === undefined;
    const giveWay = (mayGiveWay: boolean): void => {
      const isComing = !incoming.complete && hasBody(incoming);
      this.#connections.giveWay(incoming.socket, mayGiveWay && isComing);
      if (isComing) incoming.once("end", () => this.#connections.giveWay(incoming.socket, false));
    };
    const exchange = new RequestExchange(incoming, response, { waits, isClosing, giveWay });
    this.#exchanges.add(exchange);
    const unwatch = this.#pace.watch({
      incoming,
      response,
      isWaitingForBody: () => exchange.hasContinued,
      onSlow: (what) => exchange.refuseSlow(what),
    });
    // The client has received everything, or has disconnected.
    response.once("close", () => {
      unwatch();
      end?.();
    });
    void exchange.run(end === undefined ? refuse : this.#options.answer).then((entry) => {
      this.#exchanges.delete(exchange);
      this.#options.onAnswered(entry);
    });
  }
}

/** Refuses a request without reading it, because too many connections are open. */
const refuse: Answerer = async () => {
  throw new S3Error("SlowDown");
};

function asBuffer(data: string | Uint8Array): string | Buffer {
  return typeof data === "string" ? data : Buffer.from(data);
}
