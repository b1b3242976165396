// A trace that crosses two real processes through the store, with the real SDK of OpenTelemetry in both.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { makeScratch } from "../sites/scratch.ts";

interface Span {
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly id: string;
  readonly trace: string;
  readonly parent?: string;
  readonly links: readonly string[];
}

function run(
  what: string,
  directory: string,
): { readonly find: (name: string) => Span; readonly all: readonly Span[] } {
  const program = new URL("traced-process.mjs", import.meta.url).pathname;
  const all = JSON.parse(execFileSync(process.execPath, [program, what, directory], { encoding: "utf8" })) as Span[];
  const find = (name: string): Span => {
    const found = all.filter((span) => span.name === name);
    if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} spans are named ${name}.`);
    return found[0];
  };
  return { find, all };
}

test("a publish and an append in one process are linked to the handlers of another", () => {
  const directory = `${makeScratch()}/store`;
  const producer = run("publish", directory);
  const [checkout, publish, append] = ["checkout", "publish orders", "events.append main"].map(producer.find);
  expect([publish?.parent, append?.parent]).toEqual([checkout?.id, checkout?.id]);
  expect(publish).toMatchObject({
    kind: 3,
    attributes: {
      "messaging.system": "holdfast",
      "messaging.operation.type": "send",
      "messaging.destination.name": "orders",
      "holdfast.key": "order-1",
    },
  });
  expect(append?.attributes).toMatchObject({ "db.system.name": "holdfast", "holdfast.count": 2 });

  const consumer = run("consume", directory);
  const [handled, packing, mailed, mailing] = ["handle orders", "packing", "handle main", "mailing"].map(consumer.find);
  expect(handled).toMatchObject({
    kind: 4,
    links: [publish?.id],
    attributes: {
      "messaging.operation.type": "process",
      "messaging.message.id": publish?.attributes["messaging.message.id"],
    },
  });
  // Its own trace: neither that of the producer, nor that in which the consumer was started.
  expect(handled?.parent).toBeUndefined();
  expect([packing?.parent, packing?.trace]).toEqual([handled?.id, handled?.trace]);
  expect(consumer.all.filter(({ name }) => name === "events.head main").map(({ parent }) => parent)).toContain(packing?.id); // prettier-ignore
  expect(mailed).toMatchObject({ links: [append?.id, append?.id], attributes: { "messaging.consumer.group.name": "mail" } }); // prettier-ignore
  expect(mailing?.parent).toBe(mailed?.id);
});
