// Query: the checked parameters of a request. Names of parts and paths are parameters, because a
// proxy might rewrite a path.
import { RequestError } from "./request-error.ts";

const textMax = 4096;
/** The longest page. */
const limitMax = 200;

export class Query {
  readonly #parameters: URLSearchParams;

  constructor(parameters: URLSearchParams) {
    this.#parameters = parameters;
  }

  find(name: string): string | undefined {
    const text = this.#parameters.get(name) ?? "";
    if (text.length > textMax) throw wrong(name, `at most ${textMax} characters`);
    return text === "" ? undefined : text;
  }

  get(name: string): string {
    const text = this.find(name);
    if (text === undefined) throw wrong(name, "a text");
    return text;
  }

  /** Returns values that are separated by commas or spaces. */
  list(name: string): string[] {
    return (this.find(name) ?? "").split(/[\s,]+/).filter((word) => word !== "");
  }

  count(name: string, otherwise: number): number {
    const text = this.find(name);
    if (text === undefined) return otherwise;
    const count = Number(text);
    if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(count)) return count;
    throw wrong(name, "a whole number");
  }

  limit(otherwise = 50): number {
    return Math.min(Math.max(1, this.count("limit", otherwise)), limitMax);
  }

  moment(name: string): Date | undefined {
    const text = this.find(name);
    if (text === undefined) return undefined;
    const moment = new Date(text);
    if (Number.isNaN(moment.getTime())) throw wrong(name, "a time");
    return moment;
  }

  oneOf<const Word extends string>(name: string, words: readonly Word[]): Word {
    const text = this.get(name);
    const word = words.find((each) => each === text);
    if (word === undefined) throw wrong(name, `one of ${words.join(", ")}`);
    return word;
  }
}

function wrong(name: string, wanted: string): RequestError {
  return new RequestError(400, "WRONG_REQUEST", `${name} must be ${wanted}.`);
}

/** Collects at most `limit` items, and reports whether there are more. */
export async function pageOf<T>(items: AsyncIterable<T>, limit: number): Promise<{ items: T[]; hasMore: boolean }> {
  const page: T[] = [];
  for await (const item of items) {
    if (page.length === limit) return { items: page, hasMore: true };
    page.push(item);
  }
  return { items: page, hasMore: false };
}
