// What JSON would change or leave out without a word. Found before it is written: what was appended is what will be read.

/** Says what, and where in `value`, which has no cycles; undefined when nothing is lost. Fields without data (undefined, methods) are no loss. */
export function findJsonLoss(value: unknown, path: string): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : `${path} is ${value}`;
  if (typeof value !== "object" || value === null) return undefined;
  // It says itself what it is in JSON.
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return undefined;
  return Array.isArray(value) ? findLossInList(value, path) : findLossInObject(value, path);
}

function findLossInList(list: readonly unknown[], path: string): string | undefined {
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    const loss = isNoData(item) ? `${path}[${index}] is ${typeof item}` : findJsonLoss(item, `${path}[${index}]`);
    if (loss !== undefined) return loss;
  }
  return undefined;
}

function findLossInObject(value: object, path: string): string | undefined {
  let isEmpty = true;
  for (const key of Object.keys(value)) {
    isEmpty = false;
    const loss = findJsonLoss((value as Record<string, unknown>)[key], `${path}.${key}`);
    if (loss !== undefined) return loss;
  }
  // What a Map or a Set holds is not in its fields.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!isEmpty || prototype === Object.prototype || prototype === null) return undefined;
  return `${path} is a ${value.constructor?.name || "object"} without fields`;
}

function isNoData(value: unknown): boolean {
  return value === undefined || typeof value === "function" || typeof value === "symbol";
}
