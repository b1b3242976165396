// The methods of a tree of files that are traced operations.
import type { OperationDetails } from "../telemetry/operation.ts";
import type { TracedMethods } from "../telemetry/trace.ts";
import type { FileTree } from "./model/file-tree.ts";

const ofPath = {
  about: ([path]: readonly [path: string, ...unknown[]]): OperationDetails => ({ path }),
};

export const tracedFileMethods: TracedMethods<FileTree & { readonly root: string }> = {
  part: "files",
  location: ({ root }) => root,
  methods: {
    read: ofPath,
    readText: ofPath,
    readStamped: ofPath,
    readTextStamped: ofPath,
    stat: ofPath,
    list: { about: ([under]) => ({ path: under }), iterates: true },
    write: ofPath,
    update: ofPath,
    updateText: ofPath,
    add: ofPath,
    remove: ofPath,
    move: { about: ([from, to]) => ({ path: from, to }) },
    changes: { about: ([options]) => ({ path: options?.under }), iterates: true },
    history: {},
    locks: "untraced",
    work: "untraced",
    lastChange: "untraced",
    givenUp: "untraced",
    sessions: "untraced",
    search: { about: ([, options]) => ({ path: options?.under }) },
    settled: { about: ([options]) => ({ path: options?.under }) },
    rebuildIndex: {},
    session: { about: ([id]) => ({ id }) },
    verify: {},
    stats: {},
    close: {},
  },
};
