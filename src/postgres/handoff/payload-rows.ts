// Files as rows: pieces of 1 MiB, committed before the ticket or the ledger entry that refers to
// them. Until then their owner is staged, and the pieces of a dead process are swept.
import { createHash } from "node:crypto";
import type { Body } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { ManifestFile } from "../../handoff/model/manifest.ts";
import type { WrittenFile } from "../../handoff/model/publication.ts";
import { chunksOf, untilAborted } from "../../part/body.ts";
import type { PgBox } from "./pg-box.ts";

const pieceBytes = 1024 * 1024;

/** Pieces that no ticket and no ledger entry refers to yet. */
export class StagedPieces {
  readonly owner: string;
  readonly #box: PgBox;
  readonly #p: number;
  #staging: Promise<void> | undefined;

  /** `p`: the part that owns the rows. Default: the part of the box. */
  constructor(box: PgBox, owner: string, p: number = box.p) {
    this.#box = box;
    this.owner = owner;
    this.#p = p;
  }

  get isEmpty(): boolean {
    return this.#staging === undefined;
  }

  /** Writes a file. Throws LOCK_LOST if this process was judged dead. */
  async write(name: string, body: Body, signal?: AbortSignal): Promise<WrittenFile> {
    await (this.#staging ??= this.#stage());
    const hash = createHash("sha256");
    let [size, part, gathered] = [0, 0, [] as Uint8Array[]];
    let gatheredBytes = 0;
    const flush = async (): Promise<void> => {
      if (gatheredBytes === 0) return;
      await this.#put(name, part++, Buffer.concat(gathered));
      [gathered, gatheredBytes] = [[], 0];
    };
    for await (const chunk of untilAborted(chunksOf(body), signal)) {
      hash.update(chunk);
      size += chunk.length;
      for (let start = 0; start < chunk.length;) {
        // Copied, because the source may reuse its buffer.
        const some = new Uint8Array(chunk.subarray(start, start + pieceBytes - gatheredBytes));
        gathered.push(some);
        gatheredBytes += some.length;
        start += some.length;
        if (gatheredBytes === pieceBytes) await flush();
      }
    }
    await flush();
    return { name, size, sha256: hash.digest("hex") };
  }

  /** Removes pieces that nothing refers to. If that fails, they are removed with the session. */
  async discard(): Promise<void> {
    if (this.isEmpty) return;
    await this.#staging?.catch(() => undefined);
    await this.#box.database
      .query(
        `with s as (delete from hf_staged where p = $1 and owner = $2 returning owner)
         delete from hf_payload y using s where y.p = $1 and y.owner = s.owner`,
        [this.#p, this.owner],
      )
      .catch(() => undefined);
  }

  async #stage(): Promise<void> {
    const { ground, database } = this.#box;
    const { holder } = await ground.session();
    const rows = await database.query(
      `insert into hf_staged (p, owner, ground, holder)
         select $1, $2, $3, $4 from hf_holder where p = $3 and id = $4 and dead is null
         on conflict (p, owner) do update set holder = excluded.holder returning owner`,
      [this.#p, this.owner, ground.part, holder.id],
    );
    if (rows.length === 0) throw await this.#swept();
  }

  async #put(name: string, part: number, body: Buffer): Promise<void> {
    const rows = await this.#box.database.query(
      `with s as (select 1 from hf_staged where p = $1 and owner = $2 for share)
       insert into hf_payload (p, owner, name, part, body) select $1, $2, $3, $4, $5 from s
         on conflict (p, owner, name, part) do update set body = excluded.body returning part`,
      [this.#p, this.owner, name, part, body],
    );
    if (rows.length === 0) throw await this.#swept();
  }

  async #swept(): Promise<Error> {
    (await this.#box.ground.session()).reportDead();
    return judgedDead(this.#box);
  }
}

/** Yields the bytes of one file, piece by piece. */
export async function* readPieces(
  { database, p }: PgBox,
  owner: string,
  { name }: Pick<ManifestFile, "name">,
): AsyncGenerator<Uint8Array> {
  for (let part = 0; ; part++) {
    const [row] = await database.query<{ body: Buffer }>(
      "select body from hf_payload where p = $1 and owner = $2 and name = $3 and part = $4",
      [p, owner, name, part],
    );
    if (row === undefined) return;
    yield row.body;
    if (row.body.length < pieceBytes) return;
  }
}

export function judgedDead({ directory: path }: PgBox): Error {
  const message = `${path}: other processes judged this one dead while it published. Nothing was published. Publish it again.`;
  return holdfastError("LOCK_LOST", message, { path });
}
