// The damage table of a tree: every kind of record on the disk, every kind of damage, and what each call does then.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect } from "vitest";
import { IndexedFiles, type IndexedFilesOptions } from "../../src/files/indexed-files.ts";
import type { FileTree } from "../../src/files/index.ts";
import { openBox } from "../../src/handoff/box/open-box.ts";
import { BoxHandoff } from "../../src/handoff/handoff.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { codeOf } from "./file-sites.ts";

/** How a record is recognised by its path below the folder of the tree, and what a damaged one costs. */
export interface RecordOfTree {
  readonly pattern: RegExp;
  /** Which of those that match; the first one by default, the last one with -1. */
  readonly which?: -1;
  /** "derived": nothing but work. "change": the change has no path. "session": its messages. "queue": a ticket. */
  readonly kind: "derived" | "change" | "session" | "queue";
}

export const records: Readonly<Record<string, RecordOfTree>> = {
  "a change": { pattern: /changes\/0+\/0+2$/, kind: "change" },
  "the checkpoint of the log worker": { pattern: /indexed\/0.*\/0/, which: -1, kind: "derived" },
  "the epoch of the log worker": { pattern: /indexed\/epochs\//, kind: "derived" },
  "the record of the index": { pattern: /index\.json$/, kind: "derived" },
  "a document": { pattern: /documents\/..\//, kind: "derived" },
  "an outcome": { pattern: /outcomes\//, which: -1, kind: "derived" },
  "the record of the snapshot": { pattern: /snapshot\.json$/, kind: "derived" },
  "the snapshot": { pattern: /sqlite$/, kind: "derived" },
  "the catalog of snapshots": { pattern: /catalog\/0.*\/0/, which: -1, kind: "derived" },
  "the version of a summary": { pattern: /sidecars\/.*\/0.*\/0/, which: -1, kind: "derived" },
  "the record of the queue": { pattern: /box\.json$/, kind: "derived" },
  "a ticket that waits": { pattern: /queue\/incoming\//, kind: "queue" },
  "a ticket that is done": { pattern: /queue\/archive\//, kind: "queue" },
  "an archived message": { pattern: /sessions\/s\/messages\/0+1$/, kind: "session" },
  "an open message": { pattern: /sessions\/s\/messages\/0+3$/, kind: "session" },
  "the newest message": { pattern: /sessions\/t\/messages\//, which: -1, kind: "session" },
  "an archive": { pattern: /sessions\/u\/archives\//, kind: "session" },
};

export type Damage = "one flipped bit" | "half of it" | "an empty file" | "a directory" | "a newer format" | "nothing";

export const damages: Readonly<Record<Damage, (path: string) => void>> = {
  "one flipped bit": (path) => {
    const bytes = readFileSync(path);
    bytes[bytes.length >> 1]! ^= 0x10;
    writeFileSync(path, bytes);
  },
  "half of it": (path) => truncateSync(path, readFileSync(path).length >> 1),
  "an empty file": (path) => truncateSync(path, 0),
  "a directory": (path) => (unlinkSync(path), mkdirSync(path)),
  "a newer format": (path) => {
    const [, body] = /^(.*),"crc":"[0-9a-f]+"\}\n?$/s.exec(readFileSync(path, "latin1")) ?? [];
    // A snapshot is no record.
    if (body === undefined) return truncateSync(path, 100);
    const newer = body.replace(/"format":\d+/, '"format":99');
    writeFileSync(path, `${newer},"crc":"${checksumOf(newer)}"}\n`);
  },
  nothing: (path) => unlinkSync(path),
};

const options: IndexedFilesOptions = {
  graceMs: 20,
  summarize: async (_, entries) => ({ abstract: entries.join(), overview: entries.join() }),
  sessions: { extract: async ({ session, number }) => [{ path: `memories/${session}-${number}.md`, text: "memory" }] },
};

async function open(root: string, given: IndexedFilesOptions): Promise<IndexedFiles> {
  return await IndexedFiles.open(await openTree(await openNodePorts(root), root), given);
}

/** A closed tree with a record of every kind; to be copied. */
export async function makeTree(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const files = await open(root, options);
  for (const name of ["1", "2", "3"]) await files.write(`d/${name}.md`, `wolf ${name}`);
  for (const name of ["s", "t", "u"]) {
    const session = await files.session(name);
    for (const content of ["one", "two"]) await session.append({ role: "user", content });
    await session.commit();
    for (const content of ["three", "four"]) await session.append({ role: "user", content });
  }
  await files.settled();
  await files.rebuildIndex();
  await files.close();
  const waiting = await open(root, { ...options, work: false });
  await waiting.write("d/4.md", "wolf 4");
  const { changes: change } = await waiting.stats();
  await waiting.close();
  // As an older build does for each change.
  const queue = new BoxHandoff(await openBox(await openNodePorts(root), `${root}/.holdfast/files/queue`));
  await queue.publish({ task: "index" }, { key: `index/${change}`, meta: { task: "index", change } });
  await queue.close();
  return root;
}

async function openDamaged(tree: string, wanted: readonly string[], damage: Damage): Promise<string> {
  const root = makeScratch();
  cpSync(tree, root, { recursive: true });
  const paths = readdirSync(join(root, ".holdfast/files"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .sort();
  for (const name of wanted) {
    const { pattern, which = 0 } = records[name]!;
    const path = paths.filter((each) => pattern.test(each)).at(which);
    expect([name, path]).toEqual([name, expect.any(String)]);
    damages[damage](join(root, path!));
  }
  return root;
}

async function listed(files: FileTree): Promise<string[]> {
  const paths: string[] = [];
  for await (const { path } of files.list("d")) paths.push(path);
  return paths;
}

async function found(files: FileTree, text: string): Promise<string[]> {
  return (await files.search(text, { limit: 50 })).map(({ path }) => path).sort();
}

async function changesOf(files: FileTree): Promise<number[]> {
  const numbers: number[] = [];
  const { changes: last } = await files.stats();
  for await (const { number } of files.changes({ after: 0 })) {
    numbers.push(number);
    if (number === last) break;
  }
  return numbers;
}

/** What can be read of a session, archived and open; a lost entry is "lost". */
async function textOf(files: FileTree, name: string): Promise<string> {
  const session = await files.session(name);
  const archives: string[] = [];
  const shown = (messages: readonly { role: string; content: string }[]): string =>
    messages.map(({ role, content }) => (role === "holdfast:lost" ? "lost" : content)).join(" ");
  for await (const { messages } of session.archives()) archives.push(shown(messages));
  return `${archives.join(", ")} | ${shown(await session.messages())}`;
}

/** What must hold of a tree in which one of each of these records is damaged in the same way. */
export async function checkDamaged(tree: string, wanted: readonly string[], damage: Damage): Promise<void> {
  const root = await openDamaged(tree, wanted, damage);
  const has = (name: string): boolean => wanted.includes(name);
  const isLost = (name: string): boolean => has(name) && damage !== "nothing";
  // The files are not blocked by anything.
  const files = await open(root, options);
  expect(await files.readText("d/1.md")).toBe("wolf 1");
  await files.write("new.md", "lynx");
  expect(await listed(files)).toEqual(expect.arrayContaining(["d/1.md", "d/2.md", "d/3.md", "d/4.md"]));
  await files.settled();
  // Nor is the search, and every number of the log has its change.
  expect(await found(files, "wolf")).toEqual(["d/1.md", "d/2.md", "d/3.md", "d/4.md"]);
  expect(await found(files, "lynx")).toEqual(["new.md"]);
  const numbers = await changesOf(files);
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  // What is readable of a session can be read, and it goes on.
  const lost = (name: string, text: string): string => (has(name) ? "lost" : text);
  const s = `${lost("an archived message", "one")} two | ${lost("an open message", "three")} four`;
  const t = `one two | three${has("the newest message") ? (damage === "nothing" ? "" : " lost") : " four"}`;
  const u = has("an archive") ? ` | one two three four` : "one two | three four";
  const asRead = async (from: FileTree): Promise<string[]> => [
    await textOf(from, "s"),
    await textOf(from, "t"),
    (await textOf(from, "u")).trim(),
  ];
  expect(await asRead(files)).toEqual([s, t, u.trim()]);
  for (const name of ["s", "t", "u"]) await (await files.session(name)).append({ role: "user", content: "five" });
  // Verify names what is lost.
  const before = await files.verify();
  const isNamed = (pattern: RegExp): boolean =>
    before.problems.some(({ path }) => pattern.test(path.replaceAll("\\", "/")));
  for (const name of wanted) {
    const { kind, pattern } = records[name]!;
    const leavesTrace = damage !== "nothing" || name === "a change" || /archived|open/.test(name);
    if ((kind === "change" || kind === "session") && leavesTrace)
      expect([name, isNamed(pattern)]).toEqual([name, true]);
  }
  if (wanted.every((name) => records[name]!.kind === "derived")) expect(before.ok).toBe(true);
  if (isLost("a change")) expect(before.ok).toBe(false);
  // A repair makes it whole.
  expect(await files.verify({ repair: true })).toMatchObject({ ok: true });
  await files.settled();
  expect(await files.verify()).toMatchObject({ ok: true });
  await files.close();
  const next = await open(root, options);
  expect(await found(next, "wolf")).toEqual(["d/1.md", "d/2.md", "d/3.md", "d/4.md"]);
  expect(await asRead(next)).toEqual([`${s} five`, `${t} five`, `${u.trim()} five`]);
  for (const name of ["s", "t", "u"]) expect(await (await next.session(name)).commit()).toBeDefined();
  await next.settled();
  expect(await next.verify()).toMatchObject({ ok: true });
  await next.close();
}

/** What a newer release has written is refused by name; files can be read and written meanwhile, and nothing is changed. */
export async function checkNewer(tree: string, name: string): Promise<void> {
  const root = await openDamaged(tree, [name], "a newer format");
  const files = await open(root, options);
  expect(await files.readText("d/1.md")).toBe("wolf 1");
  await files.write("new.md", "lynx");
  expect(await listed(files)).toEqual(expect.arrayContaining(["d/1.md", "d/2.md", "d/3.md", "d/4.md"]));
  expect(["nothing failed", "NEWER_FORMAT"]).toContain(await codeOf(files.search("wolf")));
  const { problems } = await files.verify({ repair: true });
  const { kind, pattern } = records[name]!;
  // A worker has moved the ticket to the dead letters by then.
  if (kind === "change" || kind === "session")
    expect(problems.filter(({ path, repaired }) => pattern.test(path) && !repaired)).toHaveLength(1);
  await files.close();
}

export function removeTree(root: string): void {
  rmSync(root, { recursive: true, force: true });
}
