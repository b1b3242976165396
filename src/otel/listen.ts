// Subscribes to all operations and all signals.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { operationChannel, operationNames, type OperationMessage } from "../telemetry/operation.ts";
import { signalNames, type SignalMessages, type SignalName } from "../telemetry/signals.ts";

export interface OperationListener {
  begin(message: OperationMessage): void;
  end(message: OperationMessage): void;
}

/** Returns a function that stops it. `end` is called once for each operation, whether it failed or not. */
export function listenToOperations(listener: OperationListener): () => void {
  const handlers = {
    start: (message: OperationMessage) => listener.begin(message),
    // An operation that throws at once has no asynchronous part.
    end: (message: OperationMessage) => {
      if (message.error !== undefined) listener.end(message);
    },
    asyncStart: () => undefined,
    asyncEnd: (message: OperationMessage) => listener.end(message),
    error: () => undefined,
  };
  const channels = operationNames.map((name) => operationChannel(name));
  for (const channel of channels) channel.subscribe(handlers);
  return () => {
    for (const channel of channels) channel.unsubscribe(handlers);
  };
}

/** Returns a function that stops it. */
export function listenToSignals(
  onSignal: <Name extends SignalName>(name: Name, message: SignalMessages[Name]) => void,
): () => void {
  const stops = signalNames.map((name) => {
    const listener = (message: unknown): void => onSignal(name, message as SignalMessages[typeof name]);
    subscribe(name, listener);
    return () => void unsubscribe(name, listener);
  });
  return () => {
    for (const stop of stops) stop();
  };
}
