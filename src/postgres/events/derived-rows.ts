// Derived data of a log as rows. One transaction commits the documents together with the checkpoint
// that makes them count.
import type { DerivedData } from "../../events/log/derived-data.ts";
import { hashOf, type Document, type DocumentName } from "../../events/projection/document.ts";
import type { Documents, DocumentsWriter } from "../../events/projection/documents.ts";
import { documentKind } from "../../events/projection/document.ts";
import { holdfastError } from "../../errors.ts";
import { findSlotNumber, slotName } from "../../format/name.ts";
import { Generations, type GenerationsState, type GenerationStore } from "../../part/generations.ts";
import type { LeasedWork } from "../../part/progress/checkpoints.ts";
import type { Database } from "../connection/database.ts";
import type { PgGround } from "../liveness/pg-ground.ts";
import type { PgPart } from "../parts.ts";

export class DerivedRows implements DerivedData {
  readonly #ground: PgGround;
  readonly #part: PgPart;

  constructor(ground: PgGround, part: PgPart) {
    this.#ground = ground;
    this.#part = part;
  }

  async listConsumers(): Promise<string[]> {
    return (await this.#listChains("consumers")).filter((name) => !name.includes("/"));
  }

  async listReadModels(): Promise<string[]> {
    const names = (await this.#listChains("projections")).map((name) => name.split("/"));
    return names.flatMap(([name = "", chain, ...more]) => (chain === "catalog" && more.length === 0 ? [name] : []));
  }

  /** Opening a chain writes nothing. */
  async readGenerations(name: string): Promise<GenerationsState> {
    return await (await this.openGenerations(name)).read();
  }

  async openGenerations(name: string): Promise<Generations> {
    const folder = `${this.#part.path}/${name}`;
    return await Generations.on(this.#ground, `${folder}/catalog`, this.#storeIn(folder), { keepsOlder: true });
  }

  documentsOf(path: string): Documents {
    return new DocumentRows(this.#ground.database, this.#part.p, path);
  }

  async readSnapshot(model: string, hash: string): Promise<Uint8Array> {
    const [row] = await this.#ground.database.query<{ record: string }>(
      "select record from hf_snapshot where p = $1 and model = $2 and hash = $3",
      [this.#part.p, model, hash],
    );
    const path = this.#ground.location;
    if (row === undefined) throw holdfastError("NO_SUCH_FILE", `${path}: there is no snapshot of ${model}.`, { path });
    return Buffer.from(row.record);
  }

  async keepSnapshot(model: string, hash: string, bytes: Uint8Array): Promise<void> {
    await this.#ground.database.query(
      `insert into hf_snapshot (p, model, hash, record) values ($1, $2, $3, $4)
         on conflict (p, model, hash) do update set record = excluded.record`,
      [this.#part.p, model, hash, Buffer.from(bytes).toString()],
    );
  }

  async #listChains(kind: string): Promise<string[]> {
    const { database, part } = this.#ground;
    const folder = `${this.#part.path}/${kind}`;
    // A range of keys: "0" is the character after "/".
    const rows = await database.query<{ name: string }>(
      "select name from hf_chain where p = $1 and name >= $2 and name < $3 order by name",
      [part, `${folder}/`, `${folder}0`],
    );
    return rows.map(({ name }) => name.slice(folder.length + 1));
  }

  #storeIn(folder: string): GenerationStore {
    const { database, part } = this.#ground;
    const pathOf = (number: number): string => `${folder}/${slotName(number)}`;
    const prefix = `${folder}/`;
    return {
      pathOf,
      list: async () => {
        const rows = await database.query<{ name: string }>(
          "select name from hf_chain where p = $1 and name >= $2 and name < $3",
          [part, prefix, `${folder}0`],
        );
        const numbers = rows.map(({ name }) => findSlotNumber(name.slice(prefix.length).split("/")[0] ?? ""));
        return [...new Set(numbers.filter((number) => number !== undefined))];
      },
      remove: async (number) => {
        await database.query("delete from hf_document where p = $1 and generation = $2", [
          this.#part.p,
          pathOf(number),
        ]);
        await database.query("delete from hf_chain where p = $1 and name = $2", [part, `${pathOf(number)}/checkpoint`]);
      },
    };
  }
}

class DocumentRows implements Documents {
  readonly #database: Database;
  readonly #part: number;
  readonly #generation: string;

  constructor(database: Database, part: number, generation: string) {
    this.#database = database;
    this.#part = part;
    this.#generation = generation;
  }

  async find(hash: string): Promise<Document | undefined> {
    const [row] = await this.#database.query<{ document: unknown }>(
      "select document from hf_document where p = $1 and generation = $2 and hash = $3",
      [this.#part, this.#generation, hash],
    );
    return row && documentKind.decode(row.document);
  }

  async read({ hash, fence, position }: DocumentName): Promise<Document | undefined> {
    const [row] = await this.#database.query<{ document: unknown }>(
      `select document from hf_document
         where p = $1 and generation = $2 and hash = $3 and fence = $4 and position = $5`,
      [this.#part, this.#generation, hash, fence, position],
    );
    return row && documentKind.decode(row.document);
  }

  async list(): Promise<DocumentName[]> {
    const rows = await this.#database.query<Omit<DocumentName, "isDeletion">>(
      "select hash, fence, position from hf_document where p = $1 and generation = $2",
      [this.#part, this.#generation],
    );
    return rows.map((row) => ({ ...row, isDeletion: false }));
  }

  openWriter(leased: LeasedWork): DocumentsWriter {
    let isDone = true;
    return {
      find: (key) => this.find(hashOf(key)),
      commit: async (documents, position) => {
        isDone = false;
        const saved = await leased.save(position, { beside: this.#statements(documents, leased.fence) });
        isDone = true;
        return saved;
      },
      end: async () => {
        if (isDone) await leased.end();
      },
    };
  }

  /** Ordered by key, so that two transactions never deadlock. */
  #statements(documents: readonly Document[], fence: number): string[] {
    const literal = (text: string): string => this.#database.literal(text);
    const where = `p = ${this.#part} and generation = ${literal(this.#generation)}`;
    const sorted = documents.map((document) => ({ ...document, hash: hashOf(document.key) }));
    sorted.sort((one, other) => (one.hash < other.hash ? -1 : 1));
    const deleted = sorted.filter(({ state }) => state === undefined).map(({ hash }) => literal(hash));
    const rows = sorted
      .filter(({ state }) => state !== undefined)
      .map(({ hash, ...document }) => {
        const { key, position, state, tags, seen } = document;
        const text = literal(JSON.stringify({ key, position, state, tags, seen }));
        return `(${this.#part}, ${literal(this.#generation)}, ${literal(hash)}, ${fence}, ${position}, ${text})`;
      });
    return [
      ...(deleted.length === 0 ? [] : [`delete from hf_document where ${where} and hash in (${deleted.join(", ")})`]),
      ...(rows.length === 0
        ? []
        : [
            `insert into hf_document (p, generation, hash, fence, position, document) values ${rows.join(", ")}
               on conflict (p, generation, hash) do update
               set fence = excluded.fence, position = excluded.position, document = excluded.document`,
          ]),
    ];
  }
}
