// Shared by the tests of sealed indexes: a log, its indexes on a disk, and a comparison of all
// answers with the log.
import { onTestFinished } from "vitest";
import { expect } from "vitest";
import type { IndexedEvent } from "../../../src/events/index/keys/key-hash.ts";
import { SealedIndexes } from "../../../src/events/index/sealed-indexes.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import type { Items } from "../../../src/events/model/query.ts";
import type { Place } from "../../sites/disks.ts";
import { listOf, type ModelLog } from "./model-log.ts";

export function indexesOf(
  { staging, directory }: { readonly staging: Staging; readonly directory: string },
  log: ModelLog,
  {
    logId = "log-1",
    count = log.segments.length,
    memoryBytesMax,
  }: { readonly logId?: string; readonly count?: number; readonly memoryBytesMax?: number } = {},
): SealedIndexes {
  const indexes = new SealedIndexes({
    staging,
    directory: `${directory}/index`,
    logId,
    scan: log.scan,
    memoryBytesMax,
  });
  for (const segment of log.segments.slice(0, count)) indexes.add(segment);
  onTestFinished(() => indexes.close());
  return indexes;
}

/** Small segments; some tags are in one of them only, others in all. */
export function segmentsOf(count: number): IndexedEvent[][][] {
  return Array.from({ length: count }, (_, number) => [
    [{ type: "Opened", tags: [`only ${number}`, "all"], id: `id ${number}` }],
    [],
    [
      { type: "Sold", tags: ["all", number % 2 === 0 ? "even" : "odd"] },
      { type: "Sold", tags: [`only ${number}`] },
    ],
  ]);
}

const questions: readonly Items[] = [
  [{ types: [], tags: [] }],
  [{ types: ["Sold"], tags: [] }],
  [{ types: ["Sold"], tags: ["even"] }],
  [{ types: ["Opened", "Sold"], tags: ["all"] }],
  [
    { types: [], tags: ["odd"] },
    { types: ["Opened"], tags: ["only 1"] },
  ],
  [{ types: [], tags: ["only 0", "all"] }],
  [{ types: [], tags: ["never"] }],
];

/** Everything that can be asked, compared with the log. */
export async function expectRightAnswers(
  indexes: SealedIndexes,
  log: ModelLog,
  count = log.segments.length,
): Promise<void> {
  const last = log.segments[count - 1]?.last ?? 0;
  for (const items of questions)
    for (const backwards of [false, true])
      for (const range of [
        { after: 0, upTo: last },
        { after: Math.floor(last / 3), upTo: Math.ceil((last * 2) / 3) },
      ])
        expect(await listOf(indexes.candidates(items, range, backwards))).toEqual(log.find(items, range, backwards));
  for (let position = 1; position <= last; position++)
    expect(await indexes.getLine(position)).toEqual(log.events[position - 1]?.line);
  for (const id of ["id 0", "id 3", "never"])
    expect(await listOf(indexes.idCandidates(id))).toEqual(log.findId(id).filter((position) => position <= last));
}

export async function namesIn({ staging, directory }: Place): Promise<string[]> {
  return (await staging.disk.list(`${directory}/index`)).sort();
}
