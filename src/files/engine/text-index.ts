// The index that is built in: full text by SQLite FTS5 in the memory of this process, vectors beside it.
import type { BindingSpec, Database, SqlValue, Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import type { DerivedIndex, SearchHit } from "../model/derived-index.ts";
import { excerptOf } from "./excerpt.ts";
import { matchExpression } from "./query.ts";
import { loadSqlite } from "./sqlite.ts";
import { Vectors } from "./vectors.ts";

/** Texts lie in `texts`, under the same number as their file. A rename touches no text. */
const schema = `
  CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, change INTEGER NOT NULL, vector BLOB);
  CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = 'unicode61 remove_diacritics 2');`;
/** "/" is followed by "0", so this is the path itself and all below it. Binary order, as SQLite compares. */
const isUnder = "(path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0'))";
/** Of each text that is found, so much is looked at for an excerpt. */
const excerptedLength = 128 * 1024;
/** Of the two orders, by words and by vectors, for one that counts both (reciprocal rank fusion). */
const rankOffset = 60;
/** How many more are looked at in each order than are asked for. */
const depth = 4;

export interface IndexedFile {
  readonly path: string;
  readonly stamp: string;
  /** The change that the text was extracted for. */
  readonly change: number;
}

export interface IndexedText extends IndexedFile {
  readonly text: string;
  readonly vector?: readonly number[] | undefined;
}

type Hit = SearchHit & { readonly stamp: string };

/** All work is done at once: between two calls there is no half of a change. */
export class TextIndex implements DerivedIndex {
  readonly #sqlite: Sqlite3Static;
  readonly #database: Database;
  readonly #vectors = new Vectors();

  private constructor(sqlite: Sqlite3Static, database: Database) {
    this.#sqlite = sqlite;
    this.#database = database;
  }

  /** An empty one, or one that `bytes`, which `toBytes` gave, were made of. */
  static async open(bytes?: Uint8Array): Promise<TextIndex> {
    const sqlite = await loadSqlite();
    const index = new TextIndex(sqlite, new sqlite.oo1.DB(":memory:"));
    try {
      if (bytes === undefined) index.#database.exec(schema);
      else index.#load(bytes);
    } catch (error) {
      index.#database.close();
      throw error;
    }
    return index;
  }

  get count(): number {
    return this.#number("SELECT count(*) FROM files");
  }

  async upsert(
    path: string,
    text: string,
    { vector, stamp = "" }: { vector?: readonly number[] | undefined; stamp?: string | undefined } = {},
  ): Promise<void> {
    this.put([{ path, text, vector, stamp, change: 0 }]);
  }

  /** Together. Of two texts of one path that of the higher change counts, in whichever order they come. */
  put(files: readonly IndexedText[]): void {
    this.#database.transaction(() => {
      for (const file of files) this.#put(file);
    });
  }

  async remove(path: string): Promise<void> {
    this.drop(path);
  }

  /** Removes `path` and all below it; with `before` only what an earlier change than that has brought. */
  drop(path: string, { before = Number.MAX_SAFE_INTEGER }: { readonly before?: number } = {}): void {
    const where = path === "" ? "?1 = ''" : isUnder;
    this.#database.transaction(() => {
      for (const [id] of this.#rows(`SELECT id FROM files WHERE ${where} AND change < ?2`, [path, before]))
        this.#delete(Number(id));
    });
  }

  async rename(from: string, to: string): Promise<void> {
    if (from === to) return;
    this.#database.transaction(() => {
      for (const [id, path] of this.#rows(`SELECT id, path FROM files WHERE ${isUnder}`, [from])) {
        const target = to + textOf(path).slice(from.length);
        for (const [replaced] of this.#rows("SELECT id FROM files WHERE path = ?", [target]))
          this.#delete(Number(replaced));
        this.#run("UPDATE files SET path = ? WHERE id = ?", [target, Number(id)]);
      }
    });
  }

  /** Files with all words of `text` first; where there are none, those with any of them. */
  async search(
    text: string,
    {
      under = "",
      limit = 20,
      vector,
    }: { under?: string | undefined; limit?: number | undefined; vector?: readonly number[] | undefined } = {},
  ): Promise<Hit[]> {
    const count = vector === undefined ? limit : limit * depth;
    const all = matchExpression(text, "all");
    const any = matchExpression(text, "any");
    let matches = this.#match(all, under, count);
    if (matches.length === 0 && any !== all) matches = this.#match(any, under, count);
    const ranked = vector === undefined ? matches : this.#withVector(matches, vector, under, count).slice(0, limit);
    return ranked.map(({ id, score }) => this.#hit(id, score, text));
  }

  find(path: string): IndexedFile | undefined {
    const [row] = this.#rows("SELECT path, stamp, change FROM files WHERE path = ?", [path]);
    return row === undefined ? undefined : toFile(row);
  }

  /** All files, in the order of their paths. */
  files(): IndexedFile[] {
    return this.#rows("SELECT path, stamp, change FROM files ORDER BY path").map(toFile);
  }

  async clear(): Promise<void> {
    this.#database.exec("DELETE FROM files; DELETE FROM texts;");
    this.#vectors.clear();
  }

  async close(): Promise<void> {
    this.#database.close();
  }

  /** A copy of all of it, for `open`. */
  toBytes(): Uint8Array {
    return this.#sqlite.capi.sqlite3_js_db_export(this.#database);
  }

  #load(bytes: Uint8Array): void {
    const { capi, wasm } = this.#sqlite;
    const pointer = wasm.allocFromTypedArray(bytes);
    const flags = capi.SQLITE_DESERIALIZE_FREEONCLOSE | capi.SQLITE_DESERIALIZE_RESIZEABLE;
    const handle = this.#database.pointer as number;
    const code = capi.sqlite3_deserialize(handle, "main", pointer, bytes.length, bytes.length, flags);
    this.#database.checkRc(code);
    for (const [id, vector] of this.#rows("SELECT id, vector FROM files WHERE vector IS NOT NULL"))
      this.#vectors.set(Number(id), toVector(vector as Uint8Array));
    // Damage shows here, and not in the middle of a search.
    this.#number("SELECT count(*) FROM texts WHERE texts MATCH '\"a\"'");
  }

  #put({ path, text, vector, stamp, change }: IndexedText): void {
    const known = this.find(path);
    if (known !== undefined && known.change > change) return;
    const packed = vector === undefined ? undefined : Float32Array.from(vector);
    this.#drop(path);
    this.#run("INSERT INTO files (path, stamp, change, vector) VALUES (?, ?, ?, ?)", [
      path,
      stamp,
      change,
      packed === undefined ? null : new Uint8Array(packed.buffer),
    ]);
    const id = this.#number("SELECT last_insert_rowid()");
    this.#run("INSERT INTO texts (rowid, text) VALUES (?, ?)", [id, text]);
    if (packed !== undefined) this.#vectors.set(id, packed);
  }

  #drop(path: string): void {
    for (const [id] of this.#rows("SELECT id FROM files WHERE path = ?", [path])) this.#delete(Number(id));
  }

  #delete(id: number): void {
    this.#run("DELETE FROM texts WHERE rowid = ?", [id]);
    this.#run("DELETE FROM files WHERE id = ?", [id]);
    this.#vectors.delete(id);
  }

  #match(expression: string | undefined, under: string, limit: number): Ranked[] {
    if (expression === undefined) return [];
    const among = under === "" ? "?1 = ''" : `rowid IN (SELECT id FROM files WHERE ${isUnder})`;
    // Not by the column `rank`, which has the same value: a search by that was seen to take 1.4 times as long.
    const sql = `SELECT rowid, bm25(texts) AS score FROM texts WHERE texts MATCH ?2 AND ${among} ORDER BY score LIMIT ?3`;
    return this.#rows(sql, [under, expression, limit]).map(([id, score]) => ({
      id: Number(id),
      score: -Number(score),
    }));
  }

  #withVector(matches: readonly Ranked[], vector: readonly number[], under: string, count: number): Ranked[] {
    const ids = new Set(
      under === "" ? [] : this.#rows(`SELECT id FROM files WHERE ${isUnder}`, [under]).map(([id]) => Number(id)),
    );
    const near = this.#vectors.nearest(vector, count, (id) => under === "" || ids.has(id));
    const scores = new Map<number, number>();
    for (const order of [matches, near])
      for (const [rank, { id }] of order.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (rankOffset + rank));
    return [...scores].map(([id, score]) => ({ id, score })).sort((a, b) => b.score - a.score);
  }

  /** With the place where the words are; without words, with the beginning of the text. */
  #hit(id: number, score: number, query: string): Hit {
    const [file = []] = this.#rows("SELECT path, stamp, change FROM files WHERE id = ?", [id]);
    const [row] = this.#rows(`SELECT substr(text, 1, ${excerptedLength}) FROM texts WHERE rowid = ?`, [id]);
    const { path, stamp } = toFile(file);
    const text = textOf(row?.[0]);
    return { path, score, stamp, excerpt: excerptOf(text, query, { isCut: text.length >= excerptedLength }) };
  }

  #rows(sql: string, bind: BindingSpec = []): SqlValue[][] {
    return this.#database.exec({ sql, bind, rowMode: "array", returnValue: "resultRows" });
  }

  #run(sql: string, bind: BindingSpec): void {
    this.#database.exec({ sql, bind });
  }

  #number(sql: string): number {
    return Number(this.#rows(sql)[0]?.[0]);
  }
}

interface Ranked {
  readonly id: number;
  readonly score: number;
}

function textOf(value: SqlValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function toFile([path, stamp, change]: readonly SqlValue[]): IndexedFile {
  return { path: textOf(path), stamp: textOf(stamp), change: Number(change) };
}

/** The bytes may begin anywhere in the memory of the engine. */
function toVector(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}
