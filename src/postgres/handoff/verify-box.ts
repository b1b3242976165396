// Verifies a box in a database: every ticket with its files, the outputs of the ledger, and the
// references between tables. Other processes continue meanwhile.
import type { VerifyOptions, VerifyReport } from "../../common.ts";
import { isHoldfastError, messageOf } from "../../errors.ts";
import { checkOptions } from "../../format/known-options.ts";
import { checkFiles } from "../../handoff/deliver/file-check.ts";
import type { OutputFile } from "../../handoff/model/handoff.ts";
import { Findings } from "../../part/findings.ts";
import { readPieces } from "./payload-rows.ts";
import type { PgBox } from "./pg-box.ts";
import { readFile } from "./settler.ts";
import { claimColumns, manifestOf, type ClaimRow } from "./ticket-rows.ts";

const pageSize = 64;
const remedy = "Restore the database from a backup.";
const never = new AbortController().signal;

/**
 * Checks of one statement each: `find` finds the damage, and `repair` repairs it, if that is
 * possible.
 */
const checks: readonly { readonly what: string; readonly find: string; readonly repair?: string }[] = [
  {
    what: "its lane is not ready when its first ticket is, or is ready without one",
    find: `select l.grp as id from hf_lane l where l.p = $1 and l.ready is distinct from (
        select case when t.state = 'i' then coalesce(t.due, t.entered) end from hf_ticket t
        where t.p = $1 and t.grp = l.grp and t.place is not null and t.state in ('i', 'p', 'k') order by t.place limit 1)`,
    repair: "select hf_lanes_1($1, $2)",
  },
  {
    what: "it waits in a group and has no place there, so it would never be delivered",
    find: "select id from hf_ticket t where t.p = $1 and t.state = 'i' and t.grp is not null and t.place is null",
    repair: "select hf_enter_1($1, $2)",
  },
  {
    what: "it was published with a key that another ticket has, or none",
    find: `select t.id from hf_ticket t where t.p = $1 and t.keyed and t.state <> 'a' and not exists (
        select 1 from hf_key k where k.p = $1 and k.key = t.key and k.id = t.id)`,
  },
  {
    what: "it is claimed and names no holder",
    find: "select id from hf_ticket t where t.p = $1 and t.state = 'p' and (t.holder is null or t.serial is null)",
  },
];

const leftovers = `select distinct y.owner as id from hf_payload y where y.p = $1
  and not exists (select 1 from hf_staged s where s.p = $1 and s.owner = y.owner)
  and not exists (select 1 from hf_ticket t where t.p = $1 and t.id = y.owner)
  and not exists (select 1 from hf_done d where d.p = $1 and d.owner = y.owner)`;

/**
 * Verifies the box, and reports damage. Rejects for other failures, such as a missing permission or
 * an abort.
 */
export async function verifyBox(box: PgBox, options: VerifyOptions): Promise<VerifyReport> {
  checkOptions("verify", options, { repair: true, onProgress: true, signal: true });
  const { database, p } = box;
  const findings = new Findings(remedy);
  const [row] = await database.query<{ total: number }>(
    `select (select count(*) from hf_ticket where p = $1) + (select count(*) from hf_done where p = $1) as total`,
    [p],
  );
  const total = row?.total ?? 0;
  let checked = 0;
  for (const step of [checkTickets(box, findings, options), checkOutputs(box, findings, options)])
    for await (const count of step) {
      checked += count;
      options.onProgress?.(Math.min(checked, total), total);
    }
  for (const { what, find, repair } of checks) {
    const ids = (await database.query<{ id: string }>(find, [p])).map(({ id }) => id);
    const isRepaired = options.repair === true && repair !== undefined && ids.length > 0;
    if (isRepaired) await database.query(repair, [p, ids]);
    const how = repair === undefined ? remedy : "Run verify with --repair.";
    for (const id of ids) findings.damage(placeOf(box, id), what, how, { repaired: isRepaired });
  }
  for (const { id } of await database.query<{ id: string }>(leftovers, [p]))
    findings.leftover(placeOf(box, id), "the pieces of a file that nothing has", "None: they only take space.");
  return { ok: !findings.hasDamage, checked, problems: findings.problems };
}

/** Checks all tickets. Yields the number of rows of each page. */
async function* checkTickets(box: PgBox, findings: Findings, { signal }: VerifyOptions): AsyncGenerator<number> {
  const text = `select ${claimColumns} from hf_ticket t where t.p = $1 and t.id > $2 order by t.id limit ${pageSize}`;
  for (let last = ""; ;) {
    signal?.throwIfAborted();
    const rows = await box.database.query<ClaimRow & Record<string, unknown>>(text, [box.p, last]);
    for (const row of rows) {
      const fault = await findFaultOf(box, row, signal);
      if (fault !== undefined && (await isThere(box, row.id))) findings.damage(placeOf(box, row.id), fault);
    }
    if (rows.length > 0) yield rows.length;
    if (rows.length < pageSize) return;
    last = rows.at(-1)?.id ?? "";
  }
}

async function findFaultOf(box: PgBox, row: ClaimRow, signal: AbortSignal = never): Promise<string | undefined> {
  try {
    const manifest = manifestOf(row);
    await checkFiles(manifest, (file) => readFile(box, { row, manifest }, file), signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TypeError || isHoldfastError(error, "PAYLOAD_MISMATCH")) return messageOf(error);
    throw error;
  }
}

async function isThere({ database, p }: PgBox, id: string): Promise<boolean> {
  return (await database.query("select id from hf_ticket where p = $1 and id = $2", [p, id])).length > 0;
}

interface DoneRow extends Record<string, unknown> {
  readonly id: string;
  readonly key: string;
  readonly replays: number;
  readonly owner: string | null;
  readonly outputs: readonly OutputFile[];
}

async function* checkOutputs(
  box: PgBox,
  findings: Findings,
  { signal = never }: VerifyOptions,
): AsyncGenerator<number> {
  const text = `select id, key, replays, owner, outputs from hf_done
    where p = $1 and (key, replays) > ($2, $3::int) order by key, replays limit ${pageSize}`;
  for (let last: Pick<DoneRow, "key" | "replays"> = { key: "", replays: -1 }; ;) {
    signal.throwIfAborted();
    const rows = await box.database.query<DoneRow>(text, [box.p, last.key, last.replays]);
    for (const { id, owner, outputs } of rows) {
      if (owner === null) continue;
      try {
        await checkFiles({ id, files: outputs }, (file) => readPieces(box, owner, file), signal);
      } catch (error) {
        if (!isHoldfastError(error, "PAYLOAD_MISMATCH")) throw error;
        findings.damage(placeOf(box, id), `an output in the ledger: ${error.message}`);
      }
    }
    if (rows.length > 0) yield rows.length;
    if (rows.length < pageSize) return;
    last = rows.at(-1) ?? last;
  }
}

function placeOf({ directory }: PgBox, id: string): { readonly path: string } {
  return { path: `${directory} ${id}` };
}
