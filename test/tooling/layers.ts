// Which room may import which. Imports point down only; only the entry points bind the real ports.
import { posix } from "node:path";
import ts from "typescript";

/** Modules of Node that have no effect on anything outside of the process. */
const pure = ["node:path", "node:zlib", "node:crypto", "node:util", "node:buffer"];
const inProcess = [...pure, "node:events", "node:async_hooks", "node:diagnostics_channel"];
const streams = [...inProcess, "node:stream", "node:stream/promises", "node:stream/consumers", "node:stream/web"];

interface Layer {
  /**
   * A folder or a file, named by its path from src. A path belongs to the room with the longest name
   * that it begins with.
   */
  readonly room: string;
  /** The rooms and files that it may import, besides itself. */
  readonly knows: readonly string[];
  /** What is not in src; "*" is everything. */
  readonly modules: readonly string[];
}

const base = ["errors.ts", "common.ts", "telemetry"];
const ground = [...base, "ports", "format"];
const belowParts = [...ground, "durable", "locks"];
const belowCapabilities = [...belowParts, "part"];
const capabilities = ["events", "handoff", "objects", "files"];
/** Modules of other authors that one capability has for itself. */
const ownModules: Readonly<Record<string, readonly string[]>> = {
  handoff: ["picomatch"],
  files: ["@sqlite.org/sqlite-wasm"],
};
const binding = ["ports/node/ports.ts", "ports/node/location.ts", "ports/memory"];
/** The engine of a database, which the subpaths load on demand. */
const onPostgres = "postgres/by-location.ts";
const subpaths = ["durable", "locks", ...capabilities, "s3", "postgres", "console", "mcp"].map(
  (room) => `${room}/index.ts`,
);

export const layers: readonly Layer[] = [
  { room: "errors.ts", knows: ["common.ts"], modules: [] },
  { room: "common.ts", knows: ["errors.ts"], modules: [] },
  { room: "telemetry", knows: [], modules: ["node:async_hooks", "node:diagnostics_channel"] },
  { room: "ports", knows: base, modules: ["node:path", "node:util"] },
  { room: "ports/memory", knows: [...base, "ports"], modules: ["node:path", "node:util"] },
  { room: "ports/node", knows: [...base, "ports", "ports/memory"], modules: ["node:*", "fs-native-extensions"] },
  { room: "format", knows: base, modules: pure },
  { room: "durable", knows: ground, modules: inProcess },
  { room: "durable/index.ts", knows: [...ground, "durable", ...binding], modules: inProcess },
  { room: "doctor", knows: [...ground, "durable"], modules: inProcess },
  { room: "doctor/index.ts", knows: [...ground, "durable", "doctor", ...binding], modules: inProcess },
  { room: "locks", knows: [...ground, "durable"], modules: inProcess },
  { room: "locks/index.ts", knows: [...belowParts, ...binding, onPostgres], modules: inProcess },
  { room: "part", knows: belowParts, modules: streams },
  ...capabilities.flatMap((room) => {
    const knows = room === "files" ? [...belowCapabilities, "handoff"] : belowCapabilities;
    const modules = [...streams, ...(ownModules[room] ?? [])];
    return [
      { room, knows, modules },
      { room: `${room}/index.ts`, knows: [...knows, room, ...binding, onPostgres], modules },
    ];
  }),
  // The program of a thread binds its own disk.
  {
    room: "events/index-thread.ts",
    knows: ["events", "ports/node/ports.ts", "ports/node/thread-side.ts"],
    modules: [],
  },
  {
    room: "postgres",
    knows: [...belowCapabilities, ...capabilities],
    modules: [...streams, "node:module", "node:worker_threads", "pg"],
  },
  ...["postgres/index.ts", onPostgres].map((room) => ({
    room,
    knows: [...belowCapabilities, ...capabilities, "postgres", "ports/node"],
    modules: ["pg"],
  })),
  ...["store.ts", "verify-store.ts", "upgrade-store.ts", "copy-store.ts", "store-metrics.ts", "index.ts"].map(
    (room) => ({
      room,
      knows: [
        ...belowCapabilities,
        "doctor",
        "doctor/index.ts",
        ...capabilities,
        ...subpaths,
        "store.ts",
        "verify-store.ts",
        "upgrade-store.ts",
        "copy-store.ts",
        "store-metrics.ts",
        "backup",
        ...binding,
        "ports/node/clock.ts",
        onPostgres,
      ],
      modules: ["node:path", "node:util", "node:crypto"],
    }),
  ),
  // Knows how each part is stored, because it copies all of them.
  {
    room: "backup",
    knows: [
      ...belowCapabilities,
      ...capabilities,
      "store.ts",
      "format/database-location.ts",
      ...binding,
      "ports/node/clock.ts",
      "s3/signature/canonical-request.ts",
      "s3/signature/signing-key.ts",
      "s3/http/raw-target.ts",
    ],
    modules: [...pure],
  },
  // A front imports only what a user can import, and touches a store through the library only.
  ...["cli", "s3"].map((room) => ({
    room,
    knows: [
      "index.ts",
      ...subpaths,
      "format/known-options.ts",
      "format/prometheus-text.ts",
      "handoff/operate/box-metrics.ts",
      "format/database-location.ts",
      "telemetry",
    ],
    modules: ["*"],
  })),
  {
    room: "console",
    knows: ["index.ts", ...subpaths, "format/known-options.ts", "format/name.ts", "../dist/console/page.js"],
    modules: ["*"],
  },
  {
    room: "mcp",
    knows: ["index.ts", ...subpaths, "format/known-options.ts"],
    modules: [...streams, "@modelcontextprotocol/server", "@modelcontextprotocol/server/stdio", "zod"],
  },
  {
    room: "otel",
    knows: ["telemetry", "errors.ts", "format/known-options.ts", "format/version.ts", "ports/node/clock.ts"],
    modules: ["@opentelemetry/api", "node:diagnostics_channel"],
  },
  // Runs in a browser.
  { room: "console/page", knows: [], modules: ["preact", "preact/hooks"] },
  {
    room: "testing",
    knows: [...ground, "ports/memory"],
    modules: [...pure, "node:assert/strict", "node:timers/promises"],
  },
  {
    room: "../harness",
    knows: [
      ...belowCapabilities,
      "doctor",
      ...capabilities,
      ...subpaths,
      "store.ts",
      "ports/node",
      "ports/memory",
      "testing",
    ],
    modules: ["*"],
  },
];

