// Serves one client over standard input and output, as clients of the protocol launch servers.
import type { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createMcpServer, type McpOptions, type Workplace } from "./server.ts";

/** Options of `serveMcp`. */
export interface ServeMcpOptions extends Omit<McpOptions, "era"> {
  /** Ends the connection. */
  signal?: AbortSignal | undefined;
  /** Where requests come from. Default `process.stdin`. */
  input?: Readable | undefined;
  /** Where answers go to. Default `process.stdout`. */
  output?: Writable | undefined;
  /** Called with each error that belongs to no request, such as a message that is not JSON. Default: none. */
  onProblem?: ((problem: Error) => void) | undefined;
}

/**
 * Serves a store to one client over standard input and output. Resolves when the client has closed
 * its end, or `signal` aborted. Nothing else may write to the output.
 */
export async function serveMcp(store: Workplace, options: ServeMcpOptions = {}): Promise<void> {
  const { signal, input, output, onProblem, ...given } = options;
  // Checks the options before the first client is served.
  createMcpServer(store, given);
  const transport = new StdioServerTransport(input, output);
  const handle = serveStdio(({ era }) => createMcpServer(store, { ...given, era }), {
    transport,
    onerror: (problem) => onProblem?.(problem),
  });
  const onAbort = (): void => void handle.close();
  await new Promise<void>((resolve) => {
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      resolve();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
  });
  signal?.removeEventListener("abort", onAbort);
}
