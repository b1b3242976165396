// Forwards connections to a server, and cuts them when a test says so.
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Cut before the server gets anything, when it has half of it, or once it has answered, which the client never sees. */
export type Cut = "unsent" | "half" | "unanswered";

export class Proxy {
  readonly url: string;
  readonly #listener: Server;
  readonly #sockets = new Set<Socket>();
  #target: URL;
  /** Called with what a client sends. */
  cutsAt: (sent: string) => Cut | undefined = () => undefined;

  private constructor(listener: Server, target: URL) {
    this.#listener = listener;
    this.#target = target;
    const url = new URL(target);
    url.port = String((listener.address() as AddressInfo).port);
    this.url = url.href;
    listener.on("connection", (client) => this.#forward(client, connect(Number(this.#target.port), "127.0.0.1")));
  }

  static async open(target: string): Promise<Proxy> {
    const listener = createServer();
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    return new Proxy(listener, new URL(target));
  }

  /** Leads to another server from now on. */
  leadTo(target: string): void {
    this.#target = new URL(target);
    this.cutAll();
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#listener.close();
    this.cutAll();
  }

  #forward(client: Socket, server: Socket): void {
    let isAnswerCut = false;
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        client.destroy();
        server.destroy();
      });
    }
    client.on("data", (bytes) => {
      const cut = this.cutsAt(bytes.toString("latin1"));
      if (cut === "unsent") client.destroy();
      else if (cut === "half") server.write(bytes.subarray(0, bytes.length / 2), () => client.destroy());
      else server.write(bytes);
      isAnswerCut ||= cut === "unanswered";
    });
    server.on("data", (bytes) => {
      if (isAnswerCut) client.destroy();
      else client.write(bytes);
    });
  }
}
