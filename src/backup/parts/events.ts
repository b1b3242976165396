// Copies an event log: the lines that counted at one moment.
import type { Ground } from "../../durable/liveness/ground.ts";
import { findLog } from "../../events/log/format/log-record.ts";
import { readHeader } from "../../events/log/format/segment.ts";
import { decodeTip, hexOf, type Tip } from "../../events/log/format/tip.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { objectOf } from "../../format/decoding.ts";
import { slotName } from "../../format/name.ts";
import { decodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Copier } from "../write/copier.ts";

/** A reader may see half of a write. The next read sees all of it. */
const looksMax = 20;
const headBytesMax = 4_096;
const headKind = { kind: "head", decode: objectOf };

/**
 * Copies how far each consumer is. Call it before anything else is copied: what a handler did before its position was
 * saved is then in the copy.
 */
export async function copyConsumers(copier: Copier, ground: Ground, log: string): Promise<void> {
  for (const name of await copier.names(`${log}/consumers`))
    await copier.copyChain(ground, `${log}/consumers/${name}`, "checkpoint");
}

/** Copies the lines up to the published end, and that end. Later lines are not in the copy, not even half of one. */
export async function copyLog(copier: Copier, ground: Ground, log: string): Promise<void> {
  const { disk } = copier;
  const directory = copier.at(log);
  await copier.copy(`${log}/log.json`);
  await copier.copy(`${log}/gate.json`);
  const record = await findLog(disk, directory);
  if (record === undefined) return;
  const tip = record.mode === "local" ? await copyHead(copier, log) : await copyTenures(copier, ground, log);
  for (let end = tip; end !== undefined && end.segment > 0;) {
    const { id, after } = await readHeader(disk, directory, end.segment);
    const path = `${log}/segments/${slotName(end.segment)}.ndjson`;
    // The same stamp means the same bytes: published lines never change.
    const stamp = `${id} ${end.length} ${hexOf(end.crc)}`;
    if (!(await copier.copy(path, { length: end.length, stamp })))
      throw holdfastError("CORRUPT", `${path} is missing: verify the log.`, { path: copier.at(path) });
    end = after;
  }
  copier.directory(`${log}/segments`);
}

async function copyHead(copier: Copier, log: string): Promise<Tip | undefined> {
  const path = copier.at(`${log}/head`);
  for (let looks = 1; ; looks++) {
    try {
      const bytes = await copier.disk.readFile(path, headBytesMax);
      const { tip } = decodeRecord(headKind, bytes.subarray(0, bytes.indexOf(10) + 1), path);
      await copier.writer.put(`${log}/head`, bytes);
      return decodeTip(tip);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return undefined;
      if (looks >= looksMax || !isHoldfastError(error, "CORRUPT")) throw error;
    }
  }
}

async function copyTenures(copier: Copier, ground: Ground, log: string): Promise<Tip | undefined> {
  const state = await copier.copyChain(ground, `${log}/tenures`, "tenures");
  return state === undefined ? undefined : decodeTip(objectOf(state).tip);
}
