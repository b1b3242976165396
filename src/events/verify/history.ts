// The history before a line. Verification judges every line against it, as if it were appended now. It is built from
// the lines, not from index files.
//
// It grows with the log: an event with two tags, one of them unique, takes 220 bytes of memory (measured).
import { isHoldfastError } from "../../errors.ts";
import { ActiveIndex } from "../index/memory/active-index.ts";
import type { LineAddress } from "../index/keys/indexed-line.ts";
import { keysOf } from "../index/keys/key-hash.ts";
import type { LineReader } from "../log/read/line-reader.ts";
import type { Line, StoredCondition } from "../log/format/line.ts";
import type { EventHead } from "../model/stored-event.ts";
import { Retags } from "../log/read/retags.ts";
import { matches } from "../model/query.ts";

/** A fault of a line that is itself whole and well-formed. */
export interface LineFault {
  readonly severity: "damage" | "note";
  readonly what: string;
  readonly remedy: string;
}

const seeTheMaker =
  "The line is as it was written, so its writer broke a rule. Find out which program wrote it, and report it. The events around it can be read.";

export class History {
  readonly #lines: LineReader;
  /** One index for each stretch of positions without a gap. */
  readonly #parts: ActiveIndex[] = [];
  readonly #retags = new Retags();

  constructor(lines: LineReader) {
    this.#lines = lines;
  }

  /** Judges `line` after this history, then adds it. */
  async add(address: LineAddress, line: Line): Promise<LineFault[]> {
    const objections = [...(await this.#judgeCondition(line)), ...(await this.#judgeIds(line)), ...judgeRetag(line)];
    this.#index(address, line);
    // Add them after the verdict: added tags affect only later appends.
    if (line.retag !== undefined) this.#retags.add(line.retag);
    return objections;
  }

  async #judgeCondition({ condition, first }: Line): Promise<LineFault[]> {
    if (condition === undefined) return [];
    const found = await this.#findConflict(condition, first);
    if (found === undefined) return [];
    const after = condition.after === undefined ? "" : ` after position ${condition.after}`;
    const what = `The condition of this append forbids the event at position ${found}${after}: the append should have been refused.`;
    return [{ severity: "damage", what, remedy: seeTheMaker }];
  }

  async #findConflict({ if: items, after = 0 }: StoredCondition, first: number): Promise<number | undefined> {
    const range = { after, upTo: first - 1 };
    for (const part of this.#parts) {
      if (!part.hasCandidate(items, after)) continue;
      for (const position of part.candidates(items, range, false))
        if (matches(items, await this.#headAt(position))) return position;
    }
    for (const position of this.#retags.candidates(items, range))
      if (matches(items, await this.#headAt(position))) return position;
    return undefined;
  }

  async #judgeIds({ events, first }: Line): Promise<LineFault[]> {
    const objections: LineFault[] = [];
    const inLine = new Map<string, number>();
    for (const [index, { id, given }] of events.entries()) {
      const other = inLine.get(id);
      const found = other === undefined ? await this.#findId(id) : { position: other, given };
      inLine.set(id, first + index);
      if (found === undefined) continue;
      const what = `The events at positions ${found.position} and ${first + index} have the same id, ${JSON.stringify(id)}.`;
      // A store guarantees uniqueness only for ids that callers chose.
      const severity = given === true && found.given === true ? "damage" : "note";
      objections.push({ severity, what, remedy: seeTheMaker });
    }
    return objections;
  }

  async #findId(id: string): Promise<{ readonly position: number; readonly given: true | undefined } | undefined> {
    for (const part of this.#parts)
      for (const position of part.idCandidates(id)) {
        const head = await this.#headAt(position);
        if (head.id === id) return { position, given: head.given };
      }
    return undefined;
  }

  /**
   * Returns the head of an event, with the tags added so far. Called only if an index found something, which is rare.
   */
  async #headAt(position: number): Promise<EventHead> {
    const part = this.#parts.find(({ first, last }) => first <= position && position <= last);
    const head = part === undefined ? undefined : await this.#read(part.getLine(position), position);
    // The history has a gap here, which is reported elsewhere.
    if (head === undefined) return { type: "", tags: [], id: "" };
    return { ...head, tags: this.#retags.tagsOf(position, head.tags) };
  }

  async #read(address: LineAddress, position: number): Promise<EventHead | undefined> {
    try {
      return (await this.#lines.get(address)).events[position - address.first];
    } catch (error) {
      // The line follows a damaged one, or can no longer be read.
      if (isHoldfastError(error, "CORRUPT", "IO_ERROR")) return undefined;
      throw error;
    }
  }

  #index(address: LineAddress, { first, time, events }: Line): void {
    let part = this.#parts.at(-1);
    // Positions that repeat are reported elsewhere. They are not indexed.
    if (part !== undefined && first <= part.last) return;
    if (part === undefined || first !== part.last + 1) this.#parts.push((part = new ActiveIndex(first)));
    // Includes ids that Holdfast made: each must be unique here.
    part.add({ ...address, timeMs: Date.parse(time), keys: events.map(keysOf) });
  }
}

function judgeRetag({ retag, first }: Line): LineFault[] {
  const missing = retag?.positions.find((position) => position >= first);
  if (missing === undefined) return [];
  const what = `Tags are added to position ${missing}, which did not exist yet.`;
  return [{ severity: "damage", what, remedy: seeTheMaker }];
}
