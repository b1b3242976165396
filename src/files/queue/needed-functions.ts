// NeededFunctions: which user functions the work of a tree needs, and which working processes have
// them. A process that lacks one of them would index less than the others, so it leaves the work to
// them.
import type { Ground } from "../../durable/liveness/ground.ts";
import { ensureDirectory, unlinkIfThere, listIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FunctionName } from "./user-functions.ts";

const remedy =
  "Open the tree with it in some process; or, if it is no longer used, forget it: `rebuildIndex({ forgetFunctions: true })`, or `holdfast files reindex --forget-functions`.";

export class NeededFunctions {
  readonly #ground: Ground;
  readonly #staging: Staging;
  /** Directory with one file for each needed function. */
  readonly #directory: string;
  /** A file `<holder>.<name>` for each function of each working process. */
  readonly #able: string;

  /** `directory` is that of the tree's metadata. */
  constructor(ground: Ground, directory: string) {
    this.#ground = ground;
    this.#staging = ground.staging;
    this.#directory = `${directory}/functions`;
    this.#able = `${directory}/able`;
  }

  /** Registers functions as needed, in a process that has them. */
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
    return await listIfThere(this.#staging.disk, this.#directory);
  }

  /** Removes the needed functions that are not in `own`: no process uses them from now on. */
  async forgetOthersThan(own: readonly string[]): Promise<void> {
    for (const name of await this.list())
      if (!own.includes(name)) await unlinkIfThere(this.#staging.disk, `${this.#directory}/${name}`);
  }

  /**
   * Registers that this process works with these functions. Returns a function that ends the
   * registration.
   */
  async show(names: readonly FunctionName[]): Promise<() => Promise<void>> {
    const { disk } = this.#staging;
    if (names.length === 0) return async () => undefined;
    const { id } = (await this.#ground.session()).holder;
    const paths = names.map((name) => `${this.#able}/${id}.${name}`);
    await ensureDirectory(disk, this.#able);
    await this.#forgetDead();
    for (const path of paths)
      await disk.createFile(path, Buffer.from(""), { sync: false }).catch((error: unknown) => {
        // This process runs the work a second time.
        if (!hasErrno(error, "EEXIST")) throw error;
      });
    return async () => {
      for (const path of paths) await unlinkIfThere(disk, path);
    };
  }

  /** Throws INDEX_FAILED if the work needs a function that `own` lacks and no living process works with. */
  async mustBeThere(own: readonly string[]): Promise<void> {
    const missing = (await this.list()).filter((name) => !own.includes(name));
    if (missing.length === 0) return;
    const shown = await listIfThere(this.#staging.disk, this.#able);
    for (const name of missing) {
      const holders = shown.filter((each) => each.endsWith(`.${name}`)).map((each) => each.slice(0, -name.length - 1));
      if (!(await this.#hasLiving(holders))) throw noneHas(this.#directory, name);
    }
  }

  /**
   * Throws INDEX_FAILED if the work needs a function that `own` lacks: its result would be less
   * complete than the existing one.
   */
  async mustBeOwn(own: readonly string[]): Promise<void> {
    const missing = (await this.list()).find((name) => !own.includes(name));
    if (missing !== undefined) throw lacking(this.#directory, missing);
  }

  /** Removes the registrations of killed processes. */
  async #forgetDead(): Promise<void> {
    for (const shown of await listIfThere(this.#staging.disk, this.#able)) {
      const holder = shown.slice(0, Math.max(0, shown.indexOf(".")));
      if (holder !== "" && (await this.#ground.stateOf(holder, { once: true })) === "dead")
        await unlinkIfThere(this.#staging.disk, `${this.#able}/${shown}`);
    }
  }

  async #hasLiving(holders: readonly string[]): Promise<boolean> {
    for (const holder of holders) if ((await this.#ground.stateOf(holder, { once: true })) !== "dead") return true;
    return false;
  }
}

function lacking(path: string, name: string): Error {
  const message = `The index is made with the function \`${name}\`, and this process does not have it: its index would be less complete than the existing one. ${remedy}`;
  return holdfastError("INDEX_FAILED", message, { path });
}

function noneHas(path: string, name: string): Error {
  const message = `The index is made with the function \`${name}\`, and no running process has it. ${remedy}`;
  return holdfastError("INDEX_FAILED", message, { path });
}
