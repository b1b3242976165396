// The built-in index: full text by SQLite FTS5 in the memory of this process, with vectors beside
// it.
import type { BindingSpec, Database, SqlValue, Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import type { DerivedIndex, SearchHit } from "../model/derived-index.ts";
import { excerptOf } from "./excerpt.ts";
import { matchExpression, termsOf, type Term } from "./query.ts";
import { loadSqlite } from "./sqlite.ts";
import { Vectors } from "./vectors.ts";
import { toWords } from "./words.ts";

/**
 * The words of a file have its number, and so has its text if it differs from the words. A rename
 * changes neither. The words are kept: to delete a file, the engine needs exactly the same words
 * again.
 */
const schema = `
  CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, change INTEGER NOT NULL, vector BLOB);
  CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
  CREATE VIRTUAL TABLE words USING fts5(text, tokenize = "unicode61 remove_diacritics 2 categories 'L* N* M* Co'");`;
/** "0" follows "/" in binary order, in which SQLite compares: this selects the path itself and everything below it. */
const isUnder = "(path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0'))";
/** How much of each found text is searched for an excerpt. */
const excerptedLength = 128 * 1024;
/** Constant of reciprocal rank fusion, which merges the orders by words and by vectors. */
const rankOffset = 60;
/** How many times more hits than requested are considered in each order. */
const depth = 4;

export interface IndexedFile {
  readonly path: string;
  readonly stamp: string;
  /** The change for which the text was extracted. */
  readonly change: number;
}

export interface IndexedText extends IndexedFile {
  readonly text: string;
  readonly vector?: readonly number[] | undefined;
}

export interface DropOptions {
  readonly before?: number | undefined;
  readonly limit?: number | undefined;
}

type Hit = SearchHit & { readonly stamp: string };

/**
 * An index in memory. All work is synchronous: no half-done change is visible between two calls.
 */
export class TextIndex implements DerivedIndex {
  readonly #sqlite: Sqlite3Static;
  readonly #database: Database;
  readonly #vectors = new Vectors();

  private constructor(sqlite: Sqlite3Static, database: Database) {
    this.#sqlite = sqlite;
    this.#database = database;
  }

  /** Opens an empty index, or one from the `bytes` that `toBytes` returned. */
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

  /**
   * Adds all files in one transaction. If two texts have the same path, the one with the higher
   * change counts, in whichever order they arrive.
   */
  put(files: readonly IndexedText[]): void {
    this.#database.transaction(() => {
      for (const file of files) this.#put(file);
    });
  }

  async remove(path: string): Promise<void> {
    this.drop(path);
  }

  /**
   * Removes `path` and everything below it. With `before`, it removes only files that an earlier
   * change brought. Removes at most `limit` files, and returns how many.
   */
  drop(path: string, { before = Number.MAX_SAFE_INTEGER, limit = -1 }: DropOptions = {}): number {
    const where = path === "" ? "?1 = ''" : isUnder;
    const sql = `SELECT id FROM files WHERE ${where} AND change < ?2 LIMIT ?3`;
    return this.#database.transaction(() => {
      const rows = this.#rows(sql, [path, before, limit]);
      for (const [id] of rows) this.#delete(Number(id));
      return rows.length;
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

  /** Returns files with all terms of `text`; if there are none, those with any of them. Throws TOO_LARGE. */
  async search(
    text: string,
    {
      under = "",
      limit = 20,
      vector,
    }: { under?: string | undefined; limit?: number | undefined; vector?: readonly number[] | undefined } = {},
  ): Promise<Hit[]> {
    const count = vector === undefined ? limit : limit * depth;
    const terms = termsOf(text);
    const all = matchExpression(terms, "all");
    const any = matchExpression(terms, "any");
    let matches = this.#match(all, under, count);
    if (matches.length === 0 && any !== all) matches = this.#match(any, under, count);
    const ranked = vector === undefined ? matches : this.#withVector(matches, vector, under, count).slice(0, limit);
    return ranked.map(({ id, score }) => this.#hit(id, score, terms));
  }

  find(path: string): IndexedFile | undefined {
    const [row] = this.#rows("SELECT path, stamp, change FROM files WHERE path = ?", [path]);
    return row === undefined ? undefined : toFile(row);
  }

  /** Returns all files, ordered by path. */
  files(): IndexedFile[] {
    return this.#rows("SELECT path, stamp, change FROM files ORDER BY path").map(toFile);
  }

  async clear(): Promise<void> {
    this.#database.exec("DELETE FROM files; DELETE FROM texts; DELETE FROM words;");
    this.#vectors.clear();
  }

  async close(): Promise<void> {
    this.#database.close();
  }

  /** Returns a copy of the whole index, for `open`. */
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
    // This query finds damage now, rather than in the middle of a search.
    this.#number("SELECT count(*) FROM words WHERE words MATCH '\"a\"'");
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
    const words = toWords(text);
    this.#run("INSERT INTO words (rowid, text) VALUES (?, ?)", [id, words]);
    if (words !== text) this.#run("INSERT INTO texts (id, text) VALUES (?, ?)", [id, text]);
    if (packed !== undefined) this.#vectors.set(id, packed);
  }

  #drop(path: string): void {
    for (const [id] of this.#rows("SELECT id FROM files WHERE path = ?", [path])) this.#delete(Number(id));
  }

  #delete(id: number): void {
    this.#run("DELETE FROM words WHERE rowid = ?", [id]);
    this.#run("DELETE FROM texts WHERE id = ?", [id]);
    this.#run("DELETE FROM files WHERE id = ?", [id]);
    this.#vectors.delete(id);
  }

  #match(expression: string | undefined, under: string, limit: number): Ranked[] {
    if (expression === undefined) return [];
    const among = under === "" ? "?1 = ''" : `rowid IN (SELECT id FROM files WHERE ${isUnder})`;
    // Not ordered by the column `rank`, which has the same value: that made a search take 1.4 times
    // as long.
    const sql = `SELECT rowid, bm25(words) AS score FROM words WHERE words MATCH ?2 AND ${among} ORDER BY score LIMIT ?3`;
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

  /** Returns a hit. Its excerpt shows the words; without words, the beginning of the text. */
  #hit(id: number, score: number, terms: readonly Term[]): Hit {
    const [file = []] = this.#rows("SELECT path, stamp, change FROM files WHERE id = ?", [id]);
    const text = "coalesce((SELECT text FROM texts WHERE id = ?1), (SELECT text FROM words WHERE rowid = ?1))";
    const [row] = this.#rows(`SELECT substr(${text}, 1, ${excerptedLength})`, [id]);
    const { path, stamp } = toFile(file);
    const beginning = textOf(row?.[0]);
    const isCut = beginning.length >= excerptedLength;
    return { path, score, stamp, excerpt: excerptOf(beginning, terms, { isCut }) };
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

/** Returns a copy, because the bytes may start unaligned in the engine's memory. */
function toVector(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}
