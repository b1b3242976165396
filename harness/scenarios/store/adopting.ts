// Scenarios of adopting a lone part into a store: the whole part survives, whatever step the adopter dies at.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import { randomName } from "../../../src/format/id.ts";
import { adoptInto, createStore } from "../../../src/store.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, type Scenario } from "../../../src/testing/explorer/scenario.ts";

export const partDirectory = "/shop/sales";
const leaseMs = 1_000_000;

export interface AdoptingOptions {
  /** Adopts the part: the real function, or a known-wrong variant. */
  readonly adopt?: (ports: Ports) => Promise<unknown>;
}

/** The files of one holder: only their maker knows the names. */
const ownFile = /\/(holders|temp)\/./;

type Kind = "log" | "tree";

/** Makes a part with one file, complete enough for adopting. */
const setUp =
  (kind: Kind) =>
  async ({ disk, random, ...ports }: Ports): Promise<void> => {
    await disk.mkdir("/shop");
    await disk.mkdir(partDirectory);
    await (await Ground.open({ disk, random, ...ports }, `${partDirectory}/.holdfast`, { leaseMs })).close();
    await disk.createFile(`${partDirectory}/data`, Buffer.from("acknowledged"), { sync: true });
    const [path, record] =
      kind === "log"
        ? ["log.json", encodeRecord({ kind: "log", decode: (body) => body }, {})]
        : [".holdfast/names.json", namesOf(random.bytes(16))];
    await disk.createFile(`${partDirectory}/${path}`, record, { sync: true });
    for (const directory of ["/", "/shop", partDirectory, `${partDirectory}/.holdfast`])
      await disk.syncDirectory(directory);
  };

function namesOf(bytes: Uint8Array): Uint8Array {
  const kind = { kind: "names", decode: (body: unknown) => body };
  return encodeRecord(kind, { id: randomName(bytes), caseSensitive: true, root: ".." });
}

export function adoptingScenarios({ adopt = adoptShop }: AdoptingOptions = {}): Scenario[] {
  return (["log", "tree"] as const).map((kind) => ({
    name: `store: a lone ${kind} is adopted, and the power fails`,
    about: "The whole part is under one of its names, and the next adoption completes the work.",
    size: "medium",
    setup: setUp(kind),
    actors: { ada: actor({ run: async ({ ports, note }) => note("adopted", await adopt(ports)) }) },
    // An adopting process checks no file of a dead holder or of itself.
    isUnseen: (_operation, path) => ownFile.test(path),
    // This includes kills: afterwards all unsynced data may be present.
    powerCuts: true,
    audit: async (ports) => {
      const place = kind === "log" ? `${partDirectory}/events/main` : `${partDirectory}/files`;
      // Adopts as a person would: until the store says that there is nothing to adopt.
      await adoptInto(ports, partDirectory).catch(() => undefined);
      await (await createStore(ports, partDirectory, { leaseMs, create: false })).close();
      const data = await ports.disk.readFile(`${place}/data`, 100).catch(() => Buffer.of());
      mustHold(Buffer.from(data).toString() === "acknowledged", `a file of the part is not in ${place}`);
      const record = kind === "log" ? `${place}/log.json` : `${partDirectory}/ground/names.json`;
      mustHold(await ports.disk.canOpen(record), `${record} is missing`);
    },
  }));
}

const adoptShop = (ports: Ports): Promise<unknown> => adoptInto(ports, partDirectory);
