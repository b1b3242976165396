// The bed's end of the connection to the agent in a guest.
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { agentPort, type AgentOrder, type AgentReport } from "./guest/agent-protocol.ts";

/** `Omit` for each member of a union. */
type Without<Union, Key extends PropertyKey> = Union extends unknown ? Omit<Union, Key> : never;

export class AgentLink {
  readonly #socket: Socket;
  readonly #listeners = new Map<number, (report: AgentReport | undefined) => void>();
  #lastId = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    // The guest was killed, or its kernel died: waiting callers hear of it by the close.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      for (const listener of this.#listeners.values()) listener(undefined);
    });
    createInterface({ input: socket }).on("line", (line) => {
      const report = JSON.parse(line) as AgentReport;
      this.#listeners.get(report.id)?.(report);
    });
  }

  /** Undefined when nothing listens there yet. */
  static async find(address: string): Promise<AgentLink | undefined> {
    const socket = connect({ host: address, port: agentPort, timeout: 1000 });
    return await new Promise((resolve) => {
      socket.once("connect", () => {
        socket.setTimeout(0);
        resolve(new AgentLink(socket));
      });
      const giveUp = (): void => {
        socket.destroy();
        resolve(undefined);
      };
      socket.once("error", giveUp).once("timeout", giveUp);
    });
  }

  /**
   * `onReport` hears of everything that belongs to this order; undefined: the guest is gone, and
   * nothing more comes.
   */
  order(order: Without<AgentOrder, "id">, onReport: (report: AgentReport | undefined) => void): number {
    const id = ++this.#lastId;
    this.#listeners.set(id, onReport);
    this.#write({ ...order, id });
    return id;
  }

  /** To something that was ordered before. */
  tell(id: number, order: Without<AgentOrder, "id">): void {
    this.#write({ ...order, id });
  }

  forget(id: number): void {
    this.#listeners.delete(id);
  }

  close(): void {
    this.#socket.destroy();
  }

  #write(order: AgentOrder): void {
    if (!this.#socket.destroyed) this.#socket.write(`${JSON.stringify(order)}\n`);
  }
}
