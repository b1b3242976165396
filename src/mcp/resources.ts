// Files as resources, for clients that attach them and subscribe to their changes.
import { ResourceTemplate, type McpServer, type ReadResourceResult } from "@modelcontextprotocol/server";
import type { Change } from "../files/index.ts";
import type { Desk } from "./desk.ts";
import { bounded, fileBytesMax, pageMax } from "./limits.ts";
import { readText } from "./tools/looking.ts";

const scheme = "holdfast:///";

export function uriOf(path: string): string {
  return scheme + path.split("/").map(encodeURIComponent).join("/");
}

function pathOf(uri: string): string {
  return decodeURIComponent(uri.slice(scheme.length));
}

export function offerFiles(server: McpServer, desk: () => Desk): void {
  const template = new ResourceTemplate(`${scheme}{+path}`, {
    list: async () => {
      const resources: { uri: string; name: string; size: number }[] = [];
      for await (const { path, directory, size } of (await desk().files()).list("", { deep: true })) {
        if (resources.length === pageMax) break;
        if (!directory) resources.push({ uri: uriOf(path), name: path, size });
      }
      return { resources };
    },
  });
  const details = { title: "Files of the tree", description: "Text files below the root", mimeType: "text/plain" };
  server.registerResource("files", template, details, async (uri): Promise<ReadResourceResult> => {
    const { text } = await readText(desk(), pathOf(uri.href));
    return { contents: [{ uri: uri.href, mimeType: "text/plain", text: bounded(text, fileBytesMax) }] };
  });
}

/**
 * Reports each change to a client that has subscribed to the file, until `signal` aborts. A
 * directory that is moved or removed concerns the files that were in it.
 */
export class Subscriptions {
  readonly #server: McpServer;
  readonly #desk: () => Desk;
  /** Undefined: the transport knows who has subscribed to what. */
  readonly #uris: Set<string> | undefined;
  #following: AbortController | undefined;

  constructor(server: McpServer, desk: () => Desk, era: "legacy" | "modern") {
    this.#server = server;
    this.#desk = desk;
    this.#uris = era === "legacy" ? new Set() : undefined;
    if (era === "modern") return;
    server.server.setRequestHandler("resources/subscribe", async ({ params }) => {
      this.#uris!.add(params.uri);
      this.follow();
      return {};
    });
    server.server.setRequestHandler("resources/unsubscribe", async ({ params }) => {
      this.#uris!.delete(params.uri);
      if (this.#uris!.size === 0) this.stop();
      return {};
    });
  }

  /** Follows the tree again if that has failed, and somebody may have subscribed. */
  resume(): void {
    if (this.#uris === undefined || this.#uris.size > 0) this.follow();
  }

  follow(): void {
    if (this.#following !== undefined) return;
    const { signal } = (this.#following = new AbortController());
    void this.#follow(signal).catch(() => this.stop());
  }

  stop(): void {
    this.#following?.abort();
    this.#following = undefined;
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const change of (await this.#desk().files()).changes({ signal }))
      for (const uri of this.#concerned(change))
        // The client may not be connected yet, or not any more.
        await this.#server.server.sendResourceUpdated({ uri }).catch(() => undefined);
  }

  #concerned({ path, from }: Change): string[] {
    const changed = [path, ...(from === undefined ? [] : [from])].map(uriOf);
    if (this.#uris === undefined) return changed;
    const isBelow = (uri: string, above: string): boolean =>
      uri === above || uri.startsWith(above === scheme ? above : `${above}/`);
    return [...this.#uris].filter((uri) => changed.some((each) => isBelow(uri, each)));
  }
}
