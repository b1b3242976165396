// Listens on the channels of operations and signals, and uses every part of a store.
import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import {
  operationNames,
  signalNames,
  type OperationMessage,
  type OperationName,
  type SignalMessages,
  type SignalName,
} from "../../src/index.ts";

export interface Published {
  readonly at: "start" | "end" | "asyncStart" | "asyncEnd" | "error";
  readonly message: OperationMessage;
}

/** Records what is published, until it is disposed of. */
export class Listener implements Disposable {
  readonly published: Published[] = [];
  readonly signals: { readonly name: SignalName; readonly message: SignalMessages[SignalName] }[] = [];
  readonly #stops: (() => void)[] = [];

  constructor(names: readonly OperationName[] = operationNames) {
    for (const name of names) {
      const channel = tracingChannel<unknown, OperationMessage>(`holdfast:${name}`);
      const on = (at: Published["at"]) => (message: OperationMessage) => void this.published.push({ at, message });
      const all = {
        start: on("start"),
        end: on("end"),
        asyncStart: on("asyncStart"),
        asyncEnd: on("asyncEnd"),
        error: on("error"),
      };
      channel.subscribe(all);
      this.#stops.push(() => channel.unsubscribe(all));
    }
    for (const name of signalNames) {
      const listen = (message: unknown): void =>
        void this.signals.push({ name, message: message as SignalMessages[SignalName] });
      subscribe(name, listen);
      this.#stops.push(() => unsubscribe(name, listen));
    }
  }

  /** The steps of one operation, in order. */
  stepsOf(name: OperationName): Published["at"][] {
    return this.published.filter(({ message }) => message.operation === name).map(({ at }) => at);
  }

  /** The messages of one operation, one for each call. */
  of(name: OperationName): OperationMessage[] {
    return [...new Set(this.published.map(({ message }) => message))].filter(({ operation }) => operation === name);
  }

  /** The names of all operations that have begun. */
  get names(): Set<OperationName> {
    return new Set(this.published.map(({ message }) => message.operation));
  }

  signalsNamed<Name extends SignalName>(name: Name): SignalMessages[Name][] {
    return this.signals.filter((each) => each.name === name).map(({ message }) => message as SignalMessages[Name]);
  }

  [Symbol.dispose](): void {
    for (const stop of this.#stops) stop();
  }
}
