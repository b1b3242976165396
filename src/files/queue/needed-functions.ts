// Which user's functions the work of a tree needs, and which processes have them and work. A process without one of them
// would index with less than the others do, so it leaves the work to them.
import type { Ground } from "../../durable/liveness/ground.ts";
import { ensureDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FunctionName } from "./user-functions.ts";

const remedy =
  "Open the tree with it in some process; or, if it is not used any more, say so: `rebuildIndex({ forgetFunctions: true })`, or `holdfast files reindex --forget-functions`.";

export class NeededFunctions {
  readonly #ground: Ground;
  readonly #staging: Staging;
  /** A file for each name. */
  readonly #directory: string;
  /** A file `<holder>.<name>` for each process that works, and for each function that it has. */
  readonly #able: string;

  /** `directory`: of what belongs to the tree. */
  constructor(ground: Ground, directory: string) {
    this.#ground = ground;
    this.#staging = ground.staging;
    this.#directory = `${directory}/functions`;
    this.#able = `${directory}/able`;
  }

  /** Said by a process that has them. */
  async add(names: readonly FunctionName[]): Promise<void> {
    const known = await this.list();
    if (names.every((name) => known.includes(name))) return;
    await ensureDirectory(this.#staging.disk, this.#directory);
    for (const name of names) {
      const proof = Buffer.from(`${randomName(this.#staging.random.bytes(16))}\n`);
      await putIfAbsent(this.#staging, `${this.#directory}/${name}`, proof);
    }
  }

  async list(): Promise<string[]> {
    return await this.#names(this.#directory);
  }

  /** Those that the work needs and `own` lacks are not used any more: no process works with them from now on. */
  async forgetOthersThan(own: readonly string[]): Promise<void> {
    for (const name of await this.list())
      if (!own.includes(name)) await unlinkIfThere(this.#staging.disk, `${this.#directory}/${name}`);
  }

  /** Shows that this process works with these functions. Gives the way to end that. */
  async show(names: readonly FunctionName[]): Promise<() => Promise<void>> {
    const { disk } = this.#staging;
    if (names.length === 0) return async () => undefined;
    const { id } = (await this.#ground.session()).holder;
    const paths = names.map((name) => `${this.#able}/${id}.${name}`);
    await ensureDirectory(disk, this.#able);
    for (const path of paths)
      await disk.createFile(path, Buffer.from(""), { sync: false }).catch((error: unknown) => {
        // This process runs the work twice.
        if (!hasErrno(error, "EEXIST")) throw error;
      });
    return async () => {
      for (const path of paths) await unlinkIfThere(disk, path);
    };
  }

  /** INDEX_FAILED when the work needs a function that `own` lacks, and that no living process works with. */
  async mustBeThere(own: readonly string[]): Promise<void> {
    const missing = (await this.list()).filter((name) => !own.includes(name));
    if (missing.length === 0) return;
    const shown = await this.#names(this.#able);
    for (const name of missing) {
      const holders = shown.filter((each) => each.endsWith(`.${name}`)).map((each) => each.slice(0, -name.length - 1));
      if (!(await this.#hasLiving(holders))) throw noneHas(this.#directory, name);
    }
  }

  /** INDEX_FAILED when the work needs a function that `own` lacks: what it makes would be less than what is there. */
  async mustBeOwn(own: readonly string[]): Promise<void> {
    const missing = (await this.list()).find((name) => !own.includes(name));
    if (missing !== undefined) throw lacking(this.#directory, missing);
  }

  async #hasLiving(holders: readonly string[]): Promise<boolean> {
    for (const holder of holders) if ((await this.#ground.stateOf(holder, { once: true })) !== "dead") return true;
    return false;
  }

  async #names(directory: string): Promise<string[]> {
    try {
      return await this.#staging.disk.list(directory);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return [];
      throw error;
    }
  }
}

function lacking(path: string, name: string): Error {
  const message = `The index is made with the function \`${name}\`, and this process has none: what it would make is less than what is there. ${remedy}`;
  return holdfastError("INDEX_FAILED", message, { path });
}

function noneHas(path: string, name: string): Error {
  const message = `The index is made with the function \`${name}\`, and no process that has it works now. ${remedy}`;
  return holdfastError("INDEX_FAILED", message, { path });
}
