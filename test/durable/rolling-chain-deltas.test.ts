// A rolling chain whose slots say only what changed.
import { describe, expect, it } from "vitest";
import { deltasMax, type DeltaKind } from "../../src/durable/chain/state-delta.ts";
import { objectOf, textOf } from "../../src/format/decoding.ts";
import { recordBytesMax } from "../../src/format/record.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { add, openList, type ListedIds } from "./listed-ids.ts";
import { makeRealPlace, places } from "../sites/disks.ts";

/** Ids are only added. */
const deltas: DeltaKind<ListedIds> = {
  isLarge: () => true,
  between: ({ ids }, made) => ({ more: made.ids.slice(ids.length).join(" ") }),
  apply: ({ ids }, delta) => ({ ids: [...ids, ...textOf(objectOf(delta).more).split(" ")] }),
};
const withDeltas = { deltas, slotsPerEpoch: 1000 };

describe.each(places)("deltas on %s", (_, make) => {
  it("a process that reads them from the start, or from anywhere, finds the state that was appended", async () => {
    const { staging, directory } = await make();
    const path = `${directory}/chain`;
    const writer = await openList(staging, path, withDeltas);
    const sleeper = await openList(staging, path, withDeltas);
    const ids: string[] = [];
    for (let index = 0; index < 2 * deltasMax + 10; index++) {
      ids.push(`a${index}`);
      await add(writer, `a${index}`);
      if (index % 37 === 0) expect((await sleeper.read()).state).toEqual({ ids });
    }
    expect((await (await openList(staging, path, withDeltas)).read()).state).toEqual({ ids });
    expect(await add(sleeper, "b")).toBe(ids.length + 1);
    expect((await writer.read()).state.ids.at(-1)).toBe("b");
  });

  it("no slot needs more slots before it than the limit", async () => {
    const { staging, directory } = await make();
    const path = `${directory}/chain`;
    const chain = await openList(staging, path, withDeltas);
    for (let index = 0; index < 2 * deltasMax + 3; index++) await add(chain, `a${index}`);
    const [epoch] = (await staging.disk.list(path)).filter((name) => name !== "epochs");
    const kinds: boolean[] = [];
    for (const name of (await staging.disk.list(`${path}/${epoch}`)).filter((each) => each !== "open").sort())
      kinds.push(
        Buffer.from(await staging.disk.readFile(`${path}/${epoch}/${name}`, recordBytesMax)).includes('"state"'),
      );
    expect(kinds.flatMap((isWhole, index) => (isWhole ? [index + 1] : []))).toEqual([deltasMax + 1, 2 * deltasMax + 2]);
  });
});

it("a chain that was made without deltas stays without, and an older build goes on with it", async () => {
  const { staging, directory } = await makeRealPlace();
  const path = `${directory}/chain`;
  const old = await openList(staging, path, { slotsPerEpoch: 2 });
  await add(old, "a");
  const chain = await openList(staging, path, { deltas, slotsPerEpoch: 2 });
  for (const id of ["b", "c", "d", "e"]) await add(chain, id);
  expect((await old.read()).state).toEqual({ ids: ["a", "b", "c", "d", "e"] });
});

it("an older build refuses a chain with deltas by name, before it writes anything", async () => {
  const { staging, directory } = await makeRealPlace();
  await add(await openList(staging, `${directory}/chain`, withDeltas), "a");
  await expect(openList(staging, `${directory}/chain`)).rejects.toMatchObject({ code: "NEWER_FORMAT" });
});

it("deltas never make a state that no record can hold: the next epoch has to begin with it", async () => {
  const { staging, directory } = await makeRealPlace();
  const options = { deltas, slotsPerEpoch: 100, check: () => undefined, sync: false };
  const chain = await openList(staging, `${directory}/chain`, options);
  const piece = "x".repeat(200_000);
  let count = 0;
  const fill = async (): Promise<void> => {
    for (; count < 60; count++) await chain.append(`${count}`, ({ ids }) => ({ ids: [...ids, `${count}${piece}`] }));
  };
  await expect(fill()).rejects.toSatisfy((error) => isHoldfastError(error, "TOO_LARGE"));
  expect(count).toBeGreaterThan(15);
  for (let index = 0; index < 100; index++) await chain.append(`s${index}`, (state) => ({ ids: [...state.ids, "s"] }));
  expect((await chain.read()).state.ids).toHaveLength(count + 100);
});
