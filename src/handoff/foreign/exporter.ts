// Export: writes tickets as files into a plain folder, all files first and done files last, for
// programs that do not know Holdfast.
//
// Each file is written under a hidden name with the ticket's id, then linked to its own name. The
// hidden names stay until the ticket is committed: a process that exports the ticket again after a
// crash recognizes by them which files are already in the folder. If an earlier hand-over still has
// a name, the export waits: a file that the receiver has not taken is never replaced. If a process
// crashes between the done file and the commit, and the receiver has taken the files, they are
// handed over again.
import type { Body } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { isId, randomName } from "../../format/id.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { findIfThere } from "../../ports/disk-error.ts";
import { writeBody } from "../../part/body.ts";
import type { Box } from "../box/box.ts";
import type { Delivery } from "../model/delivery.ts";
import { findTicket } from "../operate/find.ts";
import { doneFilesOf } from "./done-files.ts";
import type { ForeignFolder } from "./folder.ts";
import { isSameFile, linkInto } from "../../durable/publish/foreign-file.ts";
import type { ExportRule } from "../model/foreign-rule.ts";

const tempPrefix = ".holdfast-";
const tempPattern = /^\.holdfast-([0-9a-z]{36})-/;

export class Exporter {
  readonly #box: Box;
  readonly #folder: ForeignFolder;
  readonly #rule: ExportRule;

  constructor(box: Box, folder: ForeignFolder, rule: ExportRule) {
    this.#box = box;
    this.#folder = folder;
    this.#rule = rule;
  }

  /** Hands over one ticket and commits it. Throws RESOURCE_BUSY while a name is taken; the caller retries later. */
  async export(delivery: Delivery): Promise<void> {
    const { disk } = this.#folder;
    const { id, key, files, createdAt } = delivery;
    const done = doneFilesOf(files, this.#rule, { id, key, createdAt });
    const temps = await this.#tempsOf(id);
    for (const { name } of [...files, ...done])
      if (!(await this.#isFree(name)) && (await this.#findOwn(temps, name)) === undefined)
        throw taken(this.#pathOf(name));
    for (const { name } of files) await this.#place(delivery, temps, name, delivery.stream(name));
    for (const { name, text } of done) await this.#place(delivery, temps, name, text);
    await delivery.ack({ exported: files.map(({ name }) => name) });
    // Only after the commit: until then the hidden names identify this ticket's files.
    for (const temp of temps) await unlinkIfThere(disk, temp).catch(() => undefined);
  }

  /** Removes hidden names of finished tickets, left by a process that died after a commit. */
  async removeLeftovers(): Promise<void> {
    const { disk, path } = this.#folder;
    for (const name of await disk.list(path)) {
      const id = tempPattern.exec(name)?.[1];
      if (id === undefined || !isId(id)) continue;
      const state = (await findTicket(this.#box, id))?.state;
      if (state === "archive" || state === "error") await unlinkIfThere(disk, `${path}/${name}`);
    }
  }

  async #place(delivery: Delivery, temps: string[], name: string, body: Body): Promise<void> {
    const { disk, path } = this.#folder;
    if ((await this.#findOwn(temps, name)) !== undefined) return;
    const { signal } = delivery;
    const temp = `${path}/${tempPrefix}${delivery.id}-${randomName(this.#box.ground.ports.random.bytes(16))}`;
    temps.push(temp);
    await writeBody(disk, temp, body, { signal });
    // If this process was judged dead, the process that has the ticket now does the rest.
    signal.throwIfAborted();
    if (await linkInto(disk, temp, this.#pathOf(name))) return;
    await unlinkIfThere(disk, temp);
    throw taken(this.#pathOf(name));
  }

  async #isFree(name: string): Promise<boolean> {
    return (await findIfThere(this.#folder.disk.look(this.#pathOf(name)))) === undefined;
  }

  async #findOwn(temps: readonly string[], name: string): Promise<string | undefined> {
    for (const temp of temps) if (await isSameFile(this.#folder.disk, temp, this.#pathOf(name))) return temp;
    return undefined;
  }

  async #tempsOf(id: string): Promise<string[]> {
    const { disk, path } = this.#folder;
    const names = (await disk.list(path)).filter((name) => name.startsWith(`${tempPrefix}${id}-`));
    return names.map((name) => `${path}/${name}`);
  }

  #pathOf(name: string): string {
    return `${this.#folder.path}/${name}`;
  }
}

function taken(path: string): Error {
  const message = `${path} still exists: the receiver has not taken it. The next hand-over of that name waits until it does.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}
