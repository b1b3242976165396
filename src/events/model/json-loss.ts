// What JSON would change or leave out without a word. Found before it is written: what was appended is what will be read.

/** Whether this JSON has more lists and objects within each other. By its text, which is all that will be read. */
export function isDeeperThan(json: string, depthMax: number): boolean {
  // Each level takes two characters.
  if (json.length <= 2 * depthMax) return false;
  let depth = 0;
  for (let at = 0; at < json.length; at++)
    switch (json.charCodeAt(at)) {
      case quote:
        at = endOfText(json, at);
        break;
      case openBracket:
      case openBrace:
        if (++depth > depthMax) return true;
        break;
      case closeBracket:
      case closeBrace:
        depth--;
        break;
    }
  return false;
}

const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** The quote that ends the text which begins at `start`. */
function endOfText(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); ; at = json.indexOf('"', at + 1)) {
    let before = at - 1;
    while (json.charCodeAt(before) === backslash) before--;
    // An even number of backslashes escape each other.
    if ((at - before) % 2 === 1) return at;
  }
}

/** "any" that has something to say in JSON; or only "plain" ones, which come back as what they were: neither dates nor objects of a class do. */
export type Objects = "any" | "plain";

/** Says what, and where in `value`, which has no cycles; undefined when nothing is lost. Fields without data (undefined, methods) are no loss. */
export function findJsonLoss(value: unknown, path: string, objects: Objects = "any"): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== "object" || value === null) return undefined;
  // It says itself what it is in JSON.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return objects === "any" ? undefined : notPlain(value, path);
  return Array.isArray(value) ? findLossInList(value, path, objects) : findLossInObject(value, path, objects);
}

function findLossInList(list: readonly unknown[], path: string, objects: Objects): string | undefined {
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    const at = `${path}[${index}]`;
    const loss = isNoData(item) ? `${at} is ${typeof item}` : findJsonLoss(item, at, objects);
    if (loss !== undefined) return loss;
  }
  return undefined;
}

function findLossInObject(value: object, path: string, objects: Objects): string | undefined {
  if (objects === "plain" && !isPlain(value)) return notPlain(value, path);
  let isEmpty = true;
  for (const key of Object.keys(value)) {
    isEmpty = false;
    const loss = findJsonLoss((value as Record<string, unknown>)[key], `${path}.${key}`, objects);
    if (loss !== undefined) return loss;
  }
  // What a Map or a Set holds is not in its fields.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!isEmpty || prototype === Object.prototype || prototype === null) return undefined;
  return `${path} is a ${value.constructor?.name || "object"} without fields`;
}

/** Asked without naming `Object`: each realm has its own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function notPlain(value: object, path: string): string {
  return `${path} is no plain object (${value.constructor?.name || "object"})`;
}

function isNoData(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}