/** Folders that know no engine: of their own room they import only each other. */
const engineFree = ["handoff/model/", "handoff/deliver/"];

/** Not even for those who may import every module. */
const throughLibrary = /^(node:)?fs(\/|$)|^fs-native-extensions$|^holdfast(\/|$)/;
const forbidden: Readonly<Record<string, RegExp>> = {
  cli: throughLibrary,
  console: throughLibrary,
  s3: throughLibrary,
  "../harness": /^holdfast(\/|$)/,
};

/** Returns one line for each forbidden import of a file, which is given by its path from src. */
export function findForbiddenImports(path: string, text: string): string[] {
  if (path.endsWith(".test.ts")) return [];
  const layer = layerOf(path);
  if (layer === undefined) return [`${path} is in no room that test/tooling/layers.ts knows.`];
  return importsOf(path, text)
    .filter((specifier) => !mayImport(layer, path, specifier))
    .map((specifier) => `${path} imports ${specifier}.`);
}

function mayImport(layer: Layer, path: string, specifier: string): boolean {
  if (!specifier.startsWith(".")) return mayUse(layer, specifier);
  const target = posix.join(posix.dirname(path), specifier).replace(/^\.\.\/src\//, "");
  if (isEngineFree(path) && target.startsWith(`${layer.room}/`) && !isEngineFree(target)) return false;
  // The entry point of a room is a room of its own: what lies behind it does not import it.
  const room = layerOf(target)?.room;
  return [layer.room, ...layer.knows].some((each) => each === target || each === room);
}

function isEngineFree(path: string): boolean {
  return engineFree.some((folder) => path.startsWith(folder));
}

function mayUse({ room, modules }: Layer, specifier: string): boolean {
  if (forbidden[room]?.test(specifier)) return false;
  return modules.some(
    (each) => each === "*" || each === specifier || (each.endsWith(":*") && specifier.startsWith(each.slice(0, -1))),
  );
}

function layerOf(path: string): Layer | undefined {
  const all = layers.filter(({ room }) => path === room || path.startsWith(`${room}/`));
  return all.reduce<Layer | undefined>(
    (longest, each) => (each.room.length > (longest?.room.length ?? 0) ? each : longest),
    undefined,
  );
}

/** Also those of types, and those that happen when they are called. */
function importsOf(path: string, text: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    const from =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
        ? node.moduleSpecifier
        : ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)
          ? node.argument.literal
          : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
            ? node.arguments[0]
            : undefined;
    if (from !== undefined) found.push(ts.isStringLiteral(from) ? from.text : `by an expression: ${from.getText()}`);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true));
  return found;
}
