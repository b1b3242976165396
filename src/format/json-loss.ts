// Finds data that JSON would silently change or drop, before it is written: a reader must get what
// was written.

/** True if lists and objects of this JSON text are nested deeper than `depthMax`. */
export function isDeeperThan(json: string, depthMax: number): boolean {
  // Each level takes at least two characters.
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

/** Returns the index of the quote that ends the string starting at `start`. */
function endOfText(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); ; at = json.indexOf('"', at + 1)) {
    let before = at - 1;
    while (json.charCodeAt(before) === backslash) before--;
    // An even number of backslashes escape each other.
    if ((at - before) % 2 === 1) return at;
  }
}

/**
 * "any": objects that JSON can represent. "plain": only those that read back the same, so no dates
 * and no class instances.
 */
export type AllowedObjects = "any" | "plain";

/**
 * Describes what would be lost, and where in `value`; undefined if nothing is. `value` must have no
 * cycles. Fields without data (undefined, methods) are not a loss.
 */
export function findJsonLoss(value: unknown, path: string, objects: AllowedObjects = "any"): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== "object" || value === null) return undefined;
  // The object itself decides its JSON form.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function")
    return objects === "any" ? undefined : notPlain(value, path);
  return Array.isArray(value) ? findLossInList(value, path, objects) : findLossInObject(value, path, objects);
}

function findLossInList(list: readonly unknown[], path: string, objects: AllowedObjects): string | undefined {
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    const at = `${path}[${index}]`;
    const loss = isNoData(item) ? `${at} is ${typeof item}` : findJsonLoss(item, at, objects);
    if (loss !== undefined) return loss;
  }
  return undefined;
}

function findLossInObject(value: object, path: string, objects: AllowedObjects): string | undefined {
  if (objects === "plain" && !isPlain(value)) return notPlain(value, path);
  let isEmpty = true;
  for (const key of Object.keys(value)) {
    isEmpty = false;
    const loss = findJsonLoss((value as Record<string, unknown>)[key], `${path}.${key}`, objects);
    if (loss !== undefined) return loss;
  }
  // A Map or a Set keeps its content outside its fields.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!isEmpty || prototype === Object.prototype || prototype === null) return undefined;
  return `${path} is a ${value.constructor?.name || "object"} without fields`;
}

/** Does not compare with `Object.prototype`: each realm has its own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function notPlain(value: object, path: string): string {
  return `${path} is not a plain object (${value.constructor?.name || "object"})`;
}

function isNoData(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}
