// Copies all parts of a live store, in an order that leaves the copy as a crash could have left the store.
//
// Records that say "done" are copied before the effects: positions of consumers, then tickets and their ledger, then
// events, objects and files. So work that is done in the copy has its effects in the copy. Work that is not done there
// may have some effects already, as after a crash, and is done again.
import type { Ground } from "../durable/liveness/ground.ts";
import { isThere } from "../durable/publish/directory.ts";
import { StoreLayout } from "../durable/store/store-record.ts";
import { findNameOf } from "../format/name.ts";
import { openBox, type OpenedBox } from "../handoff/box/open-box.ts";
import { boxPart } from "../handoff/box/box-record.ts";
import { logPart } from "../events/log/format/log-record.ts";
import { objectsPart } from "../objects/bucket/objects-record.ts";
import { listParts } from "../part/location.ts";
import type { Store } from "../store.ts";
import { copyConsumers, copyLog } from "./parts/events.ts";
import { FilesCopy } from "./parts/files.ts";
import { BoxCopy } from "./parts/handoff.ts";
import { copyObjects } from "./parts/objects.ts";
import type { Copier } from "./write/copier.ts";

export interface StoreCopyOptions {
  readonly onPart: (part: string) => void;
  readonly signal: AbortSignal | undefined;
}

export async function copyStoreParts(
  copier: Copier,
  store: Store,
  ground: Ground,
  { onPart, signal }: StoreCopyOptions,
): Promise<void> {
  const { disk, ports } = copier;
  const layout = new StoreLayout(copier.store);
  const below = (path: string): string => path.slice(copier.store.length + 1);
  const [logs, boxes, objects] = [
    (await listParts(disk, logPart, copier.store)).map(below),
    (await listParts(disk, boxPart, copier.store)).map(below),
    (await listParts(disk, objectsPart, copier.store)).map(below),
  ];
  await using opened = new OpenedBoxes();
  const hasFiles = await isThere(disk, layout.files);
  const files = hasFiles ? new FilesCopy(copier, ground, await store.locks()) : undefined;
  const queues =
    files !== undefined && (await isThere(disk, `${copier.at(files.queue)}/box.json`)) ? [files.queue] : [];

  onPart("ground");
  await copier.copyGround(below(layout.ground));
  for (const part of [...logs, ...boxes, ...objects]) await copier.copyGround(`${part}/.holdfast`);
  for (const log of logs) await copyConsumers(copier, ground, log);

  const copies: [string, BoxCopy][] = [];
  for (const path of [...boxes, ...queues]) {
    const box = await opened.add(await openBox(ports, copier.at(path), { create: false, ground }));
    copies.push([path, new BoxCopy(copier, box, path)]);
  }
  for (const [, copy] of copies) await copy.begin();
  await files?.copySessions();
  for (const [path, copy] of copies) {
    onPart(path);
    await copy.copy();
  }
  for (const log of logs) {
    onPart(log);
    // Opening it repairs what a crash has left.
    const name = findNameOf(log.slice(log.lastIndexOf("/") + 1));
    if (name !== undefined) await (await store.events(name, { create: false })).head();
    await copyLog(copier, ground, log);
  }
  for (const path of objects) {
    onPart(path);
    await copyObjects(copier, ground, path);
  }
  if (files !== undefined) {
    onPart("files");
    await files.copy(signal);
  }
  await copier.copy(below(layout.record));
}

class OpenedBoxes implements AsyncDisposable {
  readonly #opened: OpenedBox[] = [];

  async add(opened: OpenedBox): Promise<OpenedBox["box"]> {
    this.#opened.push(opened);
    return opened.box;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { box, ownsGround } of this.#opened) {
      await box.leave(async () => undefined);
      if (ownsGround) await box.ground.close();
    }
  }
}
