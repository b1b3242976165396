// Finds data that JSON would change or drop silently, before it is written: a reader must get what
// was written.

/** Whether lists and objects of this JSON text are nested deeper than `depthMax`. */
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

/** The index of the quote that ends the text that begins at `start`. */
function endOfText(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); ; at = json.indexOf('"', at + 1)) {
    let before = at - 1;
    while (json.charCodeAt(before) === backslash) before--;
    // An even number of backslashes escape each other.
    if ((at - before) % 2 === 1) return at;
  }
}

/**
 * "any": objects that JSON can write. "plain": only those that come back the same, so no dates and
 * no objects of a class.
 */
export type Objects = "any" | "plain";

/**
 * Says what would be lost, and where in `value`, which has no cycles; undefined when nothing is.
 * Fields without data (undefined, methods) are no loss.
 */
export function findJsonLoss(value: unknown, path: string, objects: Objects = "any"): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== "object" || value === null) return undefined;
  // The object decides itself what it is in JSON.
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
  // A Map or a Set keeps its content outside of its fields.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!isEmpty || prototype === Object.prototype || prototype === null) return undefined;
  return `${path} is a ${value.constructor?.name || "object"} without fields`;
}

/** Without a comparison with `Object.prototype`: each realm has its own. */
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
