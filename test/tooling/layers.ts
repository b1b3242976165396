// Which room may import which. Imports point down only; only the entry points bind the real ports.
import { posix } from "node:path";
import ts from "typescript";

/** Modules of Node that have no effect on anything outside of the process. */
const pure = ["node:path", "node:zlib", "node:crypto", "node:util", "node:buffer"];
const inProcess = [...pure, "node:events", "node:async_hooks", "node:diagnostics_channel"];
const streams = [...inProcess, "node:stream", "node:stream/promises", "node:stream/consumers", "node:stream/web"];

interface Layer {
  /** A folder or a file of src: the longest one that a path begins with is the one that counts. */
  readonly room: string;
  /** Rooms and files of src, beside the room itself. */
  readonly knows: readonly string[];
  /** What is not in src; "*" is everything. */
  readonly modules: readonly string[];
}

const base = ["errors.ts", "common.ts"];
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
const subpaths = ["durable", "locks", ...capabilities, "s3", "console"].map((room) => `${room}/index.ts`);

export const layers: readonly Layer[] = [
  { room: "errors.ts", knows: ["common.ts"], modules: [] },
  { room: "common.ts", knows: ["errors.ts"], modules: [] },
  { room: "ports", knows: base, modules: ["node:path", "node:util"] },
  { room: "ports/memory", knows: [...base, "ports"], modules: ["node:path", "node:util"] },
  { room: "ports/node", knows: [...base, "ports"], modules: ["node:*", "fs-native-extensions"] },
  { room: "format", knows: base, modules: pure },
  { room: "durable", knows: ground, modules: inProcess },
  { room: "durable/index.ts", knows: [...ground, "durable", ...binding], modules: inProcess },
  { room: "doctor", knows: [...ground, "durable"], modules: inProcess },
  { room: "doctor/index.ts", knows: [...ground, "durable", "doctor", ...binding], modules: inProcess },
  { room: "locks", knows: [...ground, "durable"], modules: inProcess },
  { room: "locks/index.ts", knows: [...belowParts, ...binding], modules: inProcess },
  { room: "part", knows: belowParts, modules: streams },
  ...capabilities.flatMap((room) => {
    const knows = room === "files" ? [...belowCapabilities, "handoff"] : belowCapabilities;
    const modules = [...streams, ...(ownModules[room] ?? [])];
    return [
      { room, knows, modules },
      { room: `${room}/index.ts`, knows: [...knows, room, ...binding], modules },
    ];
  }),
  ...["store.ts", "verify-store.ts", "index.ts"].map((room) => ({
    room,
    knows: [
      ...belowCapabilities,
      "doctor",
      "doctor/index.ts",
      ...capabilities,
      ...subpaths,
      "store.ts",
      "verify-store.ts",
      ...binding,
    ],
    modules: ["node:path", "node:util"],
  })),
  // A front imports only what a user can import, and touches a store through the library only.
  ...["cli", "console", "s3"].map((room) => ({
    room,
    knows: ["index.ts", ...subpaths, "format/known-options.ts", "format/prometheus-text.ts"],
    modules: ["*"],
  })),
  {
    room: "testing",
    knows: [...belowCapabilities, "doctor", ...capabilities, ...subpaths, "store.ts", "ports/node", "ports/memory"],
    modules: ["*"],
  },
];

/** Not even for those who may import every module. */
const throughLibrary = /^(node:)?fs(\/|$)|^fs-native-extensions$|^holdfast(\/|$)/;
const forbidden: Readonly<Record<string, RegExp>> = {
  cli: throughLibrary,
  console: throughLibrary,
  s3: throughLibrary,
  testing: /^holdfast(\/|$)/,
};

/** What is wrong with the imports of a file, given by its path below src: one line each. */
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
  const target = posix.join(posix.dirname(path), specifier);
  // The entry point of a room is a room of its own: what lies behind it does not import it.
  const room = layerOf(target)?.room;
  return [layer.room, ...layer.knows].some((each) => each === target || each === room);
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
