// The parts of a store in a database. Each has a number, which begins the keys of its rows.
import { makeId } from "../format/id.ts";
import type { Ports } from "../ports/ports.ts";
import { holdfastError } from "../errors.ts";
import type { Database } from "./connection/database.ts";
import { findSchemaVersion } from "./schema/migrations.ts";

/** The kinds of parts, named like the folders of a store. `ground` has no name. */
export type PgPartKind = "ground" | "events" | "handoff" | "objects";

export interface PgPart {
  readonly p: number;
  /** The id, which never changes. */
  readonly id: string;
  /** Such as "/shop/events/main": unique in the database. */
  readonly path: string;
}

export interface WantedPart {
  readonly store: string;
  readonly room: PgPartKind;
  readonly name: string;
  /**
   * A statement that creates the rows of every part of this kind, from the row `made (p)`. Default:
   * none.
   */
  readonly rows?: string | undefined;
  /** Default true. */
  readonly create?: boolean | undefined;
  /** The id that an existing part must have. With it, nothing is created. Default: any. */
  readonly id?: string | undefined;
}

/**
 * Opens a part, and creates it if it does not exist. Throws NOT_A_STORE if it must not be created.
 */
export async function openPart(
  database: Database,
  { clock, random }: Pick<Ports, "clock" | "random">,
  { store, room, name, rows = "select p from made", create = true, id }: WantedPart,
): Promise<PgPart> {
  const path = `/${store}/${room}${name === "" ? "" : `/${name}`}`;
  const find = async (): Promise<{ p: number; id: string } | undefined> => {
    const statement = "select p, id from hf_part where store = $1 and room = $2 and name = $3";
    return (await database.query<{ p: number; id: string }>(statement, [store, room, name]))[0];
  };
  const known = await find();
  const { shown } = database.location;
  if (known !== undefined && id !== undefined && known.id !== id) {
    const message = `${shown}: ${path} has the id ${known.id}, not ${id}.`;
    throw holdfastError("WRONG_STORE", message, { path: shown, expected: id, found: known.id });
  }
  if (known !== undefined) return { ...known, path };
  if (!create || id !== undefined) {
    throw holdfastError("NOT_A_STORE", `${shown}: there is no ${path} in this database.`, { path: shown });
  }
  // One statement, so that a part either has its rows or does not exist.
  await database.query(
    `with made as (
       insert into hf_part (store, room, name, id) values ($1, $2, $3, $4) on conflict do nothing returning p)
     ${rows}`,
    [store, room, name, makeId(clock.wallMs(), random.bytes(16))],
  );
  const made = await find();
  if (made === undefined) throw holdfastError("CORRUPT", `${path} is gone.`, { path: database.location.shown });
  return { ...made, path };
}

/** Lists the names of the parts of one kind; none without a schema. */
export async function findParts(database: Database, store: string, room: PgPartKind): Promise<string[]> {
  if ((await findSchemaVersion(database)).version === 0) return [];
  const rows = await database.query<{ name: string }>(
    "select name from hf_part where store = $1 and room = $2 order by name",
    [store, room],
  );
  return rows.map(({ name }) => name);
}
