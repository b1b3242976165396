import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type TableRequest, type TableState, checkTable, tableDeltas } from "./request.ts";

const holder = "01kdz".padEnd(36, "0");

function requestOf(index: number, fence = 1): TableRequest {
  const claims = [{ path: `held/${index}`, mode: "exact" as const, shared: false }];
  const id = `${holder}.${String(index).padStart(26, "0")}`;
  return { id, holder, claims, fence, sinceMs: 1, change: `c${fence}` };
}

const kind = tableDeltas("local");

/** As another process reads it: through JSON. */
function throughDisk(before: TableState, made: TableState): TableState {
  return kind.apply(before, JSON.parse(JSON.stringify(kind.between(before, made))));
}

it("a table and the delta to any other table make that table, in its order", () => {
  const index = fc.nat(12);
  fc.assert(
    fc.property(fc.uniqueArray(index), fc.uniqueArray(index), fc.func(fc.boolean()), (had, has, isKept) => {
      const before = had.map((each) => requestOf(each));
      const known = new Map(before.map((request) => [request.id, request]));
      const requests = has.map((each) => {
        const same = known.get(requestOf(each).id);
        return same !== undefined && isKept(each) ? same : requestOf(each, 2);
      });
      expect(throughDisk({ requests: before, redos: [] }, { requests, redos: [] })).toEqual({ requests, redos: [] });
    }),
  );
});

it("the delta of one new request among many is that request alone", () => {
  const requests = Array.from({ length: 1500 }, (_, index) => requestOf(index));
  const more = [...requests.filter((_, index) => index !== 7), requestOf(1500)];
  expect(kind.between({ requests, redos: [] }, { requests: more, redos: [] })).toEqual({
    requests: { drop: [requestOf(7).id], put: [requestOf(1500)] },
    redos: { drop: [], put: [] },
  });
});

it("an append to a table with many requests reads none of those that it leaves as they are", () => {
  let reads = 0;
  const counting = (request: TableRequest): TableRequest =>
    new Proxy(request, { get: (target, key) => (reads++, Reflect.get(target, key) as unknown) });
  const requests = Array.from({ length: 1500 }, (_, index) => counting(requestOf(index)));
  const more = [...requests.slice(0, 7), ...requests.slice(8), requestOf(1500)];
  const [before, made] = [
    { requests, redos: [] },
    { requests: more, redos: [] },
  ];
  checkTable(made, before);
  kind.between(before, made);
  expect(reads).toBeLessThan(10);
});

it("a request that could not be read back is refused before it is written", () => {
  const requests = [requestOf(1), { ...requestOf(2), holder: "../../precious" }];
  expect(() => checkTable({ requests, redos: [] }, { requests: requests.slice(0, 1), redos: [] })).toThrow(/holder/);
});

it("only a table with many requests is worth a delta, on a share one with more", () => {
  const tableOf = (length: number): TableState => ({
    requests: Array.from({ length }, (_, index) => requestOf(index)),
    redos: [],
  });
  expect([16, 17].map((length) => kind.isLarge(tableOf(length)))).toEqual([false, true]);
  expect([256, 257].map((length) => tableDeltas("network").isLarge(tableOf(length)))).toEqual([false, true]);
});
