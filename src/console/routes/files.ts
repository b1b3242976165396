// The routes of the files: the tree one directory at a time, one file with its locks, changes,
// search, sessions, and given-up work.
import type { FileInfo } from "../../files/index.ts";
import { pageOf } from "../http/query.ts";
import { RequestError } from "../http/request-error.ts";
import type { DownloadRoute, Route } from "./route.ts";

/** Larger files are downloaded, not shown. */
const shownBytesMax = 64 * 1024;
const messagesMax = 50;
const archivesMax = 100;

export const files: Route = async (query, { watched }) => {
  const tree = await watched.findTree();
  if (tree === undefined) return { entries: [], changes: 0 };
  const [skip, limit] = [query.count("skip", 0), query.limit(100)];
  const problems: string[] = [];
  const listed = tree.list(query.find("under"), { onProblem: ({ path, what }) => problems.push(`${path}: ${what}`) });
  const { items, hasMore } = await pageOf(after(listed, skip), limit);
  return { entries: items, problems: problems.slice(0, limit), ...(hasMore ? { next: skip + items.length } : {}) };
};

export const file: Route = async (query, { watched, sampler }) => {
  const tree = await watched.tree();
  const path = query.get("path");
  const info = await tree.stat(path);
  if (info === undefined) throw new RequestError(404, "NO_SUCH_FILE", "There is nothing at this path any more.");
  const { locks } = await sampler.recent();
  const concerns = (locked: string): boolean =>
    locked === "" || locked === path || path.startsWith(`${locked}/`) || locked.startsWith(`${path}/`);
  const isShown = !info.directory && info.size <= shownBytesMax;
  return {
    info,
    locks: locks.filter((lock) => concerns(lock.path)),
    text: isShown ? textOf(await tree.read(path)) : undefined,
  };
};

export const fileContent: DownloadRoute = async (query, { watched }) => {
  const tree = await watched.tree();
  const path = query.get("path");
  const bytes = await tree.read(path);
  const body = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes;
  };
  return { name: path.slice(path.lastIndexOf("/") + 1), size: bytes.length, body: body() };
};

export const changes: Route = async (query, { watched }) => {
  const tree = await watched.findTree();
  const last = (await tree?.lastChange()) ?? 0;
  const upTo = Math.min(last, query.count("before", last + 1) - 1);
  const from = Math.max(0, upTo - query.limit());
  const found = (await tree?.history({ after: from, before: upTo + 1, limit: upTo - from })) ?? [];
  return { last, changes: found, ...(from > 0 ? { next: from + 1 } : {}) };
};

export const search: Route = async (query, { watched }) => ({
  hits: await (await watched.tree()).search(query.get("text"), { under: query.find("under"), limit: query.limit() }),
});

export const filesWork: Route = async (_query, { watched }) => {
  const tree = await watched.findTree();
  return { givenUp: (await tree?.givenUp()) ?? [], sessions: ((await tree?.sessions()) ?? []).slice(0, 1000) };
};

export const session: Route = async (query, { watched }) => {
  const tree = await watched.tree();
  const id = query.get("id");
  // Opening a session that does not exist would create it.
  if (!(await tree.sessions()).includes(id))
    throw new RequestError(404, "NO_SUCH_SESSION", "There is no session of this id.");
  const found = await tree.session(id);
  const messages = await found.messages();
  const { items } = await pageOf(found.archives(), archivesMax);
  return {
    id,
    messages: messages.slice(-messagesMax),
    archives: items.map(({ number, user, summary, damaged, messages: archived }) => ({
      number,
      user,
      summary,
      damaged,
      messages: archived.length,
    })),
  };
};

async function* after(entries: AsyncIterable<FileInfo>, skip: number): AsyncGenerator<FileInfo> {
  let skipped = 0;
  for await (const entry of entries) if (skipped++ >= skip) yield entry;
}

/** Decodes UTF-8; undefined for other bytes. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
