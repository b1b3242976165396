// Many processes put to one key at the same time: what comes of it with Holdfast, and with the way
// of the known gateways.
import { openObjects } from "../../src/objects/index.ts";
import { startChild } from "../durable/child.ts";
import { textOf } from "./object-sites.ts";

const objects = new URL("../../dist/objects/index.js", import.meta.url).href;

export interface Crowd {
  readonly processes: number;
  readonly putsEach: number;
}

export interface Acknowledged {
  readonly versionId: string;
  readonly text: string;
}

/** Each process says what was acknowledged to it. */
const putter = `
  const { openObjects } = await import(args[0]);
  const store = await openObjects(args[1]);
  const bucket = await store.bucket("photos");
  say("ready");
  await told.next();
  for (let count = 0; count < Number(args[2]); count++) {
    const text = process.pid + "-" + count + " " + "x".repeat(1000);
    const { versionId } = await bucket.put("hot", text);
    say(JSON.stringify({ versionId, text }));
  }
  await told.next();
  await store.close();
  process.exit(0);`;

/** Each line that it is told is a round: how many writers of its own try the same conditional put. */
const rival = `
  const { openObjects } = await import(args[0]);
  const store = await openObjects(args[1]);
  const bucket = await store.bucket("photos");
  say("ready");
  // No two bodies are equal: an ETag would not tell them apart.
  let round = 0;
  for await (const line of told) {
    const { key, condition, writers } = JSON.parse(line);
    const put = async (text) => {
      try {
        await bucket.put(key, text, condition);
        return 1;
      } catch (error) {
        if (error.code !== "PRECONDITION_FAILED") throw error;
        return 0;
      }
    };
    const won = await Promise.all(Array.from({ length: writers }, (_, index) => put(process.pid + "-" + index + "-" + round)));
    round++;
    say(String(won.reduce((sum, each) => sum + each, 0)));
  }
  await store.close();
  process.exit(0);`;

/** Archives what is current under its own name, then overwrites it. */
const archiver = `
  const { readFileSync, writeFileSync, renameSync } = await import("node:fs");
  const directory = args[1];
  say("ready");
  await told.next();
  for (let count = 0; count < Number(args[2]); count++) {
    const id = process.pid + "-" + count;
    const before = readFileSync(directory + "/current", "utf8");
    writeFileSync(directory + "/versions/" + before, before);
    writeFileSync(directory + "/" + id, id);
    renameSync(directory + "/" + id, directory + "/current");
    say(id);
  }
  await told.next();
  process.exit(0);`;

async function crowd(program: string, directory: string, { processes, putsEach }: Crowd): Promise<string[]> {
  const children = Array.from({ length: processes }, () => startChild(program, objects, directory, String(putsEach)));
  for (const child of children) await child.hear();
  for (const child of children) child.tell("go");
  const said = await Promise.all(
    children.map(async (child) => {
      const lines: string[] = [];
      for (let count = 0; count < putsEach; count++) lines.push(await child.hear());
      return lines;
    }),
  );
  await Promise.all(children.map((child) => child.end()));
  return said.flat();
}

export async function putAll(directory: string, size: Crowd): Promise<Acknowledged[]> {
  return (await crowd(putter, directory, size)).map((line) => JSON.parse(line) as Acknowledged);
}

export interface Rivalry extends Crowd {
  readonly rounds: number;
}

/** How many writers won each round of a conditional put: first to be the first, then to replace the same object. */
export async function countWinners(
  directory: string,
  { processes, putsEach: writers, rounds }: Rivalry,
): Promise<{ readonly first: number[]; readonly replaced: number[] }> {
  await using store = await openObjects(directory);
  const bucket = await store.bucket("photos");
  const children = Array.from({ length: processes }, () => startChild(rival, objects, directory));
  for (const child of children) await child.hear();
  const play = async (key: string, condition: object): Promise<number> => {
    for (const child of children) child.tell(JSON.stringify({ key, condition, writers }));
    const won = await Promise.all(children.map((child) => child.hear()));
    return won.reduce((sum, each) => sum + Number(each), 0);
  };
  const first: number[] = [];
  const replaced: number[] = [];
  for (let round = 0; round < rounds; round++) {
    first.push(await play(`round ${round}`, { ifNoneMatch: "*" }));
    replaced.push(await play(`round ${round}`, { ifMatch: (await bucket.head(`round ${round}`)).etag }));
  }
  await Promise.all(children.map((child) => child.end()));
  return { first, replaced };
}

export async function archiveAll(directory: string, size: Crowd): Promise<string[]> {
  return await crowd(archiver, directory, size);
}

/** The versions of the key as they can be read, by id, in the order of their commits. */
export async function readAll(directory: string): Promise<Map<string, string>> {
  await using store = await openObjects(directory);
  const bucket = await store.bucket("photos");
  const found = new Map<string, string>();
  for await (const { versionId } of bucket.versions({ key: "hot" }))
    found.set(versionId, await textOf(bucket, "hot", versionId));
  return found;
}
